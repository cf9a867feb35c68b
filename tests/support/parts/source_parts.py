"""A source on a ledger and blobs of its own, looked at as a worker does it."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from callslip.ingestion.sources import Crawl, sync
from callslip.ingestion.sources.folder import Folder
from callslip.ingestion.sources.items import Origin
from callslip.stores.blobs import Blobs
from callslip.stores.ledger import DocumentRecord, Ledger, SourceRecord
from callslip.stores.records import CollectionSchema, VectorSpec


@dataclass
class Library:
    """A ledger with the collection `papers`, and the dispatched sources."""

    ledger: Ledger
    blobs: Blobs
    sent: list[str] = field(default_factory=list)
    room: Callable[[], object] = lambda: None
    removed: list[str] = field(default_factory=list)

    def add(self, url: str, name: str = "src", **more: Any) -> SourceRecord:
        """A source of the collection."""
        return self.ledger.sources.add("papers", name, url, **more)

    def crawl(
        self, source: SourceRecord, origin: Origin, *, slice_seconds: float = 60.0, most_mb: int = 1
    ) -> Crawl | None:
        """The right to do a slice; None where there is none to be had."""
        run = self.ledger.source_runs.claim(source.source_id, lease_seconds=30)
        if run is None:
            return None
        return Crawl(
            ledger=self.ledger,
            blobs=self.blobs,
            run=run,
            origin=origin,
            most_mb=most_mb,
            slice_seconds=slice_seconds,
            room=self.room,
            sent=self.sent.append,
            removed=self.removed.append,
            keeper=self.ledger.source_runs.keeper(run),  # not started: these runs are short
        )

    def look(self, source: SourceRecord, origin: Origin, **more: Any) -> SourceRecord:
        """A whole run; what the ledger says of the source then."""
        self.ledger.sources.ask(source.source_id, **more)
        while True:
            crawl = self.crawl(source, origin)
            assert crawl is not None
            if sync(crawl) == "ended":
                return self.again(source)

    def again(self, source: SourceRecord) -> SourceRecord:
        """The source as it stands."""
        found = self.ledger.sources.find(source.collection, source.name, tenant=source.tenant)
        assert found is not None
        return found

    def names(self) -> set[str]:
        """Names of the documents that there are."""
        return {document.name for document in self.ledger.documents.find("papers", limit=500)}

    def document(self, name: str) -> DocumentRecord:
        """The document of a name."""
        document_id = self.ledger.documents.id_of("papers", name)
        assert document_id is not None, name
        return self.ledger.documents.get(document_id)


def make_library(home: Path) -> Library:
    """A library in a folder of its own."""
    ledger = Ledger(f"sqlite:///{home / 'ledger.db'}")
    ledger.create()
    ledger.collections.create(
        CollectionSchema("papers", VectorSpec(4)), store="memory", embedder="tiny", analyzer=""
    )
    return Library(ledger, Blobs(str(home / "blobs")))


def later() -> None:
    """Let the clock of the file system move on."""
    time.sleep(0.02)


def scope(root: Path) -> Folder:
    """A folder as a source has it."""
    return Folder(f"file://{root}", most_mb=1, timeout_seconds=10)
