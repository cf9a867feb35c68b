"""The steps of a document on a real ledger and real blobs, with whatever can go wrong."""

import errno
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, cast

import pytest
from ledger_moves import OVER, taken
from memory_store import MemoryStore
from pipeline_parts import (
    SETTINGS,
    Lower,
    Reader,
    Tiny,
    held,
    look,
    make_context,
    paragraphs,
    seen,
    submit,
    with_backend,
)

from callslip.errors import (
    BrokenFile,
    EmbedderDown,
    LeaseLost,
    ObjectRefused,
    StoreDown,
    StoreReadOnly,
)
from callslip.ingestion.artifacts import EXTRACTED
from callslip.ingestion.context import StepContext
from callslip.ingestion.pipeline import MAX_LASTING_WAIT_SECONDS, run_step
from callslip.ingestion.steps import vectors
from callslip.ingestion.values import ExtractedText
from callslip.messages.options import Options
from callslip.models.embedders.contract import Vectors
from callslip.stores.blobs import Blobs, original_name
from callslip.stores.ledger import STEPS, Accepted, Ledger
from callslip.stores.levels import DOCUMENT, PASSAGE, SECTION
from callslip.stores.records import (
    BatchOutcome,
    ChunkRecord,
    CollectionSchema,
    DocumentRecord,
    VectorSpec,
)


