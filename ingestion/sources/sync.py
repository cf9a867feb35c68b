"""Runs over a source: ingests new and changed files, and deletes removed ones on request.

A run consists of slices, so that a large source does not block a worker. A slice that was killed is
repeated: every file is recorded before the next one is processed.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Literal

from callslip.errors import (
    CallslipError,
    DocumentError,
    DuplicateContent,
    InvalidRequest,
    LeaseLost,
    NothingListed,
    Overloaded,
    SourceDown,
    SourceError,
)
from callslip.ingestion.intake import take_in
from callslip.ingestion.sources.items import Caught, Item, Origin, caught
from callslip.ingestion.sources.web import Gone
from callslip.stores.blobs import Blobs
from callslip.stores.ledger import (
    Accepted,
    Failure,
    ItemRecord,
    LeaseKeeper,
    Ledger,
    Outcome,
    Run,
    Submission,
)
from callslip.stores.naming import clean_filename, clean_name, clean_url

BATCH = 100
"""Files that are looked up in the ledger at once."""

SOURCE = "source"
"""The property that contains the URL from which a document was fetched."""

Progress = Literal["ended", "more", "later"]
"""more: the run can continue now; later: too many documents are waiting."""


@dataclass
class Crawl:
    """A run with its resources and limits; `keeper` renews its lease.

    `room` raises Overloaded while too many documents are waiting. `sent` and `removed` dispatch the
    ingestion or the removal of a document, by its id.
    """

    ledger: Ledger
    blobs: Blobs
    run: Run
    origin: Origin
    most_mb: int
    slice_seconds: float
    room: Callable[[], object]
    sent: Callable[[str], object]
    removed: Callable[[str], object]
    keeper: LeaseKeeper
    _until: float | None = None

    def is_over(self) -> bool:
        """Whether the slice's time has run out, counted from the first file that is fetched.

        So each slice makes progress, however long it takes to list the files of earlier slices.
        """
        if self._until is None:
            self._until = time.monotonic() + self.slice_seconds
        return time.monotonic() > self._until

    def name_of(self, path: str) -> str:
        """Return the document name for a file; InvalidRequest if the file cannot have one."""
        return clean_name(f"{self.run.source.name}/{path}")


def sync(crawl: Crawl) -> Progress:
    """Do a slice of a run.

    An error that prevents reading the source ends the run with this error, and nothing is deleted.
    Raises LeaseLost if another process has the run, or if the source does not exist any more.
    """
    runs, run = crawl.ledger.source_runs, crawl.run
    try:
        done = _look(crawl)
        if done and _delete_vanished(crawl) and runs.counts(run).get("duplicate"):
            done = _look(crawl)  # a renamed file is no duplicate after that
        if not done:
            runs.pause(run)
            return "more"
    except LeaseLost:
        raise
    except Overloaded:
        runs.pause(run)
        return "later"
    except CallslipError as error:
        runs.end(run, error)
        return "ended"
    runs.end(run)
    return "ended"


def _look(crawl: Crawl) -> bool:
    """Process every file that this run has not processed; false if the slice's time ran out."""
    runs, run = crawl.ledger.source_runs, crawl.run
    for batch in _batches(crawl.origin.items()):
        crawl.keeper.check()
        known = runs.known(run, [_key(item.path) for item in batch])
        same: list[str] = []
        taken: set[str] = set()
        for item in batch:
            before = known.get(_key(item.path))
            if before is not None and before.document_id in taken:
                before = None  # its row is deleted: a file with the same document name came first
            if before is not None and _is_settled(crawl, item, before):
                if before.seen_run != run.number:
                    same.append(before.path)
                continue
            runs.unchanged(run, same)  # first, so that these are rivals of the file
            same.clear()
            document_id = _take(crawl, item, before)
            if document_id is not None:
                taken.add(document_id)
            if crawl.is_over():
                return False
        runs.unchanged(run, same)
    return True


def _is_settled(crawl: Crawl, item: Item, before: ItemRecord) -> bool:
    """Whether the file need not be read: this run has read it, or it has certainly not changed.

    Only a failure because of the content records an ETag, time and size. After every other one the
    next run tries again: a permission, or another file's name, can change while the file does not.
    """
    if before.outcome == "duplicate" and not _twins(crawl, before):
        return False
    same = item.same_as(Item(before.path, before.etag, before.modified, before.size))
    return before.seen_run == crawl.run.number or same


def _take(crawl: Crawl, item: Item, before: ItemRecord | None) -> str | None:
    """Fetch and ingest one file, and return the id of its document, if it has one.

    An error is recorded with this file only.
    """
    base = before or ItemRecord(_key(item.path), "failed")
    try:
        taken = _taken(crawl, item, base)
    except Gone as error:
        if base.document_id is not None:
            return None  # not marked as seen: the file has disappeared
        taken = _marked(base, Item(item.path), "failed", error)
    except (SourceDown, SourceError, InvalidRequest) as error:
        taken = _marked(base, Item(item.path), "failed", error)
    except DocumentError as error:
        taken = _marked(base, item, "failed", error)
    crawl.ledger.source_runs.note(crawl.run, taken)
    return taken.document_id


