"""Chunks that come ready made are documents like any other to audits, archives and workers."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from memory_store import MemoryStore
from pipeline_parts import doing, make_context, submit

from callslip.errors import (
    Conflict,
    ObjectRefused,
    PermanentError,
    StoreDown,
    TransientError,
)
from callslip.ingestion import provided_chunks
from callslip.ingestion.context import StepContext
from callslip.ingestion.maintenance.removal import prune_documents, remove_documents
from callslip.ingestion.maintenance.repair import LOST, Repairs, repair
from callslip.ingestion.provided_chunks import ChunkScope, Written
from callslip.stores.audit.comparison import audit_scope, audit_scopes
from callslip.stores.audit.orphans import audit_files
from callslip.stores.blobs import Blobs
from callslip.stores.ledger import Ledger
from callslip.stores.records import BatchOutcome, ChunkRecord, CollectionSchema, VectorSpec
from callslip.stores.transfer import export_collection, import_archive

SCHEMA = CollectionSchema("papers", VectorSpec(4))


class Failing(MemoryStore):
    """A store that goes down before the second batch, once."""

    batches = 0

    def batch_upsert_chunks(
        self, collection: str, chunks: Sequence[ChunkRecord], *, tenant: str = ""
    ) -> BatchOutcome:
        self.batches += 1
        if self.batches == 2:
            raise StoreDown("gone for a moment")
        return super().batch_upsert_chunks(collection, chunks, tenant=tenant)


class Refusing(MemoryStore):
    """A store that refuses the chunk `bad`."""

    def batch_upsert_chunks(
        self, collection: str, chunks: Sequence[ChunkRecord], *, tenant: str = ""
    ) -> BatchOutcome:
        if any(chunk.chunk_id == "bad" for chunk in chunks):
            return BatchOutcome((), {"bad": "it is bad"})
        return super().batch_upsert_chunks(collection, chunks, tenant=tenant)


def a_place(folder: Path, store: MemoryStore) -> StepContext:
    ledger = Ledger(f"sqlite:///{folder / 'ledger.db'}")
    ledger.create()
    return make_context(ledger, Blobs(str(folder / "blobs")), store)


@pytest.fixture
def step_context(tmp_path: Path) -> Iterator[StepContext]:
    made = a_place(tmp_path, MemoryStore())
    with closing(made.ledger):
        yield make_collection(made)


def make_collection(step_context: StepContext) -> StepContext:
    step_context.store_of("memory").ensure_schema(SCHEMA)
    step_context.ledger.collections.create(SCHEMA, store="memory", embedder="tiny", analyzer="1")
    return step_context


def scope_of(step_context: StepContext) -> ChunkScope:
    return ChunkScope(step_context.backend, "memory", "papers")


def chunks(*names: str) -> list[ChunkRecord]:
    vector = np.array([1, 0, 0, 0], np.float32)
    return [ChunkRecord(name, "", f"text of {name}", name, vector, level=1) for name in names]


def sound(step_context: StepContext) -> bool:
    (scope,) = audit_scopes(step_context.ledger, {"memory": step_context.store_of("memory")})
    seen = audit_scope(step_context.ledger, scope)
    return not (
        seen.skipped or seen.findings or audit_files(step_context.ledger, step_context.blobs)
    )


def test_an_audit_finds_nothing_after_each_change(step_context: StepContext) -> None:
    scope = scope_of(step_context)
    assert provided_chunks.put(scope, "a", chunks("1", "2", "2", "3"), 2) == Written(3, 0)
    assert sound(step_context)
    assert provided_chunks.put(scope, "a", chunks("3", "4"), 2) == Written(1, 1)
    assert sound(step_context)
    document_id = step_context.ledger.documents.id_of("papers", "a") or ""
    assert step_context.ledger.versions.readable([document_id]) == set()
    provided_chunks.take_out(scope, document_id, {"1", "4"})
    assert sound(step_context)
    assert step_context.ledger.chunks.live_ids(document_id) == {"2", "3"}
    assert scope.store.find_ids("papers") == ["2", "3"]


@pytest.mark.parametrize(
    ("refused", "error"),
    [
        ([replace(chunks("2")[0], vector=np.ones(3, np.float32))], ObjectRefused),
        (chunks("2", "1"), Conflict),
        ([replace(chunks("2")[0], properties={"n": 1}), *chunks("bad")], ObjectRefused),
    ],
)
def test_a_refused_request_leaves_no_document_and_its_ids_are_free(
    tmp_path: Path, refused: list[ChunkRecord], error: type[PermanentError]
) -> None:
    step_context = make_collection(a_place(tmp_path, Refusing()))
    with closing(step_context.ledger):
        scope = scope_of(step_context)
        provided_chunks.put(scope, "a", chunks("1"), 9)
        with pytest.raises(error) as raised:
            provided_chunks.put(scope, "b", refused, 1)
        assert not re.search("[0-9a-f]{32}", raised.value.detail)  # no id of a document
        assert [d.name for d in step_context.ledger.documents.find("papers")] == ["a"]
        remove_documents(scope.backend, step_context.ledger.sweep.unremoved(resend_seconds=0))
        assert sound(step_context)
        assert provided_chunks.put(scope, "b", chunks("2"), 9) == Written(1, 0)
        with pytest.raises(error):
            provided_chunks.put(scope, "b", [*chunks("3"), *refused], 1)
        assert len(step_context.ledger.chunks.visible(["1", "2", "3"])) == 2
        assert sound(step_context)


def test_a_chunk_of_a_later_version_is_not_taken_from_its_document(
    step_context: StepContext,
) -> None:
    submit(step_context, "first")
    accepted = submit(step_context, "second")
    doing(step_context)(accepted.document_id, accepted.version)
    theirs = sorted(step_context.ledger.chunks.live_ids(accepted.document_id))
    with pytest.raises(Conflict, match="another document's"):
        provided_chunks.put(scope_of(step_context), "a", chunks(theirs[0]), 9)
    assert set(step_context.ledger.chunks.visible(theirs).values()) == {accepted.document_id}


def test_what_a_store_that_went_down_left_half_done_is_finished_by_the_same_call(
    tmp_path: Path,
) -> None:
    step_context = make_collection(a_place(tmp_path, Failing()))
    with closing(step_context.ledger):
        scope = scope_of(step_context)
        with pytest.raises(StoreDown):
            provided_chunks.put(scope, "a", chunks("1", "2"), 1)
        assert provided_chunks.put(scope, "a", chunks("1", "2"), 1) == Written(0, 2)
        assert scope.store.find_ids("papers") == ["1", "2"]
        assert sound(step_context)


class Interrupting(MemoryStore):
    """Calls `during` within its first deletion of chunks."""

    during: Callable[[], None] | None = None

    def delete_chunks(self, collection: str, chunk_ids: Iterable[str], *, tenant: str = "") -> None:
        if self.during is not None:
            during, self.during = self.during, None
            during()
        super().delete_chunks(collection, chunk_ids, tenant=tenant)


def test_one_process_at_a_time_deletes_a_chunk_so_none_that_is_put_again_is_lost(
    tmp_path: Path,
) -> None:
    store = Interrupting()
    step_context = make_collection(a_place(tmp_path, store))
    scope, ledger = scope_of(step_context), step_context.ledger
    with closing(ledger):
        provided_chunks.put(scope, "a", chunks("1", "2"), 2)
        document_id = str(ledger.documents.id_of("papers", "a"))

        def sweep() -> None:
            assert set(ledger.chunks.visible(["1", "2"])) == {"2"}  # hidden at once
            assert ledger.chunks.end(document_id) == set()

        store.during = sweep
        provided_chunks.take_out(scope, document_id, {"1"})
        assert provided_chunks.put(scope, "a", chunks("1"), 2) == Written(1, 0)
        prune_documents(scope.backend, ledger.sweep.unpruned())
        assert store.chunk_ids("papers", document_id)["vector"] == {"1", "2"}
        assert sound(step_context)


def test_a_deletion_that_the_store_refuses_is_done_by_the_sweep(tmp_path: Path) -> None:
    store = Interrupting()
    step_context = make_collection(a_place(tmp_path, store))
    scope, ledger = scope_of(step_context), step_context.ledger

    def fail() -> None:
        raise StoreDown("gone for a moment")

    with closing(ledger):
        provided_chunks.put(scope, "a", chunks("1", "2"), 2)
        document_id = str(ledger.documents.id_of("papers", "a"))
        store.during = fail
        with pytest.raises(StoreDown):
            provided_chunks.take_out(scope, document_id, {"1"})
        assert ledger.chunks.live_ids(document_id) == {"2"}
        with pytest.raises(TransientError, match="leaving"):
            provided_chunks.put(scope, "a", chunks("1"), 2)
        doing(step_context)(document_id, 1, "upsert")
        prune_documents(scope.backend, ledger.sweep.unpruned())
        assert store.chunk_ids("papers", document_id)["vector"] == {"2"}
        assert provided_chunks.put(scope, "a", chunks("1"), 2) == Written(1, 0)
        assert sound(step_context)


def test_a_worker_that_takes_a_document_over_leaves_it_as_it_is(step_context: StepContext) -> None:
    provided_chunks.put(scope_of(step_context), "a", chunks("1", "2"), 9)
    document_id = step_context.ledger.documents.id_of("papers", "a") or ""
    assert step_context.ledger.leases.reopen(document_id, 1, "upsert")
    doing(step_context)(document_id, 1, "upsert")
    assert step_context.ledger.chunks.live_ids(document_id) == {"1", "2"}
    assert sound(step_context)


def test_a_repair_never_makes_chunks_of_the_empty_original(step_context: StepContext) -> None:
    provided_chunks.put(scope_of(step_context), "a", chunks("1", "2"), 9)
    store = step_context.store_of("memory")
    use = Repairs(
        step_context.ledger, {"memory": store}, step_context.blobs, "tiny", doing(step_context)
    )
    store.delete_chunks("papers", ["1", "2"])
    (scope,) = audit_scopes(step_context.ledger, {"memory": store})
    findings = audit_scope(step_context.ledger, scope).findings
    assert {each.left for each in repair(findings, use)} == {LOST}


def test_they_move_with_an_archive(step_context: StepContext, tmp_path: Path) -> None:
    provided_chunks.put(scope_of(step_context), "a", chunks("1", "2"), 9)
    archive, folder = tmp_path / "papers.tar", tmp_path / "other"
    folder.mkdir()
    export_collection(step_context.backend, "papers", archive, lambda *_: None)
    other = a_place(folder, MemoryStore())
    with closing(other.ledger):
        backend = other.backend
        how = {"name": None, "to": None, "default": "memory"}
        import_archive(backend, archive, **how, progress=lambda *_: None)
        assert sound(other)
        assert provided_chunks.put(scope_of(other), "a", chunks("2", "3"), 9) == Written(1, 1)
