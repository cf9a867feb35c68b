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
from pipeline_parts import doing, look, make_shop, paragraphs, seen, submit

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
    ChunkRecord,
    CollectionSchema,
    DocumentRecord,
    StoredChunk,
    VectorSpec,
)

SHELF = CollectionSchema("shelf", VectorSpec(4))


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
    """The store of `shelf`."""
    made = Halves()
    made.ensure_schema(SHELF)
    return made


@pytest.fixture
def database_url(tmp_path: Path) -> str:
    """Of the ledger."""
    return f"sqlite:///{tmp_path / 'ledger.db'}"


@pytest.fixture
def shop(tmp_path: Path, store: Halves, database_url: str) -> Iterator[StepContext]:
    """A workshop whose only store is that one."""
    with closing(Ledger(database_url)) as ledger:
        ledger.create()
        ledger.collections.create(SHELF, store="memory", embedder="tiny", analyzer="")
        yield make_shop(ledger, Blobs(str(tmp_path / "blobs")), store)


@pytest.fixture
def item(shop: StepContext) -> Accepted:
    """A live document of three chunks."""
    accepted = submit(shop, paragraphs("one", "two", "three"), dept="law")
    doing(shop)(accepted.document_id, 1, "extract")
    assert look(shop, accepted).state == "live"
    return accepted


def findings(shop: StepContext) -> list[Finding]:
    """What is wrong in the shelf."""
    (place,) = audit_scopes(shop.ledger, {"memory": shop.store_of("memory")})
    return list(comparison.audit_scope(shop.ledger, place).findings)


def mend(shop: StepContext, *, force: bool = False) -> list[str]:
    """Repair what is wrong; what is left of each finding."""
    use = Repairs(shop.ledger, {"memory": shop.store_of("memory")}, shop.blobs, "tiny", doing(shop))
    return [repaired.left for repaired in repair(findings(shop), use, force=force)]


def chunk_ids(shop: StepContext, item: Accepted) -> list[str]:
    """Ids of the three passages, their section and the document."""
    return sorted(shop.ledger.chunks.live_ids(item.document_id))


