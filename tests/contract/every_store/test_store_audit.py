"""The audit over every store, and over Chroma's two halves after a writer was killed."""

import multiprocessing
import os
import shutil
import signal
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from pipeline_parts import doing, make_context, paragraphs, submit

from callslip.config.settings import Settings
from callslip.ingestion.context import StepContext
from callslip.ingestion.maintenance.repair import Repairs, repair
from callslip.ingestion.pipeline import run_step
from callslip.stores.audit.comparison import ScopeReport, audit_scope, audit_scopes
from callslip.stores.blobs import Blobs
from callslip.stores.contract import Store
from callslip.stores.fulltext.index import KeywordIndex
from callslip.stores.ledger import STEPS, Accepted, Ledger
from callslip.stores.properties.filters import Condition, Where
from callslip.stores.records import ChunkRecord, CollectionSchema, VectorSpec
from callslip.stores.registry import make_store
from callslip.stores.tfidf.store import TfidfStore

pytest_plugins = ["store_fixtures"]


@dataclass(frozen=True)
class Audited:
    """A collection in a store, with a ledger and blobs of its own."""

    name: str
    tenant: str
    store: Store
    step_context: StepContext
    folder: Path

    def ingest(self, *words: str, name: str = "a.txt") -> Accepted:
        """A live document in which each of these words is a chunk."""
        item = submit(
            self.step_context, paragraphs(*words), name, collection=self.name, tenant=self.tenant
        )
        doing(self.step_context)(item.document_id, item.version, "extract")
        assert self.step_context.ledger.documents.get(item.document_id).state == "live"
        return item

    def audit_scope(self) -> ScopeReport:
        (scope,) = audit_scopes(self.step_context.ledger, {self.store.kind: self.store})
        return audit_scope(self.step_context.ledger, scope)

    def found(self) -> list[tuple[str, str, tuple[str, ...]]]:
        """Kind, half and ids of each finding."""
        return [(f.kind, f.half, f.ids) for f in self.audit_scope().findings]

    def repair(self) -> list[str]:
        """What is left of each finding."""
        all_stores = {self.store.kind: self.store}
        use = Repairs(
            self.step_context.ledger,
            all_stores,
            self.step_context.blobs,
            "tiny",
            doing(self.step_context),
        )
        return [repaired.left for repaired in repair(self.audit_scope().findings, use)]

    def first_words(self) -> dict[str, str]:
        """First word of each chunk, by id: of passages, their section and the document."""
        ids = self.store.find_ids(self.name, tenant=self.tenant)
        chunks = self.store.get_chunks(self.name, ids, tenant=self.tenant)
        return {chunk.chunk_id: chunk.body.split()[0] for chunk in chunks}

    def records(self, chunk_ids: list[str]) -> list[ChunkRecord]:
        """Chunks as they were written."""
        stored = self.store.get_chunks(
            self.name, chunk_ids, tenant=self.tenant, include_vector=True, include_terms=True
        )
        return [ChunkRecord(**c.__dict__) for c in stored]

    def searched(self, chunk_id: str) -> bool:
        """Whether both legs find a chunk at its level: by its vector, and by a word of its own."""
        (chunk,) = self.store.get_chunks(
            self.name, [chunk_id], tenant=self.tenant, include_vector=True
        )
        assert chunk.vector is not None
        at = Where(every=(Condition("level", "==", float(chunk.level)),))
        nearest = self.store.vector_query(self.name, chunk.vector, 1, at, tenant=self.tenant)
        word = chunk.body.split()[0]
        best = self.store.keyword_query(self.name, word, 1, at, tenant=self.tenant)
        return [hit.chunk_id for hit in nearest + best] == [chunk_id, chunk_id]


@pytest.fixture(params=["", "ann"], ids=["plain", "tenants"])
def audited(
    request: pytest.FixtureRequest, store: Store, names: Callable[[], str], tmp_path: Path
) -> Iterator[Audited]:
    """An empty collection, once without and once with tenants."""
    yield from make_audited(store, names(), request.param, tmp_path)


def make_audited(store: Store, name: str, tenant: str, folder: Path) -> Iterator[Audited]:
    schema = CollectionSchema(name, VectorSpec(4), tenants=bool(tenant))
    store.ensure_schema(schema)
    with closing(Ledger(f"sqlite:///{folder / 'ledger.db'}")) as ledger:
        ledger.create()
        ledger.collections.create(schema, store=store.kind, embedder="tiny", analyzer="")
        step_context = make_context(ledger, Blobs(str(folder / "blobs")), store)
        yield Audited(name, tenant, store, step_context, folder)


