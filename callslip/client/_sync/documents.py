"""Documents: submitting, reading, deleting and bringing back."""

from collections.abc import Callable, Generator, Mapping
from typing import Any

from callslip.client import models
from callslip.client._sync.transport import Transport
from callslip.client.files import Content, Opened, Sent, opened
from callslip.client.wire import given, path_of, written

LARGEST_PAGE = 500


class Documents(Transport):
    """What is done with documents."""

    def upload(
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
        on_progress: Callable[[Sent], object] | None = None,
    ) -> models.Submitted:
        """Submit a file, read part by part, from its start.

        It is known by its `name`, the file's own where none is given: the same name again is a new
        version, with the same content nothing is done. A path, bytes (with `filename`) or a file
        opened with "rb"; `on_progress` is told of each part.
        """
        path = path_of("/v1/collections/{collection}/documents", collection=collection)
        fields = given(
            name=name,
            tenant=tenant,
            title=title,
            properties=None if properties is None else written(properties),
            allow_duplicate=None if allow_duplicate is None else str(allow_duplicate).lower(),
            priority=None if priority is None else str(priority),
            batch=batch,
        )
        stream, known_as, to_close = opened(file, filename)
        try:
            sent = Opened(stream, name or known_as, on_progress)
            return self._asked(
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

    def submit_text(
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
    ) -> models.Submitted:
        """Submit a text, in which Markdown headings are understood; else as a file."""
        path = path_of("/v1/collections/{collection}/documents", collection=collection)
        body = given(
            text=text,
            name=name,
            tenant=tenant,
            title=title,
            properties=properties,
            allow_duplicate=allow_duplicate,
            priority=priority,
            batch=batch,
        )
        return self._asked(models.Submitted, "POST", path, json=body, repeatable=True)

    def list_documents(
        self,
        collection: str,
        *,
        tenant: str | None = None,
        parent: str | None = None,
        limit: int | None = None,
        before: float | None = None,
    ) -> models.Documents:
        """A page of documents, newest first; `documents` gives all."""
        path = path_of("/v1/collections/{collection}/documents", collection=collection)
        params = given(tenant=tenant, parent=parent, limit=limit, before=before)
        return self._asked(models.Documents, "GET", path, params=params)

    def documents(
        self, collection: str, *, tenant: str | None = None, parent: str | None = None
    ) -> Generator[models.Document, None]:
        """Every document, or what came within one of them (`parent`), newest first."""
        before = None
        while True:
            page = self.list_documents(
                collection, tenant=tenant, parent=parent, limit=LARGEST_PAGE, before=before
            )
            yield from page.documents
            before = page.next_before
            if before is None:
                return

    def get_document(self, document_id: str) -> models.Document:
        """Its state, each step with attempts, timings and counts, and what went wrong."""
        path = path_of("/v1/documents/{document_id}", document_id=document_id)
        return self._asked(models.Document, "GET", path)

    def delete_document(self, document_id: str) -> models.Deleted:
        """Hide it at once and remove it soon."""
        path = path_of("/v1/documents/{document_id}", document_id=document_id)
        return self._asked(models.Deleted, "DELETE", path)

    def get_text(
        self,
        document_id: str,
        *,
        start: int | None = None,
        end: int | None = None,
        version: int | None = None,
    ) -> models.TextSlice:
        """Up to 100,000 characters of the extracted text, into which spans of hits point."""
        path = path_of("/v1/documents/{document_id}/text", document_id=document_id)
        params = given(start=start, end=end, version=version)
        return self._asked(models.TextSlice, "GET", path, params=params)

    def list_versions(self, document_id: str) -> models.Versions:
        """Its history, newest version first."""
        path = path_of("/v1/documents/{document_id}/versions", document_id=document_id)
        return self._asked(models.Versions, "GET", path)

    def roll_back(self, document_id: str, version: int) -> models.Submitted:
        """Bring an older version back as a new one."""
        path = path_of("/v1/documents/{document_id}/rollback", document_id=document_id)
        return self._asked(models.Submitted, "POST", path, json=given(version=version))

    def get_task(self, task_id: str) -> models.Task:
        """One submission or deletion."""
        path = path_of("/v1/tasks/{task_id}", task_id=task_id)
        return self._asked(models.Task, "GET", path)

    def list_dead_letters(
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
        """A page of what failed for good, the latest first."""
        params = given(
            collection=collection,
            tenant=tenant,
            reason=reason,
            older_than=older_than,
            newer_than=newer_than,
            limit=limit,
            after=after,
        )
        return self._asked(models.DeadLetters, "GET", "/v1/dead-letters", params=params)

    def retry_dead_letters(
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
        """Try what failed again: all that fits every one of these; `all=True` for everything."""
        body = given(
            document_ids=document_ids,
            collection=collection,
            tenant=tenant,
            reason=reason,
            older_than=older_than,
            newer_than=newer_than,
            all=all,
        )
        return self._asked(models.Retried, "POST", "/v1/dead-letters/retry", json=body)
