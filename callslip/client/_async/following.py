"""Methods that wait until documents are searchable: events, batches, uploads of folders."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence

import anyio

from callslip.client import models
from callslip.client._async.documents import Documents
from callslip.client.files import FolderProgress, Refused, SentFolder, files_of
from callslip.client.requests import path_of, without_none
from callslip.client.responses import parse_answer
from callslip.client.retries import backlog_wait
from callslip.errors import BacklogFull, PermanentError, ServerDown
from callslip.problems import error_of
from callslip.vocabulary import UNDERWAY, ItemState

POLL_SECONDS = 0.5

PATIENCE = 10
"""The pause between requests for a batch, in multiples of the time that the last one took.

The server counts the batch at each request; the pause bounds the load of one client."""


class Following(Documents):
    """Follow documents and batches, and upload folders."""

    async def follow(
        self, document_id: str, *, after: int | None = None
    ) -> AsyncGenerator[models.Event, None]:
        """Yield the events of a document until it is live, failed or removed.

        The events begin with the submission of the newest version, or after the event id `after`.
        A stream that breaks off is resumed. Raises ServerDown after ten streams in a row that end
        at once without an event.
        """
        path = path_of("/v1/documents/{document_id}/events", document_id=document_id)
        last = None if after is None else str(after)
        async for event in self.resumed_events(path, last):
            if event.kind != "end":
                yield parse_answer(models.Event, event.json(), f"GET {path}")

    async def wait_until_live(
        self,
        document: str | models.Submitted,
        *,
        seconds: float | None = None,
        on_progress: Callable[[models.Document], object] | None = None,
    ) -> models.Document:
        """Wait until a document is searchable; call `on_progress` with its state at each poll.

        Raises the error of a failed document, PermanentError if it was deleted, and ServerDown
        after `seconds`: the server goes on with the document, and the call can be repeated.
        """
        document_id = document if isinstance(document, str) else document.document_id
        until = None if seconds is None else time.monotonic() + seconds
        while True:
            current = await self.get_document(document_id)
            if on_progress is not None:
                on_progress(current)
            if current.state == "failed" and current.error is not None:
                raise error_of(current.error.model_dump())
            if current.state == "deleted":
                raise PermanentError(f"{current.name!r} was deleted", hint="Submit it again.")
            if current.state not in UNDERWAY:
                return current
            if until is not None and time.monotonic() > until:
                raise ServerDown(
                    f"{current.name!r} is {current.state} after {seconds:g} s",
                    hint="It goes on; wait again, or look with get_document.",
                )
            await anyio.sleep(POLL_SECONDS)

    async def create_batch(
        self, batch_id: str | None = None, *, expected: int | None = None
    ) -> models.Batch:
        """Create a batch for documents that are sent together, under a new id by default."""
        body = without_none(batch_id=batch_id or uuid.uuid4().hex, expected=expected)
        return await self._request_model(
            models.Batch, "POST", "/v1/batches", json=body, repeatable=True
        )

    async def get_batch(self, batch_id: str) -> models.Batch:
        """Get a batch: how many of its documents are in each state."""
        path = path_of("/v1/batches/{batch_id}", batch_id=batch_id)
        return await self._request_model(models.Batch, "GET", path)

    async def list_batch_documents(
        self,
        batch_id: str,
        *,
        state: ItemState | None = None,
        after: str | None = None,
        limit: int | None = None,
    ) -> models.BatchDocuments:
        """Get a page of the documents of a batch."""
        path = path_of("/v1/batches/{batch_id}/documents", batch_id=batch_id)
        params = without_none(state=state, after=after, limit=limit)
        return await self._request_model(models.BatchDocuments, "GET", path, params=params)

    async def wait_for_batch(
        self,
        batch_id: str,
        *,
        seconds: float | None = None,
        on_progress: Callable[[models.Batch], object] | None = None,
    ) -> models.Batch:
        """Wait until each document of a batch is live or failed; `states` has the counts.

        Calls `on_progress` with the batch at each poll. Raises ServerDown after `seconds`: the
        server goes on with the batch, and the call can be repeated."""
        began = time.monotonic()
        while True:
            requested_at = time.monotonic()
            batch = await self.get_batch(batch_id)
            now = time.monotonic()
            if on_progress is not None:
                on_progress(batch)
            if not batch.left:
                return batch
            if seconds is not None and now > began + seconds:
                raise ServerDown(
                    f"{batch.left} documents of {batch_id!r} are left after {seconds:g} s",
                    hint="They go on; wait again, or look with get_batch.",
                )
            await anyio.sleep(max(POLL_SECONDS, PATIENCE * (now - requested_at)))

    async def upload_folder(
        self,
        collection: str,
        folder: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
        *,
        pattern: str = "**/*",
        tenant: str | None = None,
        priority: int | None = None,
        allow_duplicate: bool | None = None,
        batch: str | None = None,
        readers: Sequence[str] | None = None,
        on_progress: Callable[[FolderProgress], object] | None = None,
    ) -> SentFolder:
        """Submit the files of a folder, or the files of a list, as one batch.

        The name of a file of a folder is its path below the folder; hidden files are left out.
        While the server's backlog is full, the upload waits. `refused` lists the files that the
        server refused, and the upload goes on; `wait_for_batch` waits for the submitted files.
        """
        files = files_of(folder, pattern)
        made = await self.create_batch(batch, expected=len(files))
        result = SentFolder(made.batch_id)

        def report(done: int, name: str, waiting: float = 0.0) -> None:
            if on_progress is not None:
                on_progress(FolderProgress(done, len(files), name, waiting))

        for number, (path, name) in enumerate(files):
            report(number, name)
            while True:
                try:
                    submitted = await self.upload(
                        collection,
                        path,
                        name=name,
                        tenant=tenant,
                        priority=priority,
                        allow_duplicate=allow_duplicate,
                        batch=made.batch_id,
                        readers=readers,
                    )
                    result.submitted.append(submitted)
                    break
                except BacklogFull as error:
                    wait = backlog_wait(error.retry_after)
                    report(number, name, wait)
                    await anyio.sleep(wait)
                except PermanentError as error:
                    if not result.submitted and error.status in (401, 404):
                        raise
                    result.refused.append(Refused(name, error))
                    break
        if result.refused:
            await self.create_batch(made.batch_id, expected=len(result.submitted))
        report(len(files), files[-1][1])
        return result