@pytest.mark.long
def test_what_was_ingested_is_counted_and_right(audited: Audited) -> None:
    audited.ingest("one", "two", "three")
    seen = audited.audit_scope()
    assert (seen.documents, seen.chunks, seen.skipped, seen.findings) == (1, 5, 0, ())
    assert seen.stored["vector"] == seen.stored["keyword"] == 5


@pytest.mark.long
def test_chunks_that_were_deleted_behind_its_back_are_found_and_written_again(
    audited: Audited,
) -> None:
    audited.ingest("one", "two", "three")
    words = audited.first_words()
    lost = sorted(words)[:2]
    audited.store.delete_chunks(audited.name, lost, tenant=audited.tenant)
    expected = [("missing", half, tuple(lost)) for half in ("vector", "keyword")]
    assert audited.found() == expected
    assert audited.repair() == [""]
    assert audited.found() == []
    assert audited.first_words() == words
    assert all(map(audited.searched, lost))


@pytest.mark.long
def test_a_document_and_a_collection_that_are_gone_are_written_again(audited: Audited) -> None:
    item = audited.ingest("one", "two")
    words = audited.first_words()
    audited.store.delete_documents(audited.name, [item.document_id], tenant=audited.tenant)
    assert [half for _, half, _ in audited.found()] == ["vector", "keyword", "document"]
    assert audited.repair() == [""]
    assert audited.first_words() == words
    audited.store.drop_collection(audited.name)
    assert audited.found()[0][0] == "missing-collection"
    assert audited.repair() == ["", ""]
    assert (audited.found(), audited.first_words()) == ([], words)


@pytest.mark.long
def test_what_a_late_worker_wrote_of_a_removed_document_is_an_orphan_and_goes(
    audited: Audited,
) -> None:
    kept = audited.ingest("one", name="kept.txt")
    item = audited.ingest("two", "three", name="gone.txt")
    where = {"tenant": audited.tenant}
    ids = sorted(audited.store.chunk_ids(audited.name, item.document_id, **where)["vector"])
    audited.step_context.ledger.documents.delete(item.document_id)
    audited.step_context.ledger.chunks.forget(item.document_id)
    audited.step_context.ledger.documents.removed(item.document_id, {})
    assert audited.found() == [
        ("orphan-documents", "", (item.document_id,)),
        ("orphan-chunks", "", tuple(ids)),
    ]
    assert audited.repair() == ["", ""]
    assert audited.found() == []
    assert audited.store.document_ids(audited.name, **where) == {kept.document_id}


@pytest.mark.long
def test_what_was_written_into_another_tenant_is_an_orphan_there_and_goes_there_alone(
    audited: Audited,
) -> None:
    if not audited.tenant:
        pytest.skip("of tenants")
    audited.ingest("one", "two")
    store, name, words = audited.store, audited.name, audited.first_words()
    store.ensure_tenant(name, "bob")
    audited.step_context.ledger.tenants.create(name, "bob")
    store.batch_upsert_chunks(name, audited.records(sorted(words)), tenant="bob")
    all_stores = {store.kind: store}
    found = [
        finding
        for scope in audit_scopes(audited.step_context.ledger, all_stores, name)
        for finding in audit_scope(audited.step_context.ledger, scope).findings
    ]
    assert [(f.kind, f.tenant) for f in found] == [
        ("orphan-documents", "bob"),
        ("orphan-chunks", "bob"),
    ]
    use = Repairs(
        audited.step_context.ledger,
        all_stores,
        audited.step_context.blobs,
        "tiny",
        doing(audited.step_context),
    )
    assert [r.left for r in repair(found, use)] == ["", ""]
    assert (store.count(name, tenant="bob"), audited.first_words()) == (0, words)


@pytest.fixture
def in_files(tfidf_at: Settings, tmp_path: Path) -> Iterator[Audited]:
    """A collection in the TF-IDF store, whose tables a hand can reach."""
    with closing(make_store(tfidf_at, "tfidf")) as store:
        name = f"t{time.monotonic_ns()}"
        yield from make_audited(store, name, "", tmp_path)
        store.drop_collection(name)


def file_of(store: Store, name: str) -> Path:
    assert isinstance(store, TfidfStore)
    return store._partition(name, "").folder / "chunks.db"


