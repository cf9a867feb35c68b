"""Methods for chunks: list them, correct their text, preview cuts."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from typing import Any

from callslip.client import models
from callslip.client._async.transport import AsyncTransport
from callslip.client.files import Content, Opened, opened
from callslip.client.requests import path_of, without_none

LARGEST_PAGE = 500


class Chunks(AsyncTransport):
    """The endpoints for the chunks of documents."""

    async def list_chunks(
        self,
        document_id: str,
        *,
        limit: int | None = None,
        after: str | None = None,
        parents: bool | None = None,
    ) -> models.Chunks:
        """Get a page of the chunks of a live version; `chunks` iterates over all pages.

        With `parents` also the sections and the document, which are chunks too.
        """
        path = path_of("/v1/documents/{document_id}/chunks", document_id=document_id)
        params = without_none(limit=limit, after=after, parents=parents)
        return await self._request_model(models.Chunks, "GET", path, params=params)

    async def chunks(
        self, document_id: str, *, parents: bool | None = None
    ) -> AsyncGenerator[models.Chunk, None]:
        """Iterate over all chunks of a live version in order of the text."""
        after = None
        while True:
            page = await self.list_chunks(
                document_id, limit=LARGEST_PAGE, after=after, parents=parents
            )
            for chunk in page.chunks:
                yield chunk
            after = page.next_after
            if after is None:
                return

    async def list_corrections(self, document_id: str) -> models.Corrections:
        """Get the corrections of a document's newest version, and why some do not apply."""
        path = path_of("/v1/documents/{document_id}/corrections", document_id=document_id)
        return await self._request_model(models.Corrections, "GET", path)

    async def correct_chunks(
        self,
        document_id: str,
        texts: Mapping[str, str],
        *,
        version: int | None = None,
    ) -> models.Submitted:
        """Correct passages: `texts` has the whole corrected text of each by its chunk id.

        They make one new version, whose other chunks keep their ids and vectors. `version` is the
        version whose chunks were read: Conflict if it is not the newest one by now.
        """
        path = path_of("/v1/documents/{document_id}/corrections", document_id=document_id)
        body = without_none(texts=dict(texts), version=version)
        return await self._request_model(models.Submitted, "POST", path, json=body)

    async def preview_chunks(
        self,
        collection: str,
        text: str,
        *,
        name: str | None = None,
        tenant: str | None = None,
        target_tokens: int | None = None,
        max_tokens: int | None = None,
        overlap_tokens: int | None = None,
        limit: int | None = None,
    ) -> models.ChunksPreview:
        """Get the chunks into which a text would be cut; nothing is stored.

        The ending of `name` tells the format: Markdown by default. Lengths are those of the
        server's settings by default. A key that is limited to tenants names one as `tenant`.
        """
        path = path_of("/v1/collections/{collection}/chunks:preview", collection=collection)
        body = without_none(
            text=text,
            name=name,
            tenant=tenant,
            target_tokens=target_tokens,
            max_tokens=max_tokens,
            overlap_tokens=overlap_tokens,
            limit=limit,
        )
        return await self._request_model(
            models.ChunksPreview, "POST", path, json=body, repeatable=True
        )

    async def preview_file(
        self,
        collection: str,
        file: Content,
        *,
        filename: str | None = None,
        tenant: str | None = None,
        target_tokens: int | None = None,
        max_tokens: int | None = None,
        overlap_tokens: int | None = None,
        limit: int | None = None,
    ) -> models.ChunksPreview:
        """Get the chunks into which a file would be cut; `file` is as for `upload`."""
        path = path_of("/v1/collections/{collection}/chunks:preview", collection=collection)
        fields: dict[str, Any] = without_none(
            tenant=tenant,
            target_tokens=target_tokens,
            max_tokens=max_tokens,
            overlap_tokens=overlap_tokens,
            limit=limit,
        )
        stream, known_as, to_close = opened(file, filename)
        try:
            sent = Opened(stream, known_as, None)
            return await self._request_model(
                models.ChunksPreview,
                "POST",
                path,
                files={"file": (known_as, sent, "application/octet-stream")},
                data={name: str(value) for name, value in fields.items()},
                repeatable=sent.can_repeat,
            )
        finally:
            if to_close:
                stream.close()
