"""Several documents in one message: common transactions and batches, each with its own result."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest
from memory_store import MemoryStore
from pipeline_parts import Tiny, held, look, make_context, paragraphs, seen, submit, with_backend

from callslip.errors import EmbedderDown, InvalidRequest, LeaseLost, StoreDown
from callslip.ingestion.context import StepContext
from callslip.ingestion.pipeline import Next, StepReport, run_step, run_steps
from callslip.models.embedders.contract import Vectors
from callslip.stores.blobs import Blobs
from callslip.stores.ledger import STEPS, Accepted, Claim, Finished, Ledger, Step
from callslip.stores.ledger.base.lease_keeper import Renewals
from callslip.stores.records import BatchOutcome, ChunkRecord, CollectionSchema, VectorSpec


class Counting(MemoryStore):
    """A store that counts its batches, refuses what names `refused`, and is down while `down`."""

    def __init__(self) -> None:
        super().__init__()
        self.batches: list[int] = []
        self.refused, self.down = "", False

    def batch_upsert_chunks(
        self, collection: str, chunks: Sequence[ChunkRecord], *, tenant: str = ""
    ) -> BatchOutcome:
        if self.down:
            raise StoreDown("no answer")
        self.batches.append(len(chunks))
        bad = {c.chunk_id: "too odd" for c in chunks if self.refused and self.refused in c.body}
        good = [c for c in chunks if c.chunk_id not in bad]
        stored = super().batch_upsert_chunks(collection, good, tenant=tenant)
        return BatchOutcome(stored.stored, {**stored.failed, **bad})


@pytest.fixture
def store() -> Counting:
    return Counting()


@pytest.fixture
def step_context(tmp_path: Path, store: Counting) -> Iterator[StepContext]:
    """A step context on a ledger and blobs of its own, with the collection `papers`."""
    schema = CollectionSchema("papers", VectorSpec(4))
    store.ensure_schema(schema)
    with closing(Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")) as ledger:
        ledger.create()
        ledger.collections.create(schema, store="memory", embedder="tiny", analyzer="")
        made = make_context(ledger, Blobs(str(tmp_path / "blobs")), store)
        backend = made.backend
        settings = backend.settings
        ingest = settings.ingest.model_copy(update={"batch_size": 100})
        whole = settings.model_copy(update={"ingest": ingest})
        yield replace(made, backend=replace(backend, settings=whole))


@pytest.fixture
def items(step_context: StepContext) -> list[Accepted]:
    """Four new documents of one chunk each."""
    words = ("one", "two", "three", "four")
    return [submit(step_context, paragraphs(word), f"{word}.txt") for word in words]


def run(
    step_context: StepContext,
    items: Sequence[Accepted],
    steps: Sequence[Step] = STEPS,
) -> tuple[Next, list[StepReport]]:
    """Take documents through steps as one message does; returns the last result, and reports."""
    reports: list[StepReport] = []
    versions = [(item.document_id, item.version) for item in items]
    after: Next = "go on"
    for step in steps:
        after = run_steps(step_context, step, versions, reports.append)
        if after == "stop":
            break
    return after, reports


def states(step_context: StepContext, items: Sequence[Accepted]) -> list[str]:
    return [look(step_context, item).state for item in items]


def test_new_documents_share_a_batch_of_the_store_and_each_is_live(
    step_context: StepContext, store: Counting, items: list[Accepted]
) -> None:
    after, reports = run(step_context, items)
    assert after == "go on"
    assert [r.outcome for r in reports] == ["done"] * len(items) * len(STEPS)
    assert states(step_context, items) == ["live"] * 4
    assert store.batches == [12]  # a passage, its section and its document, of each
    words = [seen(step_context, item) for item in items]
    assert words == [["one0"], ["two0"], ["three0"], ["four0"]]
    for item in items:
        steps = look(step_context, item).steps
        assert [(s.step, s.state, s.attempts) for s in steps] == [(s, "done", 1) for s in STEPS]
        assert steps[-1].counts == {"chunks": 1, "parents": 2, "written": 3}


def test_a_message_leaves_what_one_document_after_the_other_leaves(
    step_context: StepContext, store: Counting, items: list[Accepted]
) -> None:
    run(step_context, items)
    together = [_events(step_context, item) for item in items]
    others = [submit(step_context, paragraphs(f"{n}x"), f"{n}.txt") for n in range(4)]
    for item in others:
        assert run(step_context, [item])[0] == "go on"
    assert [_events(step_context, item) for item in others] == together


def test_a_broken_document_fails_alone(step_context: StepContext, items: list[Accepted]) -> None:
    broken = submit(step_context, "%PDF-1.7 no more", "broken.pdf")
    after, reports = run(step_context, [items[0], broken, *items[1:]])
    assert after == "go on"
    assert states(step_context, items) == ["live"] * 4
    assert look(step_context, broken).state == "failed"
    assert [r.claim.document_id for r in reports if r.outcome != "done"] == [broken.document_id]


def test_what_the_store_refuses_fails_alone(
    step_context: StepContext, store: Counting, items: list[Accepted]
) -> None:
    store.refused = "three0"
    after, _ = run(step_context, items)
    assert after == "go on"
    assert states(step_context, items) == ["live", "live", "failed", "live"]
    failure = look(step_context, items[2]).steps[-1].failure
    assert failure is not None
    assert "too odd" in failure.detail


def test_while_the_store_is_down_each_document_waits_for_its_own_next_attempt(
    step_context: StepContext, store: Counting, items: list[Accepted]
) -> None:
    run(step_context, items, STEPS[:-1])
    store.down = True
    after, reports = run(step_context, items, STEPS[-1:])
    assert after == "stop"
    assert [r.outcome for r in reports] == ["retry"] * 4
    store.down = False
    assert run(step_context, items, STEPS[-1:]) == ("stop", [])  # the waits are not over


def test_what_cannot_be_written_waits_alone(
    step_context: StepContext, items: list[Accepted], monkeypatch: pytest.MonkeyPatch
) -> None:
    write = step_context.blobs.write

    def failing(document_id: str, name: str, content: bytes) -> None:
        if document_id == items[2].document_id:
            raise StoreDown("no answer")
        write(document_id, name, content)

    monkeypatch.setattr(step_context.blobs, "write", failing)
    after, reports = run(step_context, items, STEPS[:1])
    assert after == "go on"
    assert [r.outcome for r in reports] == ["done", "done", "retry", "done"]


class Picky(Tiny):
    """An embedder that counts the texts of its calls, and may refuse a text or be down."""

    refused, down = "", False

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[int] = []

    def passages(self, texts: Sequence[str]) -> Vectors:
        self.calls.append(len(texts))
        if self.down:
            raise EmbedderDown("no answer")
        if self.refused and any(self.refused in text for text in texts):
            raise InvalidRequest("too odd")
        return super().passages(texts)


@pytest.fixture
def picky(step_context: StepContext, items: list[Accepted]) -> tuple[StepContext, Picky]:
    """The context with such an embedder, after the step before."""
    run(step_context, items, STEPS[: STEPS.index("embed")])
    return (made := replace(step_context, embedder=Picky())), cast("Picky", made.embedder)


def test_the_embedder_gets_the_texts_of_several_documents_at_once(
    picky: tuple[StepContext, Picky], items: list[Accepted]
) -> None:
    context, embedder = picky
    assert run(context, items, ["embed", "upsert"])[0] == "go on"
    assert embedder.calls == [4]
    assert states(context, items) == ["live"] * 4
    for item in items:
        assert look(context, item).steps[-2].counts == {"vectors": 1, "embedded": 1}


def test_what_the_embedder_refuses_fails_alone(
    picky: tuple[StepContext, Picky], items: list[Accepted]
) -> None:
    context, embedder = picky
    embedder.refused = "three0"
    assert run(context, items, ["embed", "upsert"])[0] == "go on"
    assert embedder.calls == [4, 1, 1, 1, 1]
    assert states(context, items) == ["live", "live", "failed", "live"]


def test_an_embedder_that_is_down_is_called_once_for_all(
    picky: tuple[StepContext, Picky], items: list[Accepted]
) -> None:
    context, embedder = picky
    embedder.down = True
    after, reports = run(context, items, ["embed"])
    assert after == "stop"
    assert [r.outcome for r in reports] == ["retry"] * 4
    assert embedder.calls == [4]


@pytest.mark.parametrize("step", ["extract", "enrich", "embed", "upsert"])
def test_a_lease_that_is_lost_during_the_work_drops_that_document_alone(
    step_context: StepContext, items: list[Accepted], monkeypatch: pytest.MonkeyPatch, step: Step
) -> None:
    run(step_context, items, STEPS[: STEPS.index(step)])
    leases, lost = step_context.ledger.leases, items[2].document_id
    keep = leases.keep

    def losing(claims: Sequence[Claim]) -> Renewals:
        renewals = keep(claims)
        for claim, lease in zip(claims, renewals._leases, strict=True):
            if claim.document_id == lost:
                lease.lost = LeaseLost("another worker has it")
        return renewals

    monkeypatch.setattr(leases, "keep", losing)
    files = step_context.blobs.count(lost)
    after, reports = run(step_context, items, [step])
    assert after == "go on"
    assert [r.outcome for r in reports] == ["done", "done", "dropped", "done"]
    assert step_context.blobs.count(lost) == files


def test_a_deadlock_of_a_common_transaction_ends_in_one_for_each(
    step_context: StepContext, items: list[Accepted], monkeypatch: pytest.MonkeyPatch
) -> None:
    leases = step_context.ledger.leases
    monkeypatch.setattr(leases._database, "is_sqlite", False)
    for name in ("_claim_all", "_recorded_in_one"):
        monkeypatch.setattr(leases, name, partial(_alone_only, getattr(leases, name)))
    after, reports = run(step_context, items, STEPS[:1])
    assert after == "go on"
    assert [r.outcome for r in reports] == ["done"] * 4


def _alone_only(do: Callable[..., Any], some: Sequence[Any], *more: Any) -> Any:
    if len(some) > 1:
        raise StoreDown("the ledger does not answer: deadlock")
    return do(some, *more)


def test_what_cannot_be_recorded_in_common_is_recorded_alone(
    step_context: StepContext, items: list[Accepted], monkeypatch: pytest.MonkeyPatch
) -> None:
    leases = step_context.ledger.leases
    finish = leases.finish_all

    def failing(results: Sequence[Finished]) -> Any:
        if items[1].document_id in {each.claim.document_id for each in results}:
            raise ValueError
        return finish(results)

    monkeypatch.setattr(leases, "finish_all", failing)
    assert run(step_context, items, STEPS[:1])[0] == "go on"
    assert [s == "failed" for s in states(step_context, items)] == [False, True, False, False]


def test_a_document_that_vanished_meanwhile_leaves_the_others_alone(
    step_context: StepContext, store: Counting, items: list[Accepted]
) -> None:
    run(step_context, items, STEPS[:-1])
    step_context.ledger.documents.delete(items[1].document_id)
    after, reports = run(step_context, items, STEPS[-1:])
    assert after == "go on"
    assert [r.outcome for r in reports] == ["done"] * 3
    assert [bool(held(step_context, item)) for item in items] == [True, False, True, True]


def test_a_lease_that_is_lost_during_the_batch_drops_that_document_alone(
    step_context: StepContext, items: list[Accepted], monkeypatch: pytest.MonkeyPatch
) -> None:
    run(step_context, items, STEPS[:-1])
    leases = step_context.ledger.leases
    go_live = leases.go_live_all

    def late(results: Any) -> Any:
        step_context.ledger.documents.delete(items[2].document_id)
        return go_live(results)

    monkeypatch.setattr(leases, "go_live_all", late)
    _, reports = run(step_context, items, STEPS[-1:])
    assert [r.outcome for r in reports] == ["done", "done", "dropped", "done"]
    live = [items[0], items[1], items[3]]
    assert states(step_context, live) == ["live"] * 3


def test_a_ledger_that_does_not_record_puts_every_step_back(
    step_context: StepContext, items: list[Accepted], monkeypatch: pytest.MonkeyPatch
) -> None:
    def down(_: Any) -> Any:
        raise StoreDown("the ledger does not answer")

    monkeypatch.setattr(step_context.ledger.leases, "finish_all", down)
    after, reports = run(step_context, items, STEPS[:1])
    assert after == "stop"
    assert [r.outcome for r in reports] == ["retry"] * 4


def test_changed_documents_share_a_batch_with_new_ones_and_leave_what_each_leaves_alone(
    step_context: StepContext, store: Counting, items: list[Accepted]
) -> None:
    run(step_context, items)
    alone = submit(step_context, paragraphs("one", "more"), "one.txt")
    run(step_context, [alone])
    (written,) = _written(step_context, [alone])
    store.batches.clear()
    third = submit(step_context, paragraphs("three", "more"), "three.txt")
    same = submit(step_context, paragraphs("two"), "two.txt", state="final")
    new = submit(step_context, paragraphs("five"), "five.txt")
    assert run(step_context, [third, same, new])[0] == "go on"
    assert _written(step_context, [third, same, new]) == [written, 3, 3]
    assert store.batches == [written + 3 + 3]
    words = [seen(step_context, item) for item in (third, same, new)]
    assert words == [["three0", "more0"], ["two0"], ["five0"]]


def test_a_second_attempt_is_written_alone(
    step_context: StepContext, store: Counting, items: list[Accepted]
) -> None:
    settings = step_context.settings
    hurried = settings.ingest.model_copy(update={"retry_base_seconds": 1e-9})
    soon = with_backend(step_context, settings=settings.model_copy(update={"ingest": hurried}))
    run(soon, items, STEPS[:-1])
    store.down = True
    assert run(soon, items, STEPS[-1:])[0] == "stop"
    store.down = False
    assert run(soon, items, STEPS[-1:])[0] == "go on"
    assert store.batches == [3] * 4


def test_what_one_killed_worker_had_is_done_by_another(
    step_context: StepContext, items: list[Accepted], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        pass

    def die(_: Any) -> Any:
        raise Killed

    run(step_context, items, STEPS[:-1])
    with monkeypatch.context() as patch:
        patch.setattr(step_context.ledger.leases, "go_live_all", die)
        with pytest.raises(Killed):
            run(step_context, items, STEPS[-1:])
    assert run(step_context, items, STEPS[-1:]) == ("stop", [])  # the dead worker's leases last
    step_context.ledger.leases.expire_all()
    for item in items:
        assert run_step(step_context, "upsert", item.document_id, item.version) == "go on"
    assert states(step_context, items) == ["live"] * 4


def _events(step_context: StepContext, item: Accepted) -> list[tuple[str, str | None]]:
    events = step_context.ledger.events.of_document(item.document_id, after=0)
    return [(event.kind, event.step) for event in events]


def _written(step_context: StepContext, items: Sequence[Accepted]) -> list[int]:
    steps = [look(step_context, item).steps[-1] for item in items]
    assert [step.state for step in steps] == ["done"] * len(items)
    return [step.counts["written"] for step in steps]