@pytest.mark.parametrize(("table", "half"), [("vectors", "vector"), ("held", "keyword")])
def test_rows_that_a_hand_removed_from_a_half_are_found_and_written_again(
    in_files: Audited, table: str, half: str
) -> None:
    in_files.ingest("one", "two", "three")
    ids = sorted(in_files.first_words())
    with closing(sqlite3.connect(file_of(in_files.store, in_files.name))) as connection:
        connection.execute(
            f"DELETE FROM {table} WHERE chunk = (SELECT key FROM chunks WHERE chunk_id = ?)",
            ids[:1],
        )
        connection.commit()
    assert in_files.found() == [("missing", half, (ids[0],))]
    assert in_files.repair() == [""]
    assert in_files.found() == []
    assert all(map(in_files.searched, ids))


def test_a_collection_whose_file_is_gone_is_told_and_the_next_is_compared(
    in_files: Audited, tfidf_at: Settings
) -> None:
    in_files.ingest("one")
    ledger, sound = in_files.step_context.ledger, f"{in_files.name}z"
    ledger.collections.create(
        CollectionSchema(sound, VectorSpec(4)), store="tfidf", embedder="tiny", analyzer=""
    )
    in_files.store.ensure_schema(CollectionSchema(sound, VectorSpec(4)))
    file_of(in_files.store, in_files.name).unlink()
    with closing(make_store(tfidf_at, "tfidf")) as store:
        audits = [audit_scope(ledger, scope) for scope in audit_scopes(ledger, {"tfidf": store})]
        store.drop_collection(sound)
    assert [[f.kind for f in seen.findings] for seen in audits] == [["broken-place"], []]
    assert "SQLITE_CANTOPEN" in audits[0].findings[0].detail


@pytest.fixture
def two_halves(chroma_at: Settings, tmp_path: Path) -> Iterator[Audited]:
    """A collection in Chroma, whose halves are written one after the other."""
    with closing(make_store(chroma_at, "chroma")) as store:
        name = f"t{time.monotonic_ns()}"
        yield from make_audited(store, name, "", tmp_path)
        store.drop_collection(name)


