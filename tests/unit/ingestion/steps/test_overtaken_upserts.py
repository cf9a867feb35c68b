"""Two versions of a document whose upserts would run at once."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest
from ledger_moves import OVER, taken
from memory_store import MemoryStore
from pipeline_parts import held, look, make_context, paragraphs, submit

from callslip.ingestion.context import StepContext
from callslip.ingestion.pipeline import run_step
from callslip.stores.blobs import Blobs
from callslip.stores.ledger import STEPS, Accepted, Ledger
from callslip.stores.ledger.documents import progress
from callslip.stores.records import BatchOutcome, ChunkRecord, CollectionSchema, VectorSpec

WAIT_SECONDS = 20.0

TEXT = paragraphs("one", "two", "three")


class Slow(MemoryStore):
    """A store that takes long to write what the thread `old` sends."""

    def __init__(self) -> None:
        super().__init__()
        self.writing, self.may_write = threading.Event(), threading.Event()

    def batch_upsert_chunks(
        self, collection: str, chunks: Sequence[ChunkRecord], *, tenant: str = ""
    ) -> BatchOutcome:
        if threading.current_thread().name == "old":
            self.writing.set()
            assert self.may_write.wait(WAIT_SECONDS)
        return super().batch_upsert_chunks(collection, chunks, tenant=tenant)


@pytest.fixture
def slow() -> Slow:
    store = Slow()
    store.ensure_schema(CollectionSchema("papers", VectorSpec(4)))
    return store


@pytest.fixture
def step_context(
    slow: Slow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[StepContext]:
    """A step context with the collection `papers`, in which an upsert is put off for no time."""
    monkeypatch.setattr(progress, "PAUSE_SECONDS", 0.0)
    with closing(Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")) as ledger:
        ledger.create()
        schema = CollectionSchema("papers", VectorSpec(4))
        ledger.collections.create(schema, store="memory", embedder="tiny", analyzer="")
        yield make_context(ledger, Blobs(str(tmp_path / "blobs")), slow)


def run(step_context: StepContext, item: Accepted, *, steps: int = len(STEPS)) -> str:
    """Run the first steps of a version; return what may follow."""
    for step in STEPS[:steps]:
        if run_step(step_context, step, item.document_id, item.version) == "stop":
            return f"stopped at {step}"
    return "went on"


def departments(step_context: StepContext, store: MemoryStore, item: Accepted) -> set[object]:
    chunks = store.get_chunks("papers", sorted(held(step_context, item)))
    return {chunk.properties["dept"] for chunk in chunks}


def test_a_version_is_not_written_while_another_one_is(
    step_context: StepContext, slow: Slow
) -> None:
    run(step_context, submit(step_context, TEXT, dept="law"))
    second = submit(step_context, TEXT, dept="tax")
    run(step_context, second, steps=len(STEPS) - 1)
    ended: list[str] = []
    old = threading.Thread(target=lambda: ended.append(run(step_context, second)), name="old")
    old.start()
    assert slow.writing.wait(WAIT_SECONDS)
    third = submit(step_context, TEXT, dept="law")
    assert run(step_context, third) == "stopped at upsert"
    assert look(step_context, third).live_version == 1
    slow.may_write.set()
    old.join()
    assert ended == ["stopped at upsert"]
    assert run(step_context, third) == "went on"
    assert look(step_context, third).live_version == 3
    assert departments(step_context, slow, third) == {"law"}


@pytest.mark.parametrize("lease", [OVER, 3600.0], ids=["ended", "before the clock was set back"])
def test_the_lease_of_a_dead_worker_on_another_version_delays_none(
    step_context: StepContext, slow: Slow, lease: float
) -> None:
    first = submit(step_context, TEXT, dept="law")
    run(step_context, first, steps=len(STEPS) - 1)
    taken(step_context.ledger, first, "upsert", lease=lease)
    second = submit(step_context, TEXT, dept="tax")
    assert run(step_context, second) == "went on"
    assert departments(step_context, slow, second) == {"tax"}
