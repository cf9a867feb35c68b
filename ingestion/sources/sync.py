"""One run over a source: what is new or changed comes in, what vanished goes when asked to.

A run is done in slices, so that a large source does not keep a worker from other work, and a slice
that was killed is done again: every file is recorded before the next one is looked at.
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
from ingestion.intake import take_in
from ingestion.sources.items import Caught, Item, Place, caught
from ingestion.sources.web import Gone
from stores.blobs import Blobs
from stores.ledger import (
    Accepted,
    Failure,
    ItemRecord,
    LeaseKeeper,
    Ledger,
    Outcome,
    Run,
    Submission,
)
from stores.naming import clean_filename, clean_name

BATCH = 100
"""Files that are looked up in the ledger at once."""

SOURCE = "source"
"""The property that says where a document was fetched."""

Progress = Literal["ended", "more", "later"]
"""more: there is more to do now; later: too much is waiting already."""


@dataclass
class Crawl:
    """A run and what it may use, while `keeper` keeps its lease.

    `room` raises Overloaded while no more may be sent; `sent` and `removed` nudge whoever does the
    work that follows.
    """

    ledger: Ledger
    blobs: Blobs
    run: Run
    place: Place
    most_mb: int
    slice_seconds: float
    room: Callable[[], object]
    sent: Callable[[str], object]
    removed: Callable[[str], object]
    keeper: LeaseKeeper
    _until: float | None = None

    def is_over(self) -> bool:
        """Whether it is other work's turn. The time counts from the first file that is fetched.

        So each slice gets on, however long the listing takes up to where the last one ended.
        """
        if self._until is None:
            self._until = time.monotonic() + self.slice_seconds
        return time.monotonic() > self._until

    def name_of(self, path: str) -> str:
        """The name of the document that a file is; InvalidRequest where it can have none."""
        return clean_name(f"{self.run.source.name}/{path}")


def sync(crawl: Crawl) -> Progress:
    """Do a slice of a run.

    Whatever keeps the source from being looked at ends the run with that error and deletes nothing.
    LeaseLost passes through: another process does it, or the source is gone.
    """
    runs, run = crawl.ledger.source_runs, crawl.run
    try:
        if not _look(crawl):
            runs.pause(run)
            return "more"
        if _delete_vanished(crawl) and runs.counts(run).get("duplicate"):
            _look(crawl)  # what was renamed is no duplicate any more
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
    """Look at every file that this run has not seen; false where the slice's time ran out."""
    runs, run = crawl.ledger.source_runs, crawl.run
    for batch in _batches(crawl.place.items()):
        crawl.keeper.check()
        known = runs.known(run, [_key(item.path) for item in batch])
        same = []
        for item in batch:
            before = known.get(_key(item.path))
            if before is not None and _is_settled(crawl, item, before):
                if before.seen_run != run.number:
                    same.append(before.path)
                continue
            _take(crawl, item, before)
            if crawl.is_over():
                runs.unchanged(run, same)
                return False
        runs.unchanged(run, same)
    return True


def _is_settled(crawl: Crawl, item: Item, before: ItemRecord) -> bool:
    """Whether the file need not be read: this run has, or nothing can have changed since.

    What failed for a reason that passes has left no mark by which it could be known.
    """
    if before.outcome == "duplicate" and not _twins(crawl, before):
        return False
    same = item.same_as(Item(before.path, before.etag, before.modified, before.size))
    return before.seen_run == crawl.run.number or same


def _take(crawl: Crawl, item: Item, before: ItemRecord | None) -> None:
    """Fetch one file and take it in; whatever is wrong with it is recorded with it alone."""
    base = before or ItemRecord(_key(item.path), "failed")
    try:
        taken = _taken(crawl, item, base)
    except Gone as error:
        if base.document_id is not None:
            return  # not seen: it has vanished
        taken = _marked(base, Item(item.path), "failed", error)
    except SourceDown as error:
        taken = _marked(base, Item(item.path), "failed", error)
    except (SourceError, DocumentError, InvalidRequest) as error:
        taken = _marked(base, item, "failed", error)
    crawl.ledger.source_runs.note(crawl.run, taken)