class Never:
    """A part that must not be used."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"{name} was used")


@pytest.mark.parametrize("half", ["vector", "keyword"])
def test_a_chunk_that_a_half_lacks_is_written_again_from_artifacts(
    shop: StepContext, store: Halves, item: Accepted, half: str
) -> None:
    store.lost[half].add(chunk_ids(shop, item)[0])
    computed_nothing = {name: Never() for name in ("extractor", "tokenizer", "analyzer")}
    assert mend(replace(shop, embedder=Never(), **computed_nothing)) == [""]  # type: ignore[arg-type]
    assert findings(shop) == []
    found = look(shop, item)
    assert (found.state, found.live_version) == ("live", 1)
    assert seen(shop, item) == ["one0", "two0", "three0"]


def test_a_document_that_is_gone_altogether_is_written_again_as_it_was(
    shop: StepContext, store: Halves, item: Accepted
) -> None:
    ids = chunk_ids(shop, item)
    before = store.get_chunks("shelf", ids, include_terms=True)
    records = store.get_documents("shelf", [item.document_id])
    store.delete_document("shelf", item.document_id)
    assert mend(shop) == [""]
    assert store.get_chunks("shelf", ids, include_terms=True) == before
    assert store.get_documents("shelf", [item.document_id]) == records


def test_a_collection_that_its_store_lost_is_made_and_filled_again(
    shop: StepContext, store: Halves, item: Accepted
) -> None:
    store.drop_collection("shelf")
    assert mend(shop) == ["", ""]
    assert findings(shop) == []
    assert seen(shop, item) == ["one0", "two0", "three0"]


def test_where_artifacts_are_gone_the_steps_are_done_again_from_the_original(
    shop: StepContext, store: Halves, item: Accepted
) -> None:
    original = original_name(look(shop, item).newest.sha256)
    content = shop.blobs.read(item.document_id, original)
    shop.blobs.delete(item.document_id)
    shop.blobs.write(item.document_id, original, content)
    store.delete_document("shelf", item.document_id)
    assert mend(shop) == [""]
    assert findings(shop) == []
    assert seen(shop, item) == ["one0", "two0", "three0"]


def without_files(shop: StepContext, item: Accepted, database_url: str) -> None:
    """Make the document one that came with an archive: the steps of it were done elsewhere."""
    shop.blobs.delete(item.document_id)
    with closing(Database(database_url)) as database, database.writing() as connection:
        connection.execute(schema.steps.update().values(artifact=None))


def test_without_files_a_half_is_mended_from_the_other_its_terms_analyzed_again(
    shop: StepContext, store: Halves, item: Accepted, database_url: str
) -> None:
    without_files(shop, item, database_url)
    ids = chunk_ids(shop, item)
    before = store.get_chunks("shelf", ids, include_terms=True)
    records = store.get_documents("shelf", [item.document_id])
    for chunk_id in ids:  # the memory store has one table: what the half lost is not to be used
        chunk = store._chunks["shelf", ""][chunk_id]
        store._chunks["shelf", ""][chunk_id] = replace(chunk, terms="lost")
    store.lost["keyword"] |= set(ids)
    store._documents["shelf", ""].clear()
    assert mend(shop) == [""]
    assert findings(shop) == []
    mended = store.get_chunks("shelf", ids, include_terms=True)
    assert [_spaced(chunk) for chunk in mended] == [_spaced(chunk) for chunk in before]
    assert store.get_documents("shelf", [item.document_id]) == records
    assert look(shop, item).state == "live"


def _spaced(chunk: StoredChunk) -> StoredChunk:
    return replace(chunk, terms=" ".join((chunk.terms or "").split()))


def test_without_files_what_no_half_gives_back_is_left_and_the_rest_is_mended(
    shop: StepContext, store: Halves, item: Accepted, database_url: str
) -> None:
    without_files(shop, item, database_url)
    first, second, *_ = chunk_ids(shop, item)
    store.delete_chunks("shelf", [first])
    store.lost["keyword"].add(second)
    assert mend(shop) == [""]
    left = findings(shop)
    assert [(f.half, f.ids) for f in left] == [("vector", (first,)), ("keyword", (first,))]
    store.delete_document("shelf", item.document_id)
    assert mend(shop) == [LOST]
    assert look(shop, item).state == "live", "nothing was begun"


def test_what_the_store_still_has_whole_is_not_computed_again(
    shop: StepContext, store: Halves, item: Accepted
) -> None:
    for step in ("enrich", "embed"):
        artifact = shop.ledger.documents.artifact(item.document_id, 1, step)
        next(Path(shop.blobs._root).glob(f"**/{artifact}")).unlink()
    store.lost["keyword"] |= set(chunk_ids(shop, item))
    nothing = {name: Never() for name in ("extractor", "tokenizer", "embedder")}
    assert mend(replace(shop, **nothing)) == [""]  # type: ignore[arg-type]
    assert findings(shop) == []


def test_what_another_model_embedded_is_not_mixed_with_vectors_of_this_one(
    shop: StepContext, store: Halves, item: Accepted
) -> None:
    artifact = shop.ledger.documents.artifact(item.document_id, 1, "embed")
    next(Path(shop.blobs._root).glob(f"**/{artifact}")).unlink()
    store.delete_document("shelf", item.document_id)
    use = Repairs(shop.ledger, {"memory": store}, shop.blobs, "another", doing(shop))
    assert {r.left for r in repair(findings(shop), use)} == {LOST}
    assert mend(shop) == [""]


def test_an_older_version_is_not_made_of_what_the_store_holds_of_another(
    shop: StepContext, item: Accepted
) -> None:
    new = submit(shop, paragraphs("four"))
    for step in STEPS[:-1]:
        run_step(shop, step, new.document_id, new.version)
    shop.blobs.delete(item.document_id)
    assert run_step(shop, "upsert", new.document_id, new.version) == "stop"
    found = look(shop, new)
    assert (found.state, found.live_version) == ("failed", 1)


def test_orphans_go_and_a_second_look_finds_nothing(
    shop: StepContext, store: Halves, item: Accepted
) -> None:
    for chunk_id, document_id in (("o", item.document_id), ("p", "f" * 32)):
        vector = np.ones(4, np.float32)
        store.batch_upsert_chunks("shelf", [ChunkRecord(chunk_id, document_id, "", "", vector)])
    store.batch_upsert_documents("shelf", [DocumentRecord("e" * 32, "", "")])
    assert mend(shop) == ["", ""]
    assert findings(shop) == []
    assert store.document_ids("shelf") == {item.document_id}
    assert store.count("shelf") == 5


def test_what_is_doubtful_is_only_removed_by_force(
    shop: StepContext, store: Halves, item: Accepted
) -> None:
    store.batch_upsert_documents(
        "shelf", [DocumentRecord(f"{n:032}", "", "") for n in range(comparison.FEW + 1)]
    )
    assert mend(shop) == [DOUBTFUL]
    assert len(store.document_ids("shelf")) == comparison.FEW + 2
    assert mend(shop, force=True) == [""]
    assert store.document_ids("shelf") == {item.document_id}


def test_a_copy_that_is_ours_is_dropped_and_an_unknown_collection_never(
    shop: StepContext, item: Accepted
) -> None:
    other = MemoryStore()
    for name in ("shelf", "theirs"):
        other.ensure_schema(replace(SHELF, name=name))
    other.batch_upsert_documents("shelf", [DocumentRecord(item.document_id, "", "")])
    all_stores = {"memory": shop.store_of("memory"), "other": other}
    use = Repairs(shop.ledger, all_stores, shop.blobs, "tiny", doing(shop))
    found = find_misplaced_collections(shop.ledger, all_stores)
    assert [r.left for r in repair(found, use, force=True)] == ["", NOT_OURS]
    assert other.collections() == ["theirs"]


def test_files_of_no_document_go_and_lost_ones_are_asked_for(
    shop: StepContext, item: Accepted
) -> None:
    shop.blobs.write("f" * 32, "original", b"x")
    grow_old(shop)
    found = [
        Finding("orphan-files", "blobs", ids=("f" * 32,)),
        Finding("missing-files", "blobs", half="original", ids=(item.document_id,)),
    ]
    use = Repairs(shop.ledger, {}, shop.blobs, "tiny", doing(shop))
    assert [r.left for r in repair(found, use)] == ["", SEND_AGAIN]
    assert shop.blobs.document_ids() == {item.document_id}


def grow_old(shop: StepContext) -> None:
    """Let every file be older than those that may belong to an upload."""
    for file in Path(shop.blobs._root).glob("documents/*/*"):
        os.utime(file, (1, 1))


def test_files_that_have_an_owner_by_now_or_are_young_stay(
    shop: StepContext, item: Accepted
) -> None:
    new, young = "e" * 32, "f" * 32
    for document_id in (new, young):
        shop.blobs.write(document_id, "original", b"x")
        grow_old(shop)
    found = audit_files(shop.ledger, shop.blobs)
    assert [f.ids for f in found] == [(new, young)]
    shop.ledger.documents.submit("shelf", submission("new", "new.txt"), new)
    shop.blobs.write(young, "text", b"x")
    use = Repairs(shop.ledger, {}, shop.blobs, "tiny", doing(shop))
    assert [r.left for r in repair(found, use)] == [MOVING]
    assert shop.blobs.document_ids() == {item.document_id, new, young}


def test_a_text_that_is_lost_is_extracted_again_and_what_followed_is_not_done_again(
    shop: StepContext, item: Accepted
) -> None:
    artifact = shop.ledger.documents.artifact(item.document_id, 1, "extract")
    assert artifact is not None
    text = shop.blobs.read(item.document_id, artifact)
    next(Path(shop.blobs._root).glob(f"**/{artifact}")).unlink()
    found = audit_files(shop.ledger, shop.blobs)
    assert [(f.kind, f.half) for f in found] == [("missing-files", "text")]
    another = Repairs(shop.ledger, {}, shop.blobs, "another", doing(shop))
    assert [r.left for r in repair(found, another)] == [LOST]

    class Named(Never):
        model = shop.embedder.model

    use = Repairs(
        shop.ledger,
        {},
        shop.blobs,
        "tiny",
        doing(replace(shop, embedder=Named())),  # type: ignore[arg-type]
    )
    assert [r.left for r in repair(found, use)] == [""]
    assert audit_files(shop.ledger, shop.blobs) == []
    assert shop.blobs.read(item.document_id, artifact) == text
    assert (look(shop, item).state, findings(shop)) == ("live", [])


def test_a_place_that_cannot_be_asked_is_left_even_by_force(shop: StepContext) -> None:
    found = Finding("broken-place", "memory", "shelf", certain=False, detail="no")
    use = Repairs(shop.ledger, {}, shop.blobs, "tiny", doing(shop))
    assert [r.left for r in repair([found], use, force=True)] == [BROKEN]


def test_a_kept_copy_that_is_moved_back_to_is_not_dropped(
    shop: StepContext, item: Accepted
) -> None:
    memory, other = shop.store_of("memory"), MemoryStore()
    other.ensure_schema(SHELF)
    other.batch_upsert_documents("shelf", [DocumentRecord(item.document_id, "", "")])
    stores = {"memory": memory, "other": other}
    use = Repairs(shop.ledger, stores, shop.blobs, "tiny", doing(shop))
    found = find_misplaced_collections(shop.ledger, stores)
    other.batch_upsert_documents("shelf", [DocumentRecord("f" * 32, "", "")])
    assert [r.left for r in repair(found, use)] == [MOVING], "it is another one by now"
    other.delete_document("shelf", "f" * 32)
    moves = shop.ledger.moves
    moves.end(moves.switch(moves.take("shelf", "other", lease_seconds=LONG), "memory"))
    assert [r.left for r in repair(found, use, force=True)] == [MOVING]
    assert other.collections() == memory.collections() == ["shelf"]
    assert moves.underway("shelf") is None


def test_orphans_and_tenants_that_the_ledger_knows_by_now_stay(
    shop: StepContext, store: Halves, item: Accepted
) -> None:
    desk = replace(SHELF, name="desk", tenants=True)
    shop.ledger.collections.create(desk, store="memory", embedder="tiny", analyzer="")
    store.ensure_schema(desk)
    store.ensure_tenant("desk", "eve")
    vector = np.ones(4, np.float32)
    for letter, document_id in (("o", "f" * 32), ("p", "e" * 32)):
        store.batch_upsert_chunks("shelf", [ChunkRecord(letter, document_id, "", "", vector)])
    stores = {"memory": store}
    found = [
        f
        for p in audit_scopes(shop.ledger, stores)
        for f in comparison.audit_scope(shop.ledger, p).findings
    ]
    assert [f.kind for f in found] == ["unknown-tenant", "orphan-documents", "orphan-chunks"]
    shop.ledger.tenants.create("desk", "eve")
    new = shop.ledger.documents.submit("shelf", submission("new", "new.txt"), "f" * 32)
    shop.ledger.leases.go_live(store_chunks(shop.ledger, new, ["o"]), ["o"], {})
    use = Repairs(shop.ledger, stores, shop.blobs, "tiny", doing(shop))
    assert [r.left for r in repair(found, use)] == [MOVING] * 3
    assert store.tenants("desk") == ["eve"]
    assert store.document_ids("shelf") == {item.document_id, "f" * 32}
    assert {c.chunk_id for c in store.get_chunks("shelf", ["o", "p"])} == {"o"}


def test_nothing_is_removed_while_another_moves_imports_or_upserts(
    shop: StepContext, store: Halves, item: Accepted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("callslip.ingestion.maintenance.orphans.UPSERT_SECONDS", 0.0)
    vector = np.ones(4, np.float32)
    store.batch_upsert_chunks("shelf", [ChunkRecord("o", item.document_id, "", "", vector)])
    found, moves = findings(shop), shop.ledger.moves
    use = Repairs(shop.ledger, {"memory": store}, shop.blobs, "tiny", doing(shop))
    for target in ("memory", "other"):
        move = moves.take("shelf", target, lease_seconds=LONG)
        assert [r.left for r in repair(found, use)] == [MOVING]
        moves.end(move)
    new = submit(shop, paragraphs("four"), "new.txt")
    for step in STEPS[:-1]:
        run_step(shop, step, new.document_id, new.version)
    claim = taken(shop.ledger, new, "upsert")
    assert [r.left for r in repair(found, use)] == [MOVING]
    assert store.count("shelf") == 6
    shop.ledger.leases.drop(claim)
    shop.ledger.documents.delete(new.document_id)
    assert [r.left for r in repair(found, use)] == [""]
    assert store.count("shelf") == 5


def test_no_upsert_and_no_move_begins_while_orphans_are_removed(
    shop: StepContext, store: Halves, item: Accepted, monkeypatch: pytest.MonkeyPatch
) -> None:
    vector = np.ones(4, np.float32)
    store.batch_upsert_chunks("shelf", [ChunkRecord("o", item.document_id, "", "", vector)])
    new = submit(shop, paragraphs("four"), "new.txt")
    for step in STEPS[:-1]:
        run_step(shop, step, new.document_id, new.version)
    remove, tried = store.delete_chunks, []

    def busy(*given: Any, **where: Any) -> None:
        tried.append(claim(shop.ledger, new, "upsert"))
        with pytest.raises(Conflict):
            shop.ledger.moves.take("shelf", "other", lease_seconds=LONG)
        remove(*given, **where)

    monkeypatch.setattr(store, "delete_chunks", busy)
    assert mend(shop) == [""]
    assert tried == [Refusal("leased")]
    assert shop.ledger.moves.underway("shelf") is None


def test_a_tenant_is_made_and_filled_again_and_one_that_nobody_knows_goes(
    shop: StepContext, store: Halves
) -> None:
    desk = replace(SHELF, name="desk", tenants=True)
    shop.ledger.collections.create(desk, store="memory", embedder="tiny", analyzer="")
    store.ensure_schema(desk)
    accepted = submit(shop, paragraphs("one"), collection="desk", tenant="ann")
    doing(shop)(accepted.document_id, 1, "extract")
    store.drop_tenant("desk", "ann")
    store.ensure_tenant("desk", "eve")
    found = [
        finding
        for place in audit_scopes(shop.ledger, {"memory": store}, "desk")
        for finding in comparison.audit_scope(shop.ledger, place).findings
    ]
    use = Repairs(shop.ledger, {"memory": store}, shop.blobs, "tiny", doing(shop))
    assert [r.left for r in repair(found, use)] == ["", ""]
    assert store.tenants("desk") == ["ann"]
    assert store.count("desk", tenant="ann") == 3


def test_a_deletion_or_a_new_version_that_comes_meanwhile_wins(
    shop: StepContext, store: Halves, item: Accepted
) -> None:
    store.delete_document("shelf", item.document_id)
    found = findings(shop)
    use = Repairs(shop.ledger, {"memory": store}, shop.blobs, "tiny", doing(shop))
    shop.ledger.documents.submit("shelf", submission("new"), item.document_id)
    assert [r.left for r in repair(found, use)] == [MOVING]
    shop.ledger.documents.delete(item.document_id)
    assert [r.left for r in repair(found, use)] == [MOVING]
    assert store.count("shelf") == 0


def test_a_new_version_takes_the_place_of_one_that_is_being_repaired(
    shop: StepContext, item: Accepted
) -> None:
    assert shop.ledger.leases.reopen(item.document_id, 1, "upsert")
    claim = taken(shop.ledger, item, "upsert")
    new = shop.ledger.documents.submit("shelf", submission("new"), item.document_id)
    assert new.version == 2
    assert not shop.ledger.leases.reopen(item.document_id, 1, "upsert")
    with pytest.raises(Exception, match="no longer this worker's"):
        shop.ledger.leases.go_live(claim, [], {})
    assert seen(shop, item) == ["one0", "two0", "three0"], "it is seen all the while"


def test_a_failed_version_that_is_sent_again_stops_the_repair_of_the_one_before_it(
    shop: StepContext, item: Accepted
) -> None:
    new = shop.ledger.documents.submit("shelf", submission("new"), item.document_id)
    shop.ledger.leases.fail(taken(shop.ledger, new), StoreDown("x"))
    assert shop.ledger.leases.reopen(item.document_id, 1, "upsert")
    shop.ledger.documents.submit("shelf", submission("new"), item.document_id)
    assert run_step(shop, "upsert", item.document_id, 1) == "stop"
    assert look(shop, item).state == "waiting"


def test_a_repair_that_is_killed_is_finished_by_the_sweep(
    shop: StepContext, store: Halves, item: Accepted
) -> None:
    store.delete_chunks("shelf", chunk_ids(shop, item)[:1])
    assert shop.ledger.leases.reopen(item.document_id, 1, "upsert")
    taken(shop.ledger, item, "upsert", lease=OVER)
    (stuck,) = shop.ledger.sweep.stuck(idle=False, resend_seconds=60, max_crashes=3)
    assert (stuck.document_id, stuck.version, stuck.step) == (item.document_id, 1, "upsert")
    doing(shop)(stuck.document_id, stuck.version, stuck.step)
    assert findings(shop) == []
