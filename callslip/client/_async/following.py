"""Following documents until searches see them: events, batches, folders of files."""

import os
import time
import uuid
from collections.abc import AsyncGenerator, Callable, Iterable

import anyio

from callslip.client import models
from callslip.client._async.documents import Documents
from callslip.client.files import FolderProgress, Refused, SentFolder, files_of
from callslip.client.retries import backlog_wait
from callslip.client.wire import given, path_of, understood
from callslip.client.words import UNDERWAY, State
from callslip.errors import BacklogFull, DeskDown, PermanentError
from callslip.problems import error_of

POLL_SECONDS = 0.5

PATIENCE = 10
"""The desk counts a batch each time it is asked: nine tenths of its time are left to others."""


class Following(Documents):
    """What is done until a document is live."""

    async def follow(
        self, document_id: str, *, after: int | None = None
    ) -> AsyncGenerator[models.Event, None]:
        """What happens to a document, until it is live, failed or removed.

        From the submission of its newest version on, or after the event of this id. A stream that
        breaks off is taken up again where it was; DeskDown after ten that end at once and tell
        nothing.
        """
        path = path_of("/v1/documents/{document_id}/events", document_id=document_id)
        last = None if after is None else str(after)
        async for event in self.resumed_events(path, last):
            if event.kind != "end":
                yield understood(models.Event, event.json(), f"GET {path}")

    async def wait_until_live(
        self,
        document: str | models.Submitted,
        *,
        seconds: float | None = None,
        on_progress: Callable[[models.Document], object] | None = None,
    ) -> models.Document:
        """Wait until searches see a document; `on_progress` is told how far it is.

        Raises why it failed, PermanentError where it was deleted, and DeskDown after so many
        `seconds`: it goes on then, and can be waited for again.
        """
        document_id = document if isinstance(document, str) else document.document_id
        until = None if seconds is None else time.monotonic() + seconds
        while True:
            found = await self.get_document(document_id)
            if on_progress is not None:
                on_progress(found)
            if found.state == "failed" and found.error is not None:
                raise error_of(found.error.model_dump())
            if found.state == "deleted":
                raise PermanentError(f"{found.name!r} was deleted", hint="Submit it again.")
            if found.state not in UNDERWAY:
                return found
            if until is not None and time.monotonic() > until:
                raise DeskDown(
                    f"{found.name!r} is {found.state} after {seconds:g} s",
                    hint="It goes on; wait again, or look with get_document.",
                )
            await anyio.sleep(POLL_SECONDS)

    async def create_batch(
        self, batch_id: str | None = None, *, expected: int | None = None
    ) -> models.Batch:
        """Documents that are going to be sent together; without a name it is given a new one."""
        body = given(batch_id=batch_id or uuid.uuid4().hex, expected=expected)
        return await self._asked(models.Batch, "POST", "/v1/batches", json=body, repeatable=True)

    async def get_batch(self, batch_id: str) -> models.Batch:
        """How far its documents are."""
        path = path_of("/v1/batches/{batch_id}", batch_id=batch_id)
        return await self._asked(models.Batch, "GET", path)

    async def list_batch_documents(
        self,
        batch_id: str,
        *,
        state: State | None = None,
        after: str | None = None,
        limit: int | None = None,
    ) -> models.BatchDocuments:
        """A page of its documents."""
        path = path_of("/v1/batches/{batch_id}/documents", batch_id=batch_id)
        params = given(state=state, after=after, limit=limit)
        return await self._asked(models.BatchDocuments, "GET", path, params=params)

    async def wait_for_batch(
        self,
        batch_id: str,
        *,
        seconds: float | None = None,
        on_progress: Callable[[models.Batch], object] | None = None,
    ) -> models.Batch:
        """Wait until nothing of a batch is left to do; `states` then says what became of it.

        `on_progress` is told how far it is, how fast, and how long it will take. DeskDown after so
        many `seconds`: it goes on then, and can be waited for again.
        """
        began = time.monotonic()
        while True:
            asked = time.monotonic()
            batch = await self.get_batch(batch_id)
            now = time.monotonic()
            if on_progress is not None:
                on_progress(batch)
            if not batch.left:
                return batch
            if seconds is not None and now > began + seconds:
                raise DeskDown(
                    f"{batch.left} documents of {batch_id!r} are left after {seconds:g} s",
                    hint="They go on; wait again, or look with get_batch.",
                )
            await anyio.sleep(max(POLL_SECONDS, PATIENCE * (now - asked)))

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
        on_progress: Callable[[FolderProgress], object] | None = None,
    ) -> SentFolder:
        """Submit the files of a folder, or files that are named, as one batch.

        A file of a folder is known by its path below it; hidden ones are left out. While too many
        documents wait, the next file waits too. What is refused is told, and the others go on;
        `wait_for_batch` waits for those that were taken.
        """
        files = files_of(folder, pattern)
        made = await self.create_batch(batch, expected=len(files))
        found = SentFolder(made.batch_id)

        def tell(done: int, name: str, waiting: float = 0.0) -> None:
            if on_progress is not None:
                on_progress(FolderProgress(done, len(files), name, waiting))

        for number, (path, name) in enumerate(files):
            tell(number, name)
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
                    )
                    found.submitted.append(submitted)
                    break
                except BacklogFull as error:
                    wait = backlog_wait(error.retry_after)
                    tell(number, name, wait)
                    await anyio.sleep(wait)
                except PermanentError as error:
                    if not found.submitted and error.status in (401, 404):
                        raise
                    found.refused.append(Refused(name, error))
                    break
        if found.refused:
            await self.create_batch(made.batch_id, expected=len(found.submitted))
        tell(len(files), files[-1][1])
        return found
