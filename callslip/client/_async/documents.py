"""Methods for documents: submit, read, delete, restore a version, retry failures."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import Any

from callslip.client import models
from callslip.client._async.transport import AsyncTransport
from callslip.client.files import Content, Opened, Sent, opened
from callslip.client.requests import UNCHANGED, path_of, to_json, without_none, without_unchanged

LARGEST_PAGE = 500


class Documents(AsyncTransport):
    """The endpoints for documents, tasks and dead letters."""

    async def upload(
        self,
        collection: str,
        file: Content,
        *,
        filename: str | None = None,
        name: str | None = None,
        tenant: str | None = None,
        title: str | None = None,
        properties: Mapping[str, Any] | None = None,
        allow_duplicate: bool | None = None,
        priority: int | None = None,
        batch: str | None = None,
        readers: Sequence[str] | None = None,
        url: str | None = None,
        language: str | None = None,
        on_progress: Callable[[Sent], object] | None = None,
    ) -> models.Submitted:
        """Submit a file; the client reads it part by part from its start.

        `file` is a path, bytes (with `filename`) or a file opened with "rb". `name` identifies the
        document, by default it is the file's name: another file of this name is a new version, and
        the same content changes nothing. `readers` may read it: `user:NAME`, `group:NAME`, or
        `["everyone"]`. `url` is the web address of the source. The client calls `on_progress` after
        each part.
        """
        path = path_of("/v1/collections/{collection}/documents", collection=collection)
        fields = without_none(
            name=name,
            tenant=tenant,
            title=title,
            properties=None if properties is None else to_json(properties),
            allow_duplicate=None if allow_duplicate is None else str(allow_duplicate).lower(),
            priority=None if priority is None else str(priority),
            batch=batch,
            readers=None if readers is None else to_json(list(readers)),
            url=url,
            language=language,
        )
        stream, known_as, to_close = opened(file, filename)
        try:
            sent = Opened(stream, name or known_as, on_progress)
            return await self._request_model(
                models.Submitted,
                "POST",
                path,
                files={"file": (known_as, sent, "application/octet-stream")},
                data=fields,
                repeatable=sent.can_repeat,
            )
        finally:
            if to_close:
                stream.close()

    async def submit_text(
        self,
        collection: str,
        text: str,
        *,
        name: str | None = None,
        tenant: str | None = None,
        title: str | None = None,
        properties: Mapping[str, Any] | None = None,
        allow_duplicate: bool | None = None,
        priority: int | None = None,
        batch: str | None = None,
        readers: Sequence[str] | None = None,
        url: str | None = None,
        language: str | None = None,
    ) -> models.Submitted:
        """Submit a text, which may have Markdown headings; parameters are as for `upload`."""
        path = path_of("/v1/collections/{collection}/documents", collection=collection)
        body = without_none(
            text=text,
            name=name,
            tenant=tenant,
            title=title,
            properties=properties,
            allow_duplicate=allow_duplicate,
            priority=priority,
            batch=batch,
            readers=None if readers is None else list(readers),
            url=url,
            language=language,
        )
        return await self._request_model(models.Submitted, "POST", path, json=body, repeatable=True)

    async def list_unchanged(
        self,
        collection: str,
        documents: Sequence[Mapping[str, Any]],
        *,
        tenant: str | None = None,
    ) -> models.Unchanged:
        """Get the names of those files whose submission would change nothing.

        At most 1,000, each with `name`, `filename`, `sha256`, and `title`, `url`, `language` and
        `properties` if its submission has them.
        """
        path = path_of("/v1/collections/{collection}/documents/unchanged", collection=collection)
        body = without_none(tenant=tenant, documents=list(documents))
        return await self._request_model(models.Unchanged, "POST", path, json=body, repeatable=True)

    async def list_documents(
        self,
        collection: str,
        *,
        tenant: str | None = None,
        parent: str | None = None,
        limit: int | None = None,
        before: float | None = None,
    ) -> models.Documents:
        """Get a page of documents, newest first; `documents` iterates over all pages."""
        path = path_of("/v1/collections/{collection}/documents", collection=collection)
        params = without_none(tenant=tenant, parent=parent, limit=limit, before=before)
        return await self._request_model(models.Documents, "GET", path, params=params)

    async def documents(
        self, collection: str, *, tenant: str | None = None, parent: str | None = None
    ) -> AsyncGenerator[models.Document, None]:
        """Iterate over all documents, or over the attachments of `parent`, newest first."""
        before = None
        while True:
            page = await self.list_documents(
                collection, tenant=tenant, parent=parent, limit=LARGEST_PAGE, before=before
            )
            for document in page.documents:
                yield document
            before = page.next_before
            if before is None:
                return

    async def get_document(self, document_id: str) -> models.Document:
        """Get a document: its state, its steps with attempts, timings and counts, and its error."""
        path = path_of("/v1/documents/{document_id}", document_id=document_id)
        return await self._request_model(models.Document, "GET", path)

    async def get_file(
        self, document_id: str, *, version: int | None = None, show: bool | None = None
    ) -> bytes:
        """Get the original of a version, by default of the live one, byte for byte.

        `show` concerns browsers alone.
        """
        path = path_of("/v1/documents/{document_id}/file", document_id=document_id)
        return await self.request_bytes(path, params=without_none(version=version, show=show))

    async def get_page_image(
        self,
        document_id: str,
        number: int,
        *,
        version: int | None = None,
        start: int | None = None,
        end: int | None = None,
        width: int | None = None,
    ) -> bytes:
        """Get a page of a PDF (from 1) as a PNG image of `width` pixels.

        With `start` and `end`, the lines of that part of the extracted text are marked.
        """
        path = path_of(
            "/v1/documents/{document_id}/pages/{number}.png",
            document_id=document_id,
            number=str(number),
        )
        params = without_none(version=version, start=start, end=end, width=width)
        return await self.request_bytes(path, params=params)

    async def get_table(
        self, document_id: str, number: int, *, version: int | None = None
    ) -> bytes:
        """Get a table of a document's text (from 1) as CSV in UTF-8, its header rows first."""
        path = path_of(
            "/v1/documents/{document_id}/tables/{number}.csv",
            document_id=document_id,
            number=str(number),
        )
        return await self.request_bytes(path, params=without_none(version=version))

    async def edit_document(
        self,
        document_id: str,
        *,
        title: str | None = UNCHANGED,
        url: str | None = UNCHANGED,
        language: str | None = UNCHANGED,
        valid_from: str | None = UNCHANGED,
        valid_to: str | None = UNCHANGED,
        properties: Mapping[str, Any] | None = UNCHANGED,
        readers: Sequence[str] | None = UNCHANGED,
        if_match: str | None = None,
    ) -> models.Document:
        """Change what is known of a document without sending its file again.

        An argument that is left out stays; None removes a value. `properties` are merged into the
        present ones, and one of None is removed. The result's `version` is live a little later.
        `if_match` is the `etag` of a document: raises PreconditionFailed if it has changed since.
        """
        path = path_of("/v1/documents/{document_id}", document_id=document_id)
        body = without_unchanged(
            title=title,
            url=url,
            language=language,
            valid_from=valid_from,
            valid_to=valid_to,
            properties=properties,
            readers=readers if readers is UNCHANGED or readers is None else list(readers),
        )
        return await self._request_model(
            models.Document,
            "PATCH",
            path,
            json=body,
            if_match=if_match,
            repeatable=if_match is None,  # with it, a repeated change would refuse itself
        )

    async def set_readers(self, document_id: str, readers: Sequence[str] | None) -> models.Document:
        """Set who may read a document and those within it; None means everyone."""
        return await self.edit_document(document_id, readers=readers)

    async def delete_document(self, document_id: str) -> models.Deleted:
        """Delete a document: it is hidden at once, and a worker removes it."""
        path = path_of("/v1/documents/{document_id}", document_id=document_id)
        return await self._request_model(models.Deleted, "DELETE", path)

    async def get_text(
        self,
        document_id: str,
        *,
        start: int | None = None,
        end: int | None = None,
        version: int | None = None,
    ) -> models.TextSlice:
        """Get up to 100,000 characters of the extracted text, to which the spans of hits refer."""
        path = path_of("/v1/documents/{document_id}/text", document_id=document_id)
        params = without_none(start=start, end=end, version=version)
        return await self._request_model(models.TextSlice, "GET", path, params=params)

    async def list_versions(self, document_id: str) -> models.Versions:
        """Get the versions of a document, newest first."""
        path = path_of("/v1/documents/{document_id}/versions", document_id=document_id)
        return await self._request_model(models.Versions, "GET", path)

    async def preview_cut(
        self,
        document_id: str,
        *,
        max_tokens: int | None = None,
        overlap_tokens: int | None = None,
        limit: int | None = None,
    ) -> models.CutPreview:
        """Show how other lengths would cut a document; nothing is stored."""
        path = path_of("/v1/documents/{document_id}/cut:preview", document_id=document_id)
        body = without_none(max_tokens=max_tokens, overlap_tokens=overlap_tokens, limit=limit)
        return await self._request_model(
            models.CutPreview, "POST", path, json=body, repeatable=True
        )

    async def cut(
        self,
        document_id: str,
        *,
        max_tokens: int | None = None,
        overlap_tokens: int | None = None,
    ) -> models.Submitted:
        """Make a version whose chunks have other lengths."""
        path = path_of("/v1/documents/{document_id}/cut", document_id=document_id)
        body = without_none(max_tokens=max_tokens, overlap_tokens=overlap_tokens)
        return await self._request_model(models.Submitted, "POST", path, json=body)

    async def roll_back(self, document_id: str, version: int) -> models.Submitted:
        """Restore an older version as the newest one."""
        path = path_of("/v1/documents/{document_id}/rollback", document_id=document_id)
        return await self._request_model(
            models.Submitted, "POST", path, json=without_none(version=version)
        )

    async def get_task(self, task_id: str) -> models.Task:
        """Get a task: one submission or deletion."""
        path = path_of("/v1/tasks/{task_id}", task_id=task_id)
        return await self._request_model(models.Task, "GET", path)

    async def list_dead_letters(
        self,
        *,
        collection: str | None = None,
        tenant: str | None = None,
        reason: str | None = None,
        older_than: float | None = None,
        newer_than: float | None = None,
        limit: int | None = None,
        after: str | None = None,
    ) -> models.DeadLetters:
        """Get a page of the documents that failed permanently, the latest first."""
        params = without_none(
            collection=collection,
            tenant=tenant,
            reason=reason,
            older_than=older_than,
            newer_than=newer_than,
            limit=limit,
            after=after,
        )
        return await self._request_model(
            models.DeadLetters, "GET", "/v1/dead-letters", params=params
        )

    async def retry_dead_letters(
        self,
        *,
        document_ids: list[str] | None = None,
        collection: str | None = None,
        tenant: str | None = None,
        reason: str | None = None,
        older_than: float | None = None,
        newer_than: float | None = None,
        all: bool | None = None,  # noqa: A002 - the field's name
    ) -> models.Retried:
        """Retry the failed documents that match every argument; `all=True` retries all of them."""
        body = without_none(
            document_ids=document_ids,
            collection=collection,
            tenant=tenant,
            reason=reason,
            older_than=older_than,
            newer_than=newer_than,
            all=all,
        )
        return await self._request_model(
            models.Retried, "POST", "/v1/dead-letters/retry", json=body
        )