@pytest.fixture
def step_context(tmp_path: Path) -> Iterator[StepContext]:
    """A step context on a ledger and blobs of its own, with the collection `papers`."""
    store = MemoryStore()
    store.ensure_schema(CollectionSchema("papers", VectorSpec(4)))
    with closing(Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")) as ledger:
        ledger.create()
        ledger.collections.create(
            CollectionSchema("papers", VectorSpec(4)), store="memory", embedder="tiny", analyzer=""
        )
        yield make_context(ledger, Blobs(str(tmp_path / "blobs")), store)


def run(step_context: StepContext, item: Accepted, *, upto: str = "upsert") -> str:
    """Run the chain of a version up to and with a step; returns where it ended."""
    for step in STEPS[: STEPS.index(cast("Any", upto)) + 1]:
        if run_step(step_context, step, item.document_id, item.version) == "stop":
            return f"stopped at {step}"
    return "went on"


def test_a_document_goes_through_all_steps_and_is_live(step_context: StepContext) -> None:
    item = submit(step_context, paragraphs("one", "two", "three"), dept="law")
    assert run(step_context, item) == "went on"
    found = look(step_context, item)
    assert (found.state, found.live_version) == ("live", 1)
    assert [(s.step, s.state, s.attempts) for s in found.steps] == [(s, "done", 1) for s in STEPS]
    assert [s.counts.get("chunks", s.counts.get("vectors")) for s in found.steps[2:]] == [3] * 4
    assert seen(step_context, item) == ["one0", "two0", "three0"]
    stored = step_context.store_of("memory").get_chunks(
        "papers", sorted(held(step_context, item)), include_vector=True
    )
    text = paragraphs("one", "two", "three")
    assert all(c.body == text[c.start : c.end] for c in stored)
    assert all(c.properties["dept"] == "law" for c in stored)


def test_what_a_reader_leaves_out_is_told(step_context: StepContext) -> None:
    item = submit(step_context, "<!DOCTYPE html><html><body><p>One.</p></body></html>")
    assert run(step_context, item) == "went on"
    warnings = ("read as text/html, though the name ends in .txt",)
    assert [step.warnings for step in look(step_context, item).steps] == [warnings] + [()] * (
        len(STEPS) - 1
    )
    (version,) = step_context.ledger.versions.of(item.document_id)
    assert version.warnings == warnings
    told = {
        (event.kind, event.step): (event.data or {}).get("warnings")
        for event in step_context.ledger.events.of_document(item.document_id, after=0)
    }
    assert told["step.finished", "extract"] == told["document.live", None] == list(warnings)
    assert told["step.finished", "chunk"] is None


def test_a_collection_says_which_fields_of_json_are_what(step_context: StepContext) -> None:
    def read(record: str, **fields: list[str]) -> tuple[list[str], str]:
        options = Options.model_validate({"json_fields": fields})
        step_context.ledger.collections.set_options("papers", options)
        item = submit(step_context, record, "a.json")
        assert run(step_context, item) == "went on"
        made = [(s.artifact or "").rpartition("-")[0] for s in look(step_context, item).steps[:4]]
        content = step_context.blobs.read(
            item.document_id, look(step_context, item).steps[0].artifact or ""
        )
        return made, EXTRACTED.load(content).text

    record = '{"title": "Leave", "question": "How long?", "answer": {"text": "Twelve weeks."}}'
    usual, text = read(record)
    assert "Leave\n\nquestion: How long?\nanswer.text: Twelve weeks." in text
    own, text = read(record + " ", title=["question"], text=["answer.text"])
    assert "How long?\n\nTwelve weeks." in text
    same = [a == b for a, b in zip(own, usual, strict=True)]
    assert same == [False, True, True, False], "the words of a title count in every chunk"
    reply, _ = read(record + "  ", title=["title", "name", "subject"])
    assert reply == usual, "what the settings say anyway changes nothing"


def test_no_step_runs_before_the_one_before_it(step_context: StepContext) -> None:
    item = submit(step_context, "words")
    for step in reversed(STEPS[1:]):
        assert run_step(step_context, step, item.document_id, item.version) == "stop"
    assert all(s.attempts == 0 for s in look(step_context, item).steps)


def test_a_chain_delivered_twice_does_nothing_the_second_time(step_context: StepContext) -> None:
    item = submit(step_context, paragraphs("one", "two"))
    run(step_context, item)
    before = look(step_context, item)
    assert run(step_context, item) == "went on"
    assert look(step_context, item) == before


def test_two_workers_at_once_do_each_step_once(step_context: StepContext) -> None:
    item = submit(step_context, paragraphs("one", "two"))
    for step in STEPS:
        with ThreadPoolExecutor(2) as pool:
            runs = [
                pool.submit(run_step, step_context, step, item.document_id, item.version)
                for _ in "12"
            ]
            assert "go on" in {r.result() for r in runs}
    assert look(step_context, item).state == "live"
    assert all(s.attempts == 1 for s in look(step_context, item).steps)


def test_work_goes_on_where_a_dead_worker_left_it_and_the_late_result_is_dropped(
    step_context: StepContext,
) -> None:
    item = submit(step_context, paragraphs("one"))
    run(step_context, item, upto="chunk")
    dead = taken(step_context.ledger, item, "enrich", lease=OVER)
    assert run(step_context, item) == "went on"
    with pytest.raises(LeaseLost):
        step_context.ledger.leases.finish(dead, "late", {})
    step = look(step_context, item).steps[3]
    assert (step.state, step.attempts, step.crashes) == ("done", 2, 1)
    assert step.artifact != "late"


def test_a_worker_that_is_overtaken_while_it_works_drops_its_result(
    step_context: StepContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    item = submit(step_context, paragraphs("one"))
    run(step_context, item, upto="chunk")
    embedder = Tiny()

    def overtaken(texts: Sequence[str]) -> Vectors:
        step_context.ledger.leases.expire_all()
        other = taken(step_context.ledger, item, "embed")
        step_context.ledger.leases.finish(other, "the other's", {"vectors": 1})
        return Tiny.passages(embedder, texts)

    run(step_context, item, upto="enrich")
    monkeypatch.setattr(embedder, "passages", overtaken)
    late = replace(step_context, embedder=cast("Any", embedder))
    assert run_step(late, "embed", item.document_id, 1) == "stop"
    step = look(step_context, item).steps[4]
    assert (step.state, step.artifact, step.attempts) == ("done", "the other's", 2)


def test_a_collection_that_is_not_embedded_anew_yet_has_the_previous_embedder(
    step_context: StepContext,
) -> None:
    class Other(Tiny):
        model = "other"

    item = submit(step_context, paragraphs("one"))
    other: Any = Other()
    changed = replace(step_context, embedder=other)
    assert run(changed, item) == "stopped at embed"
    later = submit(step_context, paragraphs("two"), "b.txt")
    both = replace(changed, previous=step_context.embedder)
    assert run(both, later) != "stopped at embed"
    assert look(step_context, later).state == "live"
    assert other.given == []


def test_a_transient_error_puts_the_step_back_with_a_time(step_context: StepContext) -> None:
    class Down(Tiny):
        def passages(self, texts: Sequence[str]) -> Vectors:
            raise EmbedderDown("no answer")

    item = submit(step_context, paragraphs("one"))
    down = replace(step_context, embedder=cast("Any", Down()))
    assert run(down, item) == "stopped at embed"
    found = look(step_context, item)
    step = found.steps[4]
    assert (found.state, step.state, step.attempts, step.crashes) == ("waiting", "pending", 1, 0)
    assert step.retry_at is not None
    assert step.failure is not None
    assert step.failure.type == "embedder-down"
    assert run(step_context, item) == "stopped at embed", "it is too early"
    impatient = SETTINGS.ingest.model_copy(update={"retry_for_seconds": 0.0})
    step_context.ledger.leases.expire_all()
    item = submit(step_context, paragraphs("two"))
    down = with_backend(down, settings=SETTINGS.model_copy(update={"ingest": impatient}))
    assert run(down, item) == "stopped at embed"
    found = look(step_context, item)
    assert found.state == "failed"
    assert found.newest.failure is not None
    assert (found.newest.failure.type, found.newest.failure.step) == ("embedder-down", "embed")


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (StoreDown("no answer"), "store-down"),
        (StoreReadOnly("full"), "store-read-only"),
        (OSError(errno.ENOSPC, "No space left on device"), "disk-full"),
    ],
)
def test_no_outage_of_a_store_and_no_full_disk_fails_a_document_for_good(
    step_context: StepContext, error: Exception, reason: str
) -> None:
    class Fails(MemoryStore):
        def batch_upsert_chunks(self, *_: object, **__: object) -> BatchOutcome:
            raise error

    fails = Fails()
    fails.ensure_schema(CollectionSchema("papers", VectorSpec(4)))
    impatient = SETTINGS.ingest.model_copy(update={"retry_for_seconds": 0.0})
    settings = SETTINGS.model_copy(update={"ingest": impatient})
    down = with_backend(step_context, settings=settings, store_of=lambda _: fails)
    item = submit(down, paragraphs("one"))
    assert run(down, item) == "stopped at upsert"
    found = look(step_context, item)
    assert (found.state, found.steps[-1].state) == ("waiting", "pending")
    assert found.steps[-1].failure is not None
    assert found.steps[-1].failure.type == reason
    assert found.steps[-1].retry_at is not None
    assert found.steps[-1].retry_at < time.time() + 1.25 * MAX_LASTING_WAIT_SECONDS