def die(*_: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def upsert_and_die(chroma_at: Settings, folder: Path, document_id: str, version: int) -> None:
    """Do the last step of a version, killed where the keyword half would be written."""
    KeywordIndex.upsert = die  # type: ignore[method-assign]
    store = make_store(chroma_at, "chroma")
    ledger = Ledger(f"sqlite:///{folder / 'ledger.db'}")
    step_context = make_context(ledger, Blobs(str(folder / "blobs")), store)
    run_step(step_context, "upsert", document_id, version)


def write_and_die(chroma_at: Settings, name: str, chunks: list[ChunkRecord]) -> None:
    """Write chunks, killed where the keyword half would be written."""
    KeywordIndex.upsert = die  # type: ignore[method-assign]
    make_store(chroma_at, "chroma").batch_upsert_chunks(name, chunks)


def delete_and_die(chroma_at: Settings, name: str, chunk_ids: list[str]) -> None:
    """Delete chunks, killed when the vector half has lost them."""
    KeywordIndex.delete = die  # type: ignore[method-assign]
    make_store(chroma_at, "chroma").delete_chunks(name, chunk_ids)


def killed(target: Callable[..., None], *given: object) -> None:
    """Run a writer in a process of its own until it kills itself."""
    process = multiprocessing.get_context("spawn").Process(target=target, args=given)
    process.start()
    process.join(60)
    assert process.exitcode == -signal.SIGKILL


@pytest.mark.long
def test_a_worker_killed_between_the_halves_is_the_sweeps_to_repeat_and_then_both_are_whole(
    two_halves: Audited, chroma_at: Settings
) -> None:
    step_context, name = two_halves.step_context, two_halves.name
    item = submit(step_context, paragraphs("one", "two"), collection=name)
    for step in STEPS[:-1]:
        run_step(step_context, step, item.document_id, item.version)
    killed(upsert_and_die, chroma_at, two_halves.folder, item.document_id, item.version)
    halves = two_halves.store.chunk_ids(name)
    assert (len(halves["vector"]), halves["keyword"]) == (2, set())
    assert (two_halves.audit_scope().skipped, two_halves.found()) == (1, [])
    step_context.ledger.leases.expire_all()
    (stuck,) = step_context.ledger.sweep.stuck(idle=False, resend_seconds=0, max_crashes=3)
    doing(step_context)(stuck.document_id, stuck.version, stuck.step)
    halves = two_halves.store.chunk_ids(name)
    assert halves["vector"] == halves["keyword"]
    assert (two_halves.audit_scope().chunks, two_halves.found()) == (4, [])
    assert all(map(two_halves.searched, halves["vector"]))


@pytest.mark.long
def test_the_keyword_half_that_a_killed_writer_did_not_reach_is_mended(
    two_halves: Audited, chroma_at: Settings
) -> None:
    two_halves.ingest("one", "two", "three")
    name, ids = two_halves.name, sorted(two_halves.first_words())
    chunks = two_halves.records(ids[:2])
    two_halves.store.delete_chunks(name, ids[:2])
    killed(write_and_die, chroma_at, name, chunks)
    assert two_halves.store.chunk_ids(name) == {"vector": set(ids), "keyword": set(ids[2:])}
    assert two_halves.found() == [("missing", "keyword", tuple(ids[:2]))]
    assert two_halves.repair() == [""]
    assert two_halves.found() == []
    assert two_halves.store.chunk_ids(name) == {"vector": set(ids), "keyword": set(ids)}
    assert all(map(two_halves.searched, ids))


def test_a_lost_keyword_index_fails_no_document_and_is_written_again(
    two_halves: Audited, chroma_at: Settings
) -> None:
    two_halves.ingest("one", "two")
    before = sorted(two_halves.first_words())
    shutil.rmtree(chroma_at.index_dir / two_halves.name)
    two_halves.ingest("three", name="b.txt")
    halves = two_halves.store.chunk_ids(two_halves.name)
    assert halves["vector"] - halves["keyword"] == set(before)
    assert two_halves.found() == [("missing", "keyword", tuple(before))]
    shutil.rmtree(chroma_at.index_dir / two_halves.name)
    assert two_halves.repair() == ["", ""]
    assert two_halves.found() == []
    assert all(map(two_halves.searched, two_halves.first_words()))


def test_what_was_deleted_while_chroma_had_lost_the_collection_is_in_neither_half(
    two_halves: Audited,
) -> None:
    gone = two_halves.ingest("one", name="gone.txt").document_id
    kept = two_halves.ingest("two", name="kept.txt").document_id
    chroma: Any = two_halves.store
    parts = chroma._scopes.of(two_halves.name)
    for table in (parts.documents, *parts.vectors, chroma._scopes.schema_table(two_halves.name)):
        table.drop()  # as a new, empty server has none; the keyword index stays
    ledger = two_halves.step_context.ledger
    ledger.documents.delete(gone)
    ledger.chunks.forget(gone)
    ledger.documents.removed(gone, {})
    assert set(two_halves.repair()) == {""}
    assert two_halves.found() == []
    live = ledger.chunks.live_ids(kept)
    assert chroma.chunk_ids(two_halves.name) == {"vector": live, "keyword": live}
    assert chroma.document_ids(two_halves.name) == {kept}


@pytest.mark.long
def test_the_vector_half_that_a_killed_deletion_emptied_is_mended(
    two_halves: Audited, chroma_at: Settings
) -> None:
    two_halves.ingest("one", "two", "three")
    name, ids = two_halves.name, sorted(two_halves.first_words())
    killed(delete_and_die, chroma_at, name, ids[1:])
    assert two_halves.found() == [("missing", "vector", tuple(ids[1:]))]
    assert two_halves.repair() == [""]
    assert two_halves.found() == []
    assert all(map(two_halves.searched, ids))


@pytest.mark.long
def test_an_orphan_that_only_one_half_holds_goes_from_either(
    two_halves: Audited, chroma_at: Settings
) -> None:
    item = two_halves.ingest("one", "two")
    name, ids = two_halves.name, sorted(two_halves.first_words())
    strangers = [replace(c, chunk_id=f"v{c.chunk_id}") for c in two_halves.records(ids)]
    killed(write_and_die, chroma_at, name, strangers)
    killed(delete_and_die, chroma_at, name, ids)
    step_context = two_halves.step_context
    step_context.ledger.documents.delete(item.document_id)
    step_context.ledger.chunks.forget(item.document_id)
    step_context.ledger.documents.removed(item.document_id, {})
    halves = two_halves.store.chunk_ids(name)
    assert halves == {"vector": {f"v{i}" for i in ids}, "keyword": set(ids)}
    assert two_halves.found() == [
        ("orphan-documents", "", (item.document_id,)),
        ("orphan-chunks", "", (*ids, *(f"v{i}" for i in ids))),
    ]
    assert two_halves.repair() == ["", ""]
    assert two_halves.store.chunk_ids(name) == {"vector": set(), "keyword": set()}
    assert (two_halves.found(), two_halves.store.document_ids(name)) == ([], set())
