"""What an audit found is set right: through the real steps, on a real ledger and real blobs."""

import os
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ledger_moves import LONG, OVER, claim, store_chunks, submission, taken
from memory_store import MemoryStore
from pipeline_parts import doing, look, make_context, paragraphs, seen, submit

from callslip.errors import Conflict, StoreDown
from callslip.ingestion.context import StepContext
from callslip.ingestion.maintenance.repair import (
    BROKEN,
    DOUBTFUL,
    LOST,
    MOVING,
    NOT_OURS,
    SEND_AGAIN,
    Repairs,
    repair,
)
from callslip.ingestion.pipeline import run_step
from callslip.stores.audit import comparison
from callslip.stores.audit.comparison import Finding, audit_scopes
from callslip.stores.audit.orphans import audit_files, find_misplaced_collections
from callslip.stores.blobs import Blobs, original_name
from callslip.stores.ledger import STEPS, Accepted, Ledger, Refusal
from callslip.stores.ledger.base import schema
from callslip.stores.ledger.base.database import Database
from callslip.stores.records import (
    TABLE_HEADER,
    ChunkRecord,
    CollectionSchema,
    DocumentRecord,
    StoredChunk,
    VectorSpec,
)

COLLECTION = CollectionSchema("papers", VectorSpec(4))


class Halves(MemoryStore):
    """A store in which a half may lose chunks; a chunk that is written again is in both."""

    def __init__(self) -> None:
        super().__init__()
        self.lost: dict[str, set[str]] = {"vector": set(), "keyword": set()}

    def batch_upsert_chunks(self, collection: str, chunks: Any, *, tenant: str = "") -> Any:
        for lost in self.lost.values():
            lost -= {chunk.chunk_id for chunk in chunks}
        return super().batch_upsert_chunks(collection, chunks, tenant=tenant)

    def chunk_ids(
        self, collection: str, document_id: str | None = None, *, tenant: str = ""
    ) -> dict[str, set[str]]:
        halves = super().chunk_ids(collection, document_id, tenant=tenant)
        return {half: ids - self.lost[half] for half, ids in halves.items()}

    def get_chunks(self, collection: str, chunk_ids: Any, **given: Any) -> Any:
        chunks = super().get_chunks(collection, chunk_ids, **given)
        return [
            replace(c, terms=None) if c.chunk_id in self.lost["keyword"] else c
            for c in chunks
            if c.chunk_id not in self.lost["vector"]
        ]


@pytest.fixture
def store() -> Halves:
    """The store of `papers`."""
    made = Halves()
    made.ensure_schema(COLLECTION)
    return made


@pytest.fixture
def database_url(tmp_path: Path) -> str:
    """Of the ledger."""
    return f"sqlite:///{tmp_path / 'ledger.db'}"


@pytest.fixture
def step_context(tmp_path: Path, store: Halves, database_url: str) -> Iterator[StepContext]:
    """A step context whose only store is that one."""
    with closing(Ledger(database_url)) as ledger:
        ledger.create()
        ledger.collections.create(COLLECTION, store="memory", embedder="tiny", analyzer="")
        yield make_context(ledger, Blobs(str(tmp_path / "blobs")), store)


@pytest.fixture
def item(step_context: StepContext) -> Accepted:
    """A live document of three chunks."""
    accepted = submit(step_context, paragraphs("one", "two", "three"), dept="law")
    doing(step_context)(accepted.document_id, 1, "extract")
    assert look(step_context, accepted).state == "live"
    return accepted


def findings(step_context: StepContext) -> list[Finding]:
    """What is wrong in the collection."""
    (scope,) = audit_scopes(step_context.ledger, {"memory": step_context.store_of("memory")})
    return list(comparison.audit_scope(step_context.ledger, scope).findings)


def mend(step_context: StepContext, *, force: bool = False) -> list[str]:
    """Repair what is wrong; what is left of each finding."""
    use = Repairs(
        step_context.ledger,
        {"memory": step_context.store_of("memory")},
        step_context.blobs,
        "tiny",
        doing(step_context),
    )
    return [repaired.left for repaired in repair(findings(step_context), use, force=force)]


def chunk_ids(step_context: StepContext, item: Accepted) -> list[str]:
    """Ids of the three passages, their section and the document."""
    return sorted(step_context.ledger.chunks.live_ids(item.document_id))


