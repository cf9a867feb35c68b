"""Installations with what a backup has: documents, conversations, feedback, webhooks."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langgraph.checkpoint.base import empty_checkpoint
from memory_store import MemoryStore
from pipeline_parts import doing, make_context, paragraphs, submit

from callslip.agent.conversations import Threads, make_saver
from callslip.agent.state import Turn
from callslip.ingestion.context import StepContext
from callslip.ingestion.maintenance.rebuild import restore
from callslip.stores.backend import Backend
from callslip.stores.backup import manifest as manifests
from callslip.stores.backup.destination import Destination
from callslip.stores.backup.making import Made, make_backup
from callslip.stores.backup.restoring import Restored
from callslip.stores.blobs import Blobs
from callslip.stores.contract import Store
from callslip.stores.ledger import Accepted, Ledger
from callslip.stores.records import CollectionSchema, VectorSpec


@dataclass
class Installation:
    """A ledger, blobs, one store and conversations in a folder."""

    folder: Path
    steps: StepContext
    threads: Threads

    @property
    def backend(self) -> Backend:
        return self.steps.backend

    @property
    def ledger(self) -> Ledger:
        return self.backend.ledger

    @property
    def store(self) -> Store:
        return self.backend.store_of("")

    def collection(self, name: str = "papers", *, tenants: bool = False) -> None:
        """Make a collection."""
        schema = CollectionSchema(name, VectorSpec(4), tenants=tenants)
        self.ledger.collections.create(
            schema, store=self.store.kind, embedder="tiny", analyzer="lower"
        )
        self.store.ensure_schema(schema)

    def publish(self, name: str, *words: str, **more: Any) -> Accepted:
        """Ingest a document, one passage a word."""
        item = submit(self.steps, paragraphs(*words), name, **more)
        doing(self.steps)(item.document_id, item.version)
        assert self.ledger.documents.get(item.document_id).live_version == item.version
        return item

    def converse(self, thread: str, text: str, trace_id: str = "", tenant: str = "") -> str:
        """Store a conversation of one turn in the collection `papers`; return its key."""
        key = self.threads.open("papers", tenant, thread)
        turn = Turn(
            question="q", base="q", tails=[], text=text, answered=True, trace_id=trace_id, at=1.0
        )
        checkpoint = empty_checkpoint()
        checkpoint["channel_values"] = {"turns": [turn]}
        checkpoint["channel_versions"] = {"turns": "1"}
        config: Any = {"configurable": {"thread_id": key, "checkpoint_ns": ""}}
        self.threads.saver.put(config, checkpoint, {}, {"turns": "1"})
        return key

    def back_up(self, to: Destination, **more: Any) -> Made:
        """Make a backup."""
        return make_backup(self.backend, self.threads, to, {"store": "x"}, **{"keep": 0} | more)

    def restore(self, from_: Destination, name: str | None = None) -> Restored:
        """Restore one, the newest by default."""
        whole = manifests.newest(from_, name)
        kind = self.store.kind
        return restore(self.backend, self.threads, from_, whole, to=kind, only=frozenset({kind}))

    def close(self) -> None:
        """Close what is open."""
        self.threads.close()
        self.ledger.close()


@contextmanager
def installation(
    folder: Path, store: Store | None = None, ledger_url: str | None = None
) -> Iterator[Installation]:
    """An empty installation."""
    folder.mkdir()
    url = ledger_url or f"sqlite:///{folder / 'ledger.db'}"
    ledger = Ledger(url)
    ledger.create()
    steps = make_context(ledger, Blobs(str(folder / "blobs")), store or MemoryStore())
    threads = Threads(make_saver(url, folder), ledger.conversations)
    made = Installation(folder, steps, threads)
    try:
        yield made
    finally:
        made.close()