def _taken(crawl: Crawl, item: Item, base: ItemRecord) -> ItemRecord:
    """The file's record after it came in, or was found to hold what it held."""
    if base.path != item.path:
        raise InvalidRequest("the name is not valid Unicode", hint="Rename the file.")
    known = None
    if base.document_id is not None and base.failure is None:
        known = Item(base.path, base.etag, base.modified, base.size)
    crawl.room()  # before anything is fetched in vain
    fetching = crawl.place.fetch(item, known, crawl.keeper.check)
    if fetching.blocks is None:
        return replace(base, outcome="unchanged")
    with caught(fetching.blocks, crawl.most_mb, item.path, crawl.keeper.check) as content:
        seen = fetching.settle()
        read = replace(base, sha256=content.sha256, fetched_at=time.time())
        if known is not None and content.sha256 == base.sha256:
            return _marked(read, seen, "unchanged")
        try:
            accepted = _submit(crawl, item, content, known_as=base.document_id)
        except DuplicateContent as error:
            return _marked(read, seen, "duplicate", error)
    outcome: Outcome = "unchanged"
    if accepted.fresh:
        crawl.sent(accepted.document_id)
        outcome = "new" if accepted.version == 1 else "changed"
    return replace(_marked(read, seen, outcome), document_id=accepted.document_id)


def _submit(crawl: Crawl, item: Item, content: Caught, *, known_as: str | None) -> Accepted:
    """Take the content in as the desk does.

    A document follows its file even where another one holds the same now: what it held is no more.
    Files whose names differ only in what is not kept would be versions of one document: refused.
    """
    source, name = crawl.run.source, crawl.name_of(item.path)
    known = crawl.ledger.documents.id_of(source.collection, name, tenant=source.tenant)
    rival = known and crawl.ledger.source_runs.rival(crawl.run, known, item.path)
    if rival:
        raise InvalidRequest(f"{rival!r} is kept under the same name", hint="Rename one of them.")
    return take_in(
        crawl.ledger,
        crawl.blobs,
        source.collection,
        Submission(
            name=name,
            filename=clean_filename(item.path),
            title="",
            sha256=content.sha256,
            size=content.size,
            properties={**source.properties, SOURCE: crawl.place.address(item)},
        ),
        content.content,
        tenant=source.tenant,
        allow_duplicate=known is not None and known == known_as,
    )


def _delete_vanished(crawl: Crawl) -> int:
    """Delete the documents of files that are gone, where this run is to; how many."""
    runs, run = crawl.ledger.source_runs, crawl.run
    if not crawl.place.complete:
        raise SourceError(
            "a folder of the source could not be listed, so that nothing was deleted",
            hint="See its permissions, then sync again.",
        )
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
    """Other documents that hold what the file held when it was read."""
    source = crawl.run.source
    return crawl.ledger.documents.with_content(
        source.collection, before.sha256, but=crawl.name_of(before.path), tenant=source.tenant
    )


def _marked(
    base: ItemRecord, seen: Item, outcome: Outcome, error: CallslipError | None = None
) -> ItemRecord:
    """The record of a file with what its source told of it when this came of it."""
    return replace(
        base,
        outcome=outcome,
        etag=seen.etag,
        modified=seen.modified,
        size=seen.size,
        failure=None if error is None else Failure.of(error),
    )


def _key(path: str) -> str:
    """The path as the ledger can keep it."""
    return path.encode("utf-8", "backslashreplace").decode()[:1024]


def _batches(items: Iterator[Item]) -> Iterable[list[Item]]:
    while batch := list(islice(items, BATCH)):
        yield batch