def _taken(crawl: Crawl, item: Item, base: ItemRecord) -> ItemRecord:
    """Fetch a file and submit it unless its content is unchanged; return the file's new record."""
    if base.path != item.path:
        raise InvalidRequest("the name is not valid Unicode", hint="Rename the file.")
    document_id = _document_of(crawl, item)
    known = None
    if base.document_id is not None and base.failure is None:
        known = Item(base.path, base.etag, base.modified, base.size)
    crawl.room()  # first, so that nothing is fetched in vain
    fetching = crawl.origin.fetch(item, known, crawl.keeper.check)
    if fetching.blocks is None:
        return replace(base, outcome="unchanged")
    with caught(fetching.blocks, crawl.most_mb, item.path, crawl.keeper.check) as content:
        seen = fetching.settle()
        read = replace(base, sha256=content.sha256, fetched_at=time.time())
        if known is not None and content.sha256 == base.sha256:
            return _marked(read, seen, "unchanged")
        try:
            changes = document_id is not None and document_id == base.document_id
            accepted = _submit(crawl, item, content, allow_duplicate=changes)
        except DuplicateContent as error:
            return _marked(read, seen, "duplicate", error)
    outcome: Outcome = "unchanged"
    if accepted.fresh:
        crawl.sent(accepted.document_id)
        outcome = "new" if accepted.version == 1 else "changed"
    return replace(_marked(read, seen, outcome), document_id=accepted.document_id)


def _document_of(crawl: Crawl, item: Item) -> str | None:
    """Return the id of the document with the file's name; None if there is none.

    Raises InvalidRequest, before anything is fetched, if the file cannot have a document: its name
    is refused, or another file has the same document name, which `clean_name` can cause. Both would
    be versions of one document.
    """
    source, name = crawl.run.source, crawl.name_of(item.path)
    clean_filename(item.path)
    known = crawl.ledger.documents.id_of(source.collection, name, tenant=source.tenant)
    rival = known and crawl.ledger.source_runs.rival(crawl.run, known, item.path)
    if rival:
        raise InvalidRequest(f"{rival!r} has the same name", hint="Rename one of them.")
    return known


def _submit(crawl: Crawl, item: Item, content: Caught, *, allow_duplicate: bool) -> Accepted:
    """Submit the content as the HTTP API does.

    A changed file changes its document even if another document has the same content now, because
    the previous content no longer exists: `allow_duplicate`.
    """
    source = crawl.run.source
    return take_in(
        crawl.ledger,
        crawl.blobs,
        source.collection,
        Submission(
            name=crawl.name_of(item.path),
            filename=clean_filename(item.path),
            title="",
            sha256=content.sha256,
            size=content.size,
            properties={**source.properties, SOURCE: crawl.origin.address(item)},
            readers=source.readers,
            url=_web_address(crawl.origin.address(item)),
            keeps_edits=True,
        ),
        content.content,
        tenant=source.tenant,
        allow_duplicate=allow_duplicate,
    )


def _web_address(address: str) -> str | None:
    """Return the address if a reader's browser can open it; a folder's and a bucket's it cannot."""
    return clean_url(address) if address.startswith(("http://", "https://")) else None


def _delete_vanished(crawl: Crawl) -> int:
    """Delete the documents of missing files if the run may delete; return their number.

    A file whose new name is stored like its previous one keeps its document.
    """
    runs, run = crawl.ledger.source_runs, crawl.run
    if not crawl.origin.complete:
        raise SourceError(
            "a folder of the source could not be listed, so that nothing was deleted",
            hint="See its permissions, then sync again.",
        )
    runs.forget_renamed(run)
    counts = runs.counts(run)
    missing = counts.pop("missing", 0)
    if missing and not sum(counts.values()) and not run.force:
        raise NothingListed(f"the source lists none of the files that it had: {missing}")
    if not missing or not run.delete_missing:
        return 0
    deleted, after = 0, ""
    while items := runs.unseen(run, after=after):
        for item in items:
            crawl.keeper.check()
            if item.document_id is not None:
                crawl.ledger.documents.delete(item.document_id)
                crawl.removed(item.document_id)
            runs.note(run, _marked(item, Item(item.path), "deleted"))
            deleted += 1
        after = items[-1].path
    return deleted


def _twins(crawl: Crawl, before: ItemRecord) -> list[str]:
    """Return other documents with the content that the file had when it was last read."""
    source = crawl.run.source
    return crawl.ledger.documents.with_content(
        source.collection, before.sha256, but=crawl.name_of(before.path), tenant=source.tenant
    )


def _marked(
    base: ItemRecord, seen: Item, outcome: Outcome, error: CallslipError | None = None
) -> ItemRecord:
    """Return the file's record with this outcome, and with the data that its source listed."""
    return replace(
        base,
        outcome=outcome,
        etag=seen.etag,
        modified=seen.modified,
        size=seen.size,
        failure=None if error is None else Failure.of(error),
    )


def _key(path: str) -> str:
    """Return the path in a form that the ledger can store."""
    return path.encode("utf-8", "backslashreplace").decode()[:1024]


def _batches(items: Iterator[Item]) -> Iterable[list[Item]]:
    while batch := list(islice(items, BATCH)):
        yield batch