def test_a_file_that_cannot_be_read_fails_with_its_reason(step_context: StepContext) -> None:
    item = submit(step_context, "%PDF-1.7 and nothing more", "a.pdf")
    assert run(step_context, item) == "stopped at extract"
    failure = look(step_context, item).newest.failure
    assert failure is not None
    assert (failure.type, failure.step) == ("broken-file", "extract")
    assert failure.advice == BrokenFile.hint
    assert run(step_context, item) == "stopped at extract"


def test_a_mistake_of_ours_is_named_without_its_message(
    step_context: StepContext, caplog: pytest.LogCaptureFixture
) -> None:
    class Wrong(Lower):
        def analyze(self, text: str) -> str:
            raise ValueError(f"cannot analyze {text!r}")

    item = submit(step_context, "a secret of the document")
    with caplog.at_level(logging.DEBUG):
        assert (
            run(replace(step_context, analyzer=cast("Any", Wrong())), item) == "stopped at enrich"
        )
    failure = look(step_context, item).newest.failure
    assert failure is not None
    assert (failure.type, failure.step) == ("internal-error", "enrich")
    assert "ValueError at test_pipeline.py:" in failure.detail
    assert "secret" not in str(failure) + caplog.text


def test_a_document_that_kills_its_worker_each_time_is_set_aside(step_context: StepContext) -> None:
    item = submit(step_context, "words")
    for _ in range(SETTINGS.ingest.max_attempts):
        taken(step_context.ledger, item, lease=OVER)
    assert run(step_context, item) == "stopped at extract"
    failure = look(step_context, item).newest.failure
    assert failure is not None
    assert failure.type == "worker-lost"


def test_a_newer_version_stops_the_older_one_and_takes_its_place(step_context: StepContext) -> None:
    old = submit(step_context, paragraphs("one", "two"))
    run(step_context, old, upto="enrich")
    new = submit(step_context, paragraphs("three"))
    assert run(step_context, old) == "stopped at embed"
    assert run(step_context, new) == "went on"
    assert seen(step_context, new) == ["three0"]
    assert step_context.ledger.documents.version(old.document_id, 1).state == "superseded"