class Never:
    """A part that must not be used."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"{name} was used")


@pytest.mark.parametrize("half", ["vector", "keyword"])
def test_a_chunk_that_a_half_lacks_is_written_again_from_artifacts(
    step_context: StepContext, store: Halves, item: Accepted, half: str
) -> None:
    store.lost[half].add(chunk_ids(step_context, item)[0])
    computed_nothing = {name: Never() for name in ("extractor", "tokenizer", "analyzer")}
    assert mend(replace(step_context, embedder=Never(), **computed_nothing)) == [""]  # type: ignore[arg-type]
    assert findings(step_context) == []
    found = look(step_context, item)
    assert (found.state, found.live_version) == ("live", 1)
    assert seen(step_context, item) == ["one0", "two0", "three0"]


def test_a_document_that_is_gone_altogether_is_written_again_as_it_was(
    step_context: StepContext, store: Halves, item: Accepted
) -> None:
    ids = chunk_ids(step_context, item)
    before = store.get_chunks("papers", ids, include_terms=True)
    records = store.get_documents("papers", [item.document_id])
    store.delete_documents("papers", [item.document_id])
    assert mend(step_context) == [""]
    assert store.get_chunks("papers", ids, include_terms=True) == before
    assert store.get_documents("papers", [item.document_id]) == records


def test_a_collection_that_its_store_lost_is_made_and_filled_again(
    step_context: StepContext, store: Halves, item: Accepted
) -> None:
    store.drop_collection("papers")
    assert mend(step_context) == ["", ""]
    assert findings(step_context) == []
    assert seen(step_context, item) == ["one0", "two0", "three0"]


def test_where_artifacts_are_gone_the_steps_are_done_again_from_the_original(
    step_context: StepContext, store: Halves, item: Accepted
) -> None:
    original = original_name(look(step_context, item).newest.sha256)
    content = step_context.blobs.read(item.document_id, original)
    step_context.blobs.delete(item.document_id)
    step_context.blobs.write(item.document_id, original, content)
    store.delete_documents("papers", [item.document_id])
    assert mend(step_context) == [""]
    assert findings(step_context) == []
    assert seen(step_context, item) == ["one0", "two0", "three0"]


def without_files(step_context: StepContext, item: Accepted, database_url: str) -> None:
    """Make the document one that came with an archive: the steps of it were done elsewhere."""
    step_context.blobs.delete(item.document_id)
    with closing(Database(database_url)) as database, database.writing() as connection:
        connection.execute(schema.steps.update().values(artifact=None))


def test_without_files_a_half_is_mended_from_the_other_its_terms_analyzed_again(
    step_context: StepContext, store: Halves, item: Accepted, database_url: str
) -> None:
    without_files(step_context, item, database_url)
    ids = chunk_ids(step_context, item)
    before = store.get_chunks("papers", ids, include_terms=True)
    records = store.get_documents("papers", [item.document_id])
    for chunk_id in ids:  # the memory store has one table: what the half lost is not to be used
        chunk = store._chunks["papers", ""][chunk_id]
        store._chunks["papers", ""][chunk_id] = replace(chunk, terms="lost")
    store.lost["keyword"] |= set(ids)
    store._documents["papers", ""].clear()
    assert mend(step_context) == [""]
    assert findings(step_context) == []
    mended = store.get_chunks("papers", ids, include_terms=True)
    assert [_spaced(chunk) for chunk in mended] == [_spaced(chunk) for chunk in before]
    assert store.get_documents("papers", [item.document_id]) == records
    assert look(step_context, item).state == "live"


def test_lost_terms_of_a_part_of_a_table_have_those_of_its_header_again(
    step_context: StepContext, store: Halves, database_url: str
) -> None:
    rows = "".join(f"| place {n} | {n} |\n" for n in range(400))
    table = f"| town | inhabitants |\n|---|---|\n{rows}"
    item = submit(step_context, table, "towns.md")
    doing(step_context)(item.document_id, 1, "extract")
    ids = chunk_ids(step_context, item)
    before = {chunk.chunk_id: chunk for chunk in store.get_chunks("papers", ids)}
    parts = {i: c for i, c in before.items() if TABLE_HEADER in c.properties}
    assert parts, "the table is longer than a chunk"
    without_files(step_context, item, database_url)
    for chunk_id in ids:
        chunk = store._chunks["papers", ""][chunk_id]
        store._chunks["papers", ""][chunk_id] = replace(chunk, terms="lost")
    store.lost["keyword"] |= set(ids)
    assert mend(step_context) == [""]
    for chunk in store.get_chunks("papers", list(parts), include_terms=True):
        assert "inhabitants" not in chunk.body
        assert "inhabitants" in (chunk.terms or "")


def _spaced(chunk: StoredChunk) -> StoredChunk:
    return replace(chunk, terms=" ".join((chunk.terms or "").split()))


def test_without_files_what_no_half_gives_back_is_left_and_the_rest_is_mended(
    step_context: StepContext, store: Halves, item: Accepted, database_url: str
) -> None:
    without_files(step_context, item, database_url)
    first, second, *_ = chunk_ids(step_context, item)
    store.delete_chunks("papers", [first])
    store.lost["keyword"].add(second)
    assert mend(step_context) == [""]
    left = findings(step_context)
    assert [(f.half, f.ids) for f in left] == [("vector", (first,)), ("keyword", (first,))]
    store.delete_documents("papers", [item.document_id])
    assert mend(step_context) == [LOST]
    assert look(step_context, item).state == "live", "nothing was begun"


def test_what_the_store_still_has_whole_is_not_computed_again(
    step_context: StepContext, store: Halves, item: Accepted
) -> None:
    for step in ("enrich", "embed"):
        artifact = step_context.ledger.documents.artifact(item.document_id, 1, step)
        next(Path(step_context.blobs._root).glob(f"**/{artifact}")).unlink()
    store.lost["keyword"] |= set(chunk_ids(step_context, item))
    nothing = {name: Never() for name in ("extractor", "tokenizer", "embedder")}
    assert mend(replace(step_context, **nothing)) == [""]  # type: ignore[arg-type]
    assert findings(step_context) == []


def test_what_another_model_embedded_is_not_mixed_with_vectors_of_this_one(
    step_context: StepContext, store: Halves, item: Accepted
) -> None:
    artifact = step_context.ledger.documents.artifact(item.document_id, 1, "embed")
    next(Path(step_context.blobs._root).glob(f"**/{artifact}")).unlink()
    store.delete_documents("papers", [item.document_id])
    use = Repairs(
        step_context.ledger, {"memory": store}, step_context.blobs, "another", doing(step_context)
    )
    assert {r.left for r in repair(findings(step_context), use)} == {LOST}
    assert mend(step_context) == [""]


def test_an_older_version_is_not_made_of_what_the_store_holds_of_another(
    step_context: StepContext, item: Accepted
) -> None:
    new = submit(step_context, paragraphs("four"))
    for step in STEPS[:-1]:
        run_step(step_context, step, new.document_id, new.version)
    step_context.blobs.delete(item.document_id)
    assert run_step(step_context, "upsert", new.document_id, new.version) == "stop"
    found = look(step_context, new)
    assert (found.state, found.live_version) == ("waiting", 1)


def test_orphans_go_and_a_second_look_finds_nothing(
    step_context: StepContext, store: Halves, item: Accepted
) -> None:
    for chunk_id, document_id in (("o", item.document_id), ("p", "f" * 32)):
        vector = np.ones(4, np.float32)
        store.batch_upsert_chunks("papers", [ChunkRecord(chunk_id, document_id, "", "", vector)])
    store.batch_upsert_documents("papers", [DocumentRecord("e" * 32, "", "")])
    assert mend(step_context) == ["", ""]
    assert findings(step_context) == []
    assert store.document_ids("papers") == {item.document_id}
    assert store.count("papers") == 5


def test_what_is_doubtful_is_only_removed_by_force(
    step_context: StepContext, store: Halves, item: Accepted
) -> None:
    store.batch_upsert_documents(
        "papers", [DocumentRecord(f"{n:032}", "", "") for n in range(comparison.FEW + 1)]
    )
    assert mend(step_context) == [DOUBTFUL]
    assert len(store.document_ids("papers")) == comparison.FEW + 2
    assert mend(step_context, force=True) == [""]
    assert store.document_ids("papers") == {item.document_id}


def test_a_copy_that_is_ours_is_dropped_and_an_unknown_collection_never(
    step_context: StepContext, item: Accepted
) -> None:
    other = MemoryStore()
    for name in ("papers", "theirs"):
        other.ensure_schema(replace(COLLECTION, name=name))
    other.batch_upsert_documents("papers", [DocumentRecord(item.document_id, "", "")])
    all_stores = {"memory": step_context.store_of("memory"), "other": other}
    use = Repairs(step_context.ledger, all_stores, step_context.blobs, "tiny", doing(step_context))
    found = find_misplaced_collections(step_context.ledger, all_stores)
    assert [r.left for r in repair(found, use, force=True)] == ["", NOT_OURS]
    assert other.collections() == ["theirs"]


def test_files_of_no_document_go_and_lost_ones_are_asked_for(
    step_context: StepContext, item: Accepted
) -> None:
    step_context.blobs.write("f" * 32, "original", b"x")
    grow_old(step_context)
    found = [
        Finding("orphan-files", "blobs", ids=("f" * 32,)),
        Finding("missing-files", "blobs", half="original", ids=(item.document_id,)),
    ]
    use = Repairs(step_context.ledger, {}, step_context.blobs, "tiny", doing(step_context))
    assert [r.left for r in repair(found, use)] == ["", SEND_AGAIN]
    assert step_context.blobs.document_ids() == {item.document_id}


def grow_old(step_context: StepContext) -> None:
    """Let every file be older than those that may belong to an upload."""
    for file in Path(step_context.blobs._root).glob("documents/*/*"):
        os.utime(file, (1, 1))


def test_files_that_have_an_owner_by_now_or_are_young_stay(
    step_context: StepContext, item: Accepted
) -> None:
    new, young = "e" * 32, "f" * 32
    for document_id in (new, young):
        step_context.blobs.write(document_id, "original", b"x")
        grow_old(step_context)
    found = audit_files(step_context.ledger, step_context.blobs)
    assert [f.ids for f in found] == [(new, young)]
    step_context.ledger.documents.submit("papers", submission("new", "new.txt"), new)
    step_context.blobs.write(young, "text", b"x")
    use = Repairs(step_context.ledger, {}, step_context.blobs, "tiny", doing(step_context))
    assert [r.left for r in repair(found, use)] == [MOVING]
    assert step_context.blobs.document_ids() == {item.document_id, new, young}


def test_a_text_that_is_lost_is_extracted_again_and_what_followed_is_not_done_again(
    step_context: StepContext, item: Accepted
) -> None:
    artifact = step_context.ledger.documents.artifact(item.document_id, 1, "extract")
    assert artifact is not None
    text = step_context.blobs.read(item.document_id, artifact)
    next(Path(step_context.blobs._root).glob(f"**/{artifact}")).unlink()
    found = audit_files(step_context.ledger, step_context.blobs)
    assert [(f.kind, f.half) for f in found] == [("missing-files", "text")]
    another = Repairs(step_context.ledger, {}, step_context.blobs, "another", doing(step_context))
    assert [r.left for r in repair(found, another)] == [LOST]

    class Named(Never):
        model = step_context.embedder.model

    use = Repairs(
        step_context.ledger,
        {},
        step_context.blobs,
        "tiny",
        doing(replace(step_context, embedder=Named())),  # type: ignore[arg-type]
    )
    assert [r.left for r in repair(found, use)] == [""]
    assert audit_files(step_context.ledger, step_context.blobs) == []
    assert step_context.blobs.read(item.document_id, artifact) == text
    assert (look(step_context, item).state, findings(step_context)) == ("live", [])


def test_a_place_that_cannot_be_asked_is_left_even_by_force(step_context: StepContext) -> None:
    found = Finding("broken-place", "memory", "papers", certain=False, detail="no")
    use = Repairs(step_context.ledger, {}, step_context.blobs, "tiny", doing(step_context))
    assert [r.left for r in repair([found], use, force=True)] == [BROKEN]


def test_a_kept_copy_that_is_moved_back_to_is_not_dropped(
    step_context: StepContext, item: Accepted
) -> None:
    memory, other = step_context.store_of("memory"), MemoryStore()
    other.ensure_schema(COLLECTION)
    other.batch_upsert_documents("papers", [DocumentRecord(item.document_id, "", "")])
    stores = {"memory": memory, "other": other}
    use = Repairs(step_context.ledger, stores, step_context.blobs, "tiny", doing(step_context))
    found = find_misplaced_collections(step_context.ledger, stores)
    other.batch_upsert_documents("papers", [DocumentRecord("f" * 32, "", "")])
    assert [r.left for r in repair(found, use)] == [MOVING], "it is another one by now"
    other.delete_documents("papers", ["f" * 32])
    moves = step_context.ledger.moves
    moves.end(moves.switch(moves.take("papers", "other", lease_seconds=LONG), "memory"))
    assert [r.left for r in repair(found, use, force=True)] == [MOVING]
    assert other.collections() == memory.collections() == ["papers"]
    assert moves.underway("papers") is None


def test_orphans_and_tenants_that_the_ledger_knows_by_now_stay(
    step_context: StepContext, store: Halves, item: Accepted
) -> None:
    server = replace(COLLECTION, name="notes", tenants=True)
    step_context.ledger.collections.create(server, store="memory", embedder="tiny", analyzer="")
    store.ensure_schema(server)
    store.ensure_tenant("notes", "eve")
    vector = np.ones(4, np.float32)
    for letter, document_id in (("o", "f" * 32), ("p", "e" * 32)):
        store.batch_upsert_chunks("papers", [ChunkRecord(letter, document_id, "", "", vector)])
    stores = {"memory": store}
    found = [
        f
        for p in audit_scopes(step_context.ledger, stores)
        for f in comparison.audit_scope(step_context.ledger, p).findings
    ]
    assert [f.kind for f in found] == ["unknown-tenant", "orphan-documents", "orphan-chunks"]
    step_context.ledger.tenants.create("notes", "eve")
    new = step_context.ledger.documents.submit("papers", submission("new", "new.txt"), "f" * 32)
    step_context.ledger.leases.go_live(store_chunks(step_context.ledger, new, ["o"]), ["o"], {})
    use = Repairs(step_context.ledger, stores, step_context.blobs, "tiny", doing(step_context))
    assert [r.left for r in repair(found, use)] == [MOVING] * 3
    assert store.tenants("notes") == ["eve"]
    assert store.document_ids("papers") == {item.document_id, "f" * 32}
    assert {c.chunk_id for c in store.get_chunks("papers", ["o", "p"])} == {"o"}


def test_nothing_is_removed_while_another_moves_imports_or_upserts(
    step_context: StepContext, store: Halves, item: Accepted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("callslip.ingestion.maintenance.orphans.UPSERT_SECONDS", 0.0)
    vector = np.ones(4, np.float32)
    store.batch_upsert_chunks("papers", [ChunkRecord("o", item.document_id, "", "", vector)])
    found, moves = findings(step_context), step_context.ledger.moves
    use = Repairs(
        step_context.ledger, {"memory": store}, step_context.blobs, "tiny", doing(step_context)
    )
    for target in ("memory", "other"):
        move = moves.take("papers", target, lease_seconds=LONG)
        assert [r.left for r in repair(found, use)] == [MOVING]
        moves.end(move)
    new = submit(step_context, paragraphs("four"), "new.txt")
    for step in STEPS[:-1]:
        run_step(step_context, step, new.document_id, new.version)
    claim = taken(step_context.ledger, new, "upsert")
    assert [r.left for r in repair(found, use)] == [MOVING]
    assert store.count("papers") == 6
    step_context.ledger.leases.drop(claim)
    step_context.ledger.documents.delete(new.document_id)
    assert [r.left for r in repair(found, use)] == [""]
    assert store.count("papers") == 5


def test_no_upsert_and_no_move_begins_while_orphans_are_removed(
    step_context: StepContext, store: Halves, item: Accepted, monkeypatch: pytest.MonkeyPatch
) -> None:
    vector = np.ones(4, np.float32)
    store.batch_upsert_chunks("papers", [ChunkRecord("o", item.document_id, "", "", vector)])
    new = submit(step_context, paragraphs("four"), "new.txt")
    for step in STEPS[:-1]:
        run_step(step_context, step, new.document_id, new.version)
    remove, tried = store.delete_chunks, []

    def busy(*given: Any, **where: Any) -> None:
        tried.append(claim(step_context.ledger, new, "upsert"))
        with pytest.raises(Conflict):
            step_context.ledger.moves.take("papers", "other", lease_seconds=LONG)
        remove(*given, **where)

    monkeypatch.setattr(store, "delete_chunks", busy)
    assert mend(step_context) == [""]
    assert tried == [Refusal("leased")]
    assert step_context.ledger.moves.underway("papers") is None


def test_a_tenant_is_made_and_filled_again_and_one_that_nobody_knows_goes(
    step_context: StepContext, store: Halves
) -> None:
    server = replace(COLLECTION, name="notes", tenants=True)
    step_context.ledger.collections.create(server, store="memory", embedder="tiny", analyzer="")
    store.ensure_schema(server)
    accepted = submit(step_context, paragraphs("one"), collection="notes", tenant="ann")
    doing(step_context)(accepted.document_id, 1, "extract")
    store.drop_tenant("notes", "ann")
    store.ensure_tenant("notes", "eve")
    found = [
        finding
        for scope in audit_scopes(step_context.ledger, {"memory": store}, "notes")
        for finding in comparison.audit_scope(step_context.ledger, scope).findings
    ]
    use = Repairs(
        step_context.ledger, {"memory": store}, step_context.blobs, "tiny", doing(step_context)
    )
    assert [r.left for r in repair(found, use)] == ["", ""]
    assert store.tenants("notes") == ["ann"]
    assert store.count("notes", tenant="ann") == 3


def test_a_deletion_or_a_new_version_that_comes_meanwhile_wins(
    step_context: StepContext, store: Halves, item: Accepted
) -> None:
    store.delete_documents("papers", [item.document_id])
    found = findings(step_context)
    use = Repairs(
        step_context.ledger, {"memory": store}, step_context.blobs, "tiny", doing(step_context)
    )
    step_context.ledger.documents.submit("papers", submission("new"), item.document_id)
    assert [r.left for r in repair(found, use)] == [MOVING]
    step_context.ledger.documents.delete(item.document_id)
    assert [r.left for r in repair(found, use)] == [MOVING]
    assert store.count("papers") == 0


def test_a_document_that_is_purged_meanwhile_does_not_end_the_repair_of_the_others(
    step_context: StepContext, store: Halves, item: Accepted
) -> None:
    store.delete_documents("papers", [item.document_id])
    found = findings(step_context)
    purged = [replace(finding, document_id="f" * 32) for finding in found]
    use = Repairs(
        step_context.ledger, {"memory": store}, step_context.blobs, "tiny", doing(step_context)
    )
    assert [r.left for r in repair([*purged, *found], use)] == [MOVING, ""]
    assert findings(step_context) == []


def test_a_new_version_takes_the_place_of_one_that_is_being_repaired(
    step_context: StepContext, item: Accepted
) -> None:
    assert step_context.ledger.leases.reopen(item.document_id, 1, "upsert")
    claim = taken(step_context.ledger, item, "upsert")
    new = step_context.ledger.documents.submit("papers", submission("new"), item.document_id)
    assert new.version == 2
    assert not step_context.ledger.leases.reopen(item.document_id, 1, "upsert")
    with pytest.raises(Exception, match="no longer this worker's"):
        step_context.ledger.leases.go_live(claim, [], {})
    assert seen(step_context, item) == ["one0", "two0", "three0"], "it is seen all the while"


def test_a_failed_version_that_is_sent_again_stops_the_repair_of_the_one_before_it(
    step_context: StepContext, item: Accepted
) -> None:
    new = step_context.ledger.documents.submit("papers", submission("new"), item.document_id)
    step_context.ledger.leases.fail(taken(step_context.ledger, new), StoreDown("x"))
    assert step_context.ledger.leases.reopen(item.document_id, 1, "upsert")
    step_context.ledger.documents.submit("papers", submission("new"), item.document_id)
    assert run_step(step_context, "upsert", item.document_id, 1) == "stop"
    assert look(step_context, item).state == "waiting"


def test_a_repair_that_is_killed_is_finished_by_the_sweep(
    step_context: StepContext, store: Halves, item: Accepted
) -> None:
    store.delete_chunks("papers", chunk_ids(step_context, item)[:1])
    assert step_context.ledger.leases.reopen(item.document_id, 1, "upsert")
    taken(step_context.ledger, item, "upsert", lease=OVER)
    (stuck,) = step_context.ledger.sweep.stuck(idle=False, resend_seconds=60, max_crashes=3)
    assert (stuck.document_id, stuck.version, stuck.step) == (item.document_id, 1, "upsert")
    doing(step_context)(stuck.document_id, stuck.version, stuck.step)
    assert findings(step_context) == []