def test_unchanged_chunks_keep_their_ids_and_vectors_and_the_others_change_at_go_live(
    step_context: StepContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = submit(step_context, paragraphs("one", "two"))
    run(step_context, first)
    before, embedder = held(step_context, first), Tiny()
    second = submit(step_context, paragraphs("two", "three"))
    new = replace(step_context, embedder=cast("Any", embedder))
    run(new, second, upto="embed")
    assert [text.split()[0] for text in embedder.given] == ["three0"]
    go_live = step_context.ledger.leases.go_live_all
    shown: list[list[str]] = []

    def looked_at(*given: Any) -> Any:
        shown.append(sorted(seen(step_context, first)))
        lost = go_live(*given)
        shown.append(sorted(seen(step_context, first)))
        return lost

    monkeypatch.setattr(step_context.ledger.leases, "go_live_all", looked_at)
    run(new, second)
    assert shown == [["one0", "two0"], ["three0", "two0"]]
    assert len(held(step_context, first) & before) == 4, "two passages, their section, the document"
    ended = step_context.ledger.chunks.end(first.document_id)
    assert ended == before - set(step_context.ledger.chunks.visible(sorted(before)))
    levels = [c.level for c in step_context.store_of("memory").get_chunks("papers", sorted(ended))]
    assert sorted(levels) == [DOCUMENT, SECTION, PASSAGE]


def test_a_version_that_differs_in_a_property_computes_nothing_again(
    step_context: StepContext,
) -> None:
    first = submit(step_context, paragraphs("one", "two"), lang="en")
    run(step_context, first)
    artifacts = [s.artifact for s in look(step_context, first).steps]
    blobs = step_context.blobs.count(first.document_id)

    class Never:
        def __getattr__(self, name: str) -> Any:
            raise AssertionError(f"{name} was used")

    class Known(Never):
        model = "tiny"

    never = {"extractor": Never(), "tokenizer": Never(), "analyzer": Never(), "embedder": Known()}
    second = submit(step_context, paragraphs("one", "two"), lang="ko")
    assert run(replace(step_context, **cast("Any", never)), second) == "went on"
    assert [s.artifact for s in look(step_context, first).steps] == artifacts
    assert step_context.blobs.count(first.document_id) == blobs
    stored = step_context.store_of("memory").get_chunks("papers", sorted(held(step_context, first)))
    assert {c.properties["lang"] for c in stored} == {"ko"}


def test_what_was_embedded_before_a_crash_is_not_embedded_again(
    step_context: StepContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        pass

    class Dies(Tiny):
        def passages(self, texts: Sequence[str]) -> Vectors:
            if self.given:
                raise Killed
            return super().passages(texts)

    monkeypatch.setattr(vectors, "EMBED_BATCH", 2)
    words = ["one", "two", "three", "four", "five"]
    item = submit(step_context, paragraphs(*words))
    first, second = Dies(), Tiny()
    with pytest.raises(Killed):
        run(replace(step_context, embedder=cast("Any", first)), item)
    assert look(step_context, item).steps[4].state == "running"
    step_context.ledger.leases.expire_all()
    assert run(replace(step_context, embedder=cast("Any", second)), item) == "went on"
    assert len(first.given) == 2
    assert len(second.given) == 3
    assert seen(step_context, item) == [f"{word}0" for word in words]


def test_a_text_that_stands_there_twice_is_embedded_once(step_context: StepContext) -> None:
    item = submit(step_context, paragraphs("one", "two", "one"))
    assert run(step_context, item) == "went on"
    assert len(cast("Any", step_context.embedder).given) == 2
    assert seen(step_context, item) == ["one0", "two0", "one0"]


def test_a_document_deleted_during_work_leaves_nothing_new(step_context: StepContext) -> None:
    item = submit(step_context, paragraphs("one"))
    before = step_context.blobs.count(item.document_id)

    class Deleted(Reader):
        def extract(self, data: bytes, filename: str, fields: object) -> ExtractedText:
            step_context.ledger.documents.delete(item.document_id)
            while step_context.ledger.sweep.busy(
                item.document_id
            ):  # until the lease is not renewed
                pass
            return super().extract(data, filename)

    hurried = SETTINGS.ingest.model_copy(update={"lease_seconds": 0.3})
    during = replace(
        with_backend(step_context, settings=SETTINGS.model_copy(update={"ingest": hurried})),
        extractor=cast("Any", Deleted()),
    )
    assert run(during, item) == "stopped at extract"
    assert look(step_context, item).state == "deleted"
    assert step_context.blobs.count(item.document_id) == before
    assert not step_context.ledger.sweep.busy(item.document_id)


@pytest.mark.parametrize("step", STEPS)
def test_a_document_deleted_between_steps_is_not_worked_on(
    step_context: StepContext, step: str
) -> None:
    item = submit(step_context, paragraphs("one"))
    if step != "extract":
        run(step_context, item, upto=STEPS[STEPS.index(cast("Any", step)) - 1])
    step_context.ledger.documents.delete(item.document_id)
    assert run_step(step_context, cast("Any", step), item.document_id, 1) == "stop"
    assert held(step_context, item) == set()


def test_a_lease_is_given_back_when_the_work_turns_out_to_be_in_vain(
    step_context: StepContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    item = submit(step_context, paragraphs("one"))
    run(step_context, item, upto="embed")
    expect = step_context.ledger.chunks.expect

    def deleted(*given: Any) -> None:
        step_context.ledger.documents.delete(item.document_id)
        expect(*given)

    monkeypatch.setattr(step_context.ledger.chunks, "expect", deleted)
    assert run(step_context, item) == "stopped at upsert"
    assert held(step_context, item) == set()
    assert not step_context.ledger.sweep.busy(item.document_id)


def test_a_store_that_lost_chunks_makes_no_version_live(step_context: StepContext) -> None:
    class Forgetful(MemoryStore):
        def batch_upsert_chunks(
            self, collection: str, chunks: Sequence[ChunkRecord], *, tenant: str = ""
        ) -> BatchOutcome:
            super().batch_upsert_chunks(collection, chunks[:1], tenant=tenant)
            return BatchOutcome(tuple(c.chunk_id for c in chunks))

    forgetful = Forgetful()
    forgetful.ensure_schema(CollectionSchema("papers", VectorSpec(4)))
    item = submit(step_context, paragraphs("one", "two"))
    assert (
        run(with_backend(step_context, store_of=lambda _: forgetful), item) == "stopped at upsert"
    )
    found = look(step_context, item)
    assert (found.state, found.live_version) == ("waiting", None)
    assert found.steps[5].failure is not None
    assert found.steps[5].failure.type == StoreDown.slug
    assert "lacks 2 of 4" in found.steps[5].failure.detail


def test_an_object_that_the_store_refuses_fails_the_version_and_is_named(
    step_context: StepContext,
) -> None:
    class Choosy(MemoryStore):
        def batch_upsert_chunks(
            self, collection: str, chunks: Sequence[ChunkRecord], *, tenant: str = ""
        ) -> BatchOutcome:
            return BatchOutcome((), {chunks[0].chunk_id: "a property is too long"})

    choosy = Choosy()
    choosy.ensure_schema(CollectionSchema("papers", VectorSpec(4)))
    item = submit(step_context, paragraphs("one"))
    assert run(with_backend(step_context, store_of=lambda _: choosy), item) == "stopped at upsert"
    found = look(step_context, item)
    assert found.state == "failed"
    assert found.newest.failure is not None
    assert found.newest.failure.type == ObjectRefused.slug
    assert "a property is too long" in found.newest.failure.detail


@pytest.mark.parametrize("tenant", ["", "t"])
@pytest.mark.parametrize("lost_before", ["ensure_tenant", "batch_upsert_documents", "chunk_ids"])
def test_a_store_that_lost_its_contents_is_tried_again(
    step_context: StepContext, tenant: str, lost_before: str
) -> None:
    class Emptied(MemoryStore):
        def __getattribute__(self, name: str) -> Any:
            if name == lost_before:
                super().__getattribute__("drop_tenant" if tenant else "drop_collection")(*lost)
            return super().__getattribute__(name)

    lost = ["acme", tenant] if tenant else ["papers"]
    schema = CollectionSchema(lost[0], VectorSpec(4), tenants=bool(tenant))
    emptied = Emptied()
    emptied.ensure_schema(schema)
    if lost_before == "ensure_tenant":
        emptied.drop_collection(lost[0])
    if tenant:
        step_context.ledger.collections.create(schema, store="memory", embedder="tiny", analyzer="")
    item = submit(step_context, paragraphs("one"), collection=lost[0], tenant=tenant)
    assert run(with_backend(step_context, store_of=lambda _: emptied), item) == "stopped at upsert"
    found = look(step_context, item)
    assert found.state == "waiting"
    assert found.steps[5].failure
    assert "has lost" in found.steps[5].failure.detail
    assert f"collection {lost[0]!r}" in found.steps[5].failure.detail


@pytest.mark.parametrize("left", [[], ["blobs"], ["blobs", "documents"]])
def test_documents_wait_for_a_blob_store_that_is_not_mounted(
    step_context: StepContext, tmp_path: Path, left: list[str]
) -> None:
    impatient = SETTINGS.ingest.model_copy(update={"retry_for_seconds": 0.0})
    settings = SETTINGS.model_copy(update={"ingest": impatient})
    step_context = with_backend(step_context, settings=settings)
    begun, new = (submit(step_context, paragraphs(word), word) for word in ("one", "two"))
    run(step_context, begun, upto="sectionize")
    (tmp_path / "blobs").rename(tmp_path / "away")
    tmp_path.joinpath(*left).mkdir(parents=True, exist_ok=True)
    assert (run(step_context, begun), run(step_context, new)) == (
        "stopped at chunk",
        "stopped at extract",
    )
    for item in (begun, new):
        found = look(step_context, item)
        assert found.state == "waiting"
        failure = next(step.failure for step in found.steps if step.failure)
        assert (failure.type, failure.detail) == (
            "store-down",
            "the blob store has no file of any document",
        )


def test_a_missing_file_of_one_document_is_tried_again_for_a_while(
    step_context: StepContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    submit(step_context, paragraphs("one"), "one")
    item = submit(step_context, paragraphs("two"), "two")
    name = original_name(step_context.ledger.documents.version(item.document_id, 1).sha256)
    content = step_context.blobs.read(item.document_id, name)
    step_context.blobs.delete(item.document_id)
    assert run(step_context, item) == "stopped at extract"
    step = look(step_context, item).steps[0]
    assert step.failure
    assert (step.state, step.failure.type) == ("pending", "file-missing")
    step_context.blobs.write(item.document_id, name, content)  # as an upload that ends late
    monkeypatch.setattr(time, "time", lambda: cast("float", step.retry_at) + 1)
    assert run(step_context, item) == "went on"


def test_a_chunk_that_comes_back_while_it_is_pruned_is_in_the_store_afterwards(
    step_context: StepContext,
) -> None:
    hurried = SETTINGS.ingest.model_copy(update={"retry_base_seconds": 1e-9})
    step_context = with_backend(
        step_context, settings=SETTINGS.model_copy(update={"ingest": hurried})
    )
    run(step_context, submit(step_context, paragraphs("one", "two")))
    run(step_context, submit(step_context, paragraphs("two")))
    third = submit(step_context, paragraphs("three", "one"))
    leaving = step_context.ledger.chunks.end(third.document_id)
    assert run(step_context, third) == "stopped at embed"
    step_context.store_of("memory").delete_chunks("papers", leaving)
    step_context.ledger.chunks.forget(third.document_id, leaving)
    assert run(step_context, third) == "went on"
    assert seen(step_context, third) == ["three0", "one0"]


class Counting(MemoryStore):
    """A store that says which chunks were written."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[str] = []

    def batch_upsert_chunks(
        self, collection: str, chunks: Sequence[ChunkRecord], *, tenant: str = ""
    ) -> BatchOutcome:
        self.written += [c.body.split()[0] for c in chunks if c.level == PASSAGE]
        return super().batch_upsert_chunks(collection, chunks, tenant=tenant)


@pytest.fixture
def counting(step_context: StepContext) -> Counting:
    store = Counting()
    store.ensure_schema(CollectionSchema("papers", VectorSpec(4)))
    return store


def test_a_changed_file_writes_and_analyzes_only_what_changed(
    step_context: StepContext, counting: Counting
) -> None:
    class Remembers(Lower):
        given: ClassVar[list[str]] = []

        def analyze(self, text: str) -> str:
            self.given.append(text.split()[0])
            return text.lower()

    with_it = replace(
        with_backend(step_context, store_of=lambda _: counting), analyzer=cast("Any", Remembers())
    )
    rest = f"\n\nPart 2\n\n{paragraphs('four', 'five', 'six')}"
    run(with_it, submit(step_context, f"Part 1\n\n{paragraphs('one', 'two', 'three')}{rest}"))
    counting.written.clear()
    Remembers.given.clear()
    second = submit(step_context, f"Part 1\n\n{paragraphs('one', 'different', 'three')}{rest}")
    assert run(with_it, second) == "went on"
    assert counting.written == ["different0", "Part", "three0"], (
        "what is beside it has another parent"
    )
    assert Remembers.given == ["different0"]
    counts = step_context.ledger.versions.of(second.document_id)[0].counts
    assert counts["embed"] == {"vectors": 6, "embedded": 1}
    assert counts["upsert"] == {"chunks": 6, "parents": 3, "written": 6}


def test_chunks_that_only_stand_elsewhere_are_not_written_and_say_where_they_stand(
    step_context: StepContext, counting: Counting
) -> None:
    with_it = with_backend(step_context, store_of=lambda _: counting)
    first = paragraphs("one", "two", "three")
    rest = f"{first}\n\nPart 2\n\n{paragraphs('four', 'five', 'six')}"
    run(with_it, submit(step_context, f"Part 1\n\nshort {rest}"))
    counting.written.clear()
    text = f"Part 1\n\nsomewhat-longer {rest}"
    second = submit(step_context, text)
    run(with_it, second)
    assert len(counting.written) == 3, "those of the part, which is another one now"
    ids = sorted(step_context.ledger.chunks.live_ids(second.document_id))
    bodies = {c.chunk_id: c.body for c in counting.get_chunks("papers", ids)}
    seen = step_context.ledger.chunks.seen(ids)
    for chunk_id, scope in seen.items():
        assert scope.span is not None
        assert text[slice(*scope.span)] == bodies[chunk_id]


def test_a_vector_that_the_cache_has_dropped_is_taken_from_the_version_before(
    step_context: StepContext,
) -> None:
    run(step_context, submit(step_context, paragraphs("one", "two", "three")))
    step_context.ledger.vectors.trim(0)
    embedder = Tiny()
    without = replace(step_context, embedder=cast("Any", embedder))
    assert run(without, submit(step_context, paragraphs("one", "new", "three"))) == "went on"
    assert [text.split()[0] for text in embedder.given] == ["new0"]


def test_what_a_version_that_never_was_live_left_in_a_chunk_is_put_right(
    step_context: StepContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = paragraphs("one", "two")
    item = submit(step_context, text, dept="law")
    run(step_context, item)
    never = submit(step_context, text, dept="tax")
    with monkeypatch.context() as patched:
        patched.setattr(
            step_context.ledger.leases, "go_live", lambda *_: (_ for _ in ()).throw(OSError)
        )
        run(step_context, never)
    again = submit(step_context, text, dept="law")
    assert run(step_context, again) == "went on"
    stored = step_context.store_of("memory").get_chunks("papers", sorted(held(step_context, item)))
    assert {c.properties["dept"] for c in stored} == {"law"}


def test_an_older_version_comes_back_without_a_model(step_context: StepContext) -> None:
    item = submit(step_context, paragraphs("one", "two", "three"), dept="law")
    run(step_context, item)
    ids = step_context.ledger.chunks.live_ids(item.document_id)
    run(step_context, submit(step_context, paragraphs("one", "other", "three")))
    ended = step_context.ledger.chunks.end(item.document_id)
    step_context.store_of("memory").delete_chunks("papers", ended)
    step_context.ledger.chunks.forget(item.document_id, ended)

    class Never:
        model = "tiny"

        def __getattr__(self, name: str) -> Any:
            raise AssertionError(f"{name} was used")

    never = {"extractor": Never(), "tokenizer": Never(), "analyzer": Never(), "embedder": Never()}
    back = step_context.ledger.versions.restore(item.document_id, 1)
    assert seen(step_context, item) == ["one0", "other0", "three0"]
    assert run(replace(step_context, **cast("Any", never)), back) == "went on"
    assert seen(step_context, item) == ["one0", "two0", "three0"]
    assert step_context.ledger.chunks.live_ids(item.document_id) == ids
    stored = step_context.store_of("memory").get_chunks("papers", sorted(ids))
    assert {c.properties["dept"] for c in stored} == {"law"}


def test_an_older_version_whose_artifacts_are_gone_is_made_anew_from_its_original(
    step_context: StepContext,
) -> None:
    item = submit(step_context, paragraphs("one", "two"))
    run(step_context, item)
    run(step_context, submit(step_context, paragraphs("one", "other")))
    original = original_name(step_context.ledger.documents.version(item.document_id, 1).sha256)
    content = step_context.blobs.read(item.document_id, original)
    step_context.blobs.delete(item.document_id)
    step_context.blobs.write(item.document_id, original, content)
    back = step_context.ledger.versions.restore(item.document_id, 1)
    assert run(step_context, back) == "went on"
    assert seen(step_context, item) == ["one0", "two0"]


def test_a_passage_is_embedded_under_the_title_that_it_does_not_say(
    step_context: StepContext,
) -> None:
    text = "Leave rules\n\n" + paragraphs("one", "two")
    assert run(step_context, submit(step_context, text, title=" Leave\nrules ")) == "went on"
    given = sorted(cast("Any", step_context.embedder).given, key=lambda t: t.split()[-1])
    assert [t.split()[:3] for t in given] == [
        ["Leave", "rules", "one0"],
        ["Leave", "rules", "two0"],
    ]
    assert [t.splitlines()[1] == "" for t in given] == [True, False]


def test_the_words_of_the_title_are_words_of_every_chunk(step_context: StepContext) -> None:
    item = submit(step_context, paragraphs("one", "two"), title="Parental Leave")
    run(step_context, item)
    stored = step_context.store_of("memory").get_chunks(
        "papers", sorted(held(step_context, item)), include_terms=True
    )
    assert {c.level for c in stored} == {DOCUMENT, SECTION, PASSAGE}
    assert all((c.terms or "").split()[-2:] == ["parental", "leave"] for c in stored)
    assert all((c.terms or "").count("parental") == 1 for c in stored)


def test_another_title_embeds_what_stands_under_it_again(step_context: StepContext) -> None:
    text = "Leave rules\n\n" + paragraphs("one", "two")
    for title in ("Leave rules", "Rules", "Rules on leave"):
        run(step_context, submit(step_context, text, title=title))
    given = cast("Any", step_context.embedder).given
    assert [t.split()[0] for t in given if t.split()[-1] == "two29"] == ["Leave", "Rules", "Rules"]
    assert len(given) == 5


class Overtaken(MemoryStore):
    """Calls `during` at the end of an upsert, once."""

    during: Callable[[], object] | None = None

    def batch_upsert_documents(
        self, collection: str, documents: Sequence[DocumentRecord], *, tenant: str = ""
    ) -> BatchOutcome:
        outcome = super().batch_upsert_documents(collection, documents, tenant=tenant)
        if self.during is not None:
            during, self.during = self.during, None
            during()
        return outcome


def test_the_store_gets_back_the_live_version_if_the_ones_after_it_fail(
    step_context: StepContext,
) -> None:
    store = Overtaken()
    store.ensure_schema(CollectionSchema("papers", VectorSpec(4)))
    step_context = with_backend(step_context, store_of=lambda _: store)
    ledger, text = step_context.ledger, paragraphs("one", "two")
    item = submit(step_context, text, title="Old")
    assert run(step_context, item) == "went on"

    def titles() -> set[str]:
        ids = sorted(ledger.chunks.live_ids(item.document_id))
        return {chunk.title for chunk in store.get_chunks("papers", ids)}

    submitted: list[Accepted] = []
    store.during = lambda: submitted.append(submit(step_context, " ", title="Broken"))
    assert run(step_context, submit(step_context, text, title="New")) == "stopped at upsert"
    assert titles() == {"New"}
    assert run(step_context, submitted[0]) == "stopped at extract"
    record = look(step_context, item)
    assert (record.live_version, record.newest.version, record.newest.state) == (1, 3, "failed")
    due = ledger.sweep.stuck(idle=True, resend_seconds=0, max_crashes=3)
    assert [(each.version, each.step) for each in due] == [(1, "upsert")]
    assert run_step(step_context, "upsert", item.document_id, 1) == "go on"
    assert titles() == {"Old"}
    assert look(step_context, item).live_version == 1
    assert ledger.versions.of(item.document_id)[-1].record.state == "live"
