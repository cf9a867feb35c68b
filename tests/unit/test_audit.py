"""Stores against the ledger: every kind of finding, and what is none."""

import hashlib
import os
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ledger_moves import LONG, publish, store_chunks, submission, submit, taken
from memory_store import MemoryStore

from callslip.errors import CollectionNotFound, InvalidRequest, SettingsError, StoreDown
from stores import audit
from stores.audit import Finding, Look, look, places
from stores.blobs import Blobs, original_name
from stores.ledger import STEPS, Accepted, Ledger
from stores.records import ChunkRecord, CollectionSchema, DocumentRecord, VectorSpec
from stores.strays import FILES_SETTLE_SECONDS, look_aside, look_at_files

SCHEMA = CollectionSchema("shelf", VectorSpec(1))


class Halves(MemoryStore):
    """A store that may lose a chunk in one half, as two stores side by side do."""

    def __init__(self) -> None:
        super().__init__()
        self.lost: dict[str, set[str]] = {"vector": set(), "keyword": set()}
        self.after_reading: Callable[[], None] = lambda: None
        self.broken: set[str] = set()
        self.is_down = False

    def ping(self) -> None:
        if self.is_down:
            raise StoreDown("nobody answers")

    def document_ids(self, collection: str, *, tenant: str = "") -> set[str]:
        if self.is_down or {collection, tenant} & self.broken:
            raise InvalidRequest("no such name", hint="Use another.")
        return super().document_ids(collection, tenant=tenant)

    def chunk_ids(
        self, collection: str, document_id: str | None = None, *, tenant: str = ""
    ) -> dict[str, set[str]]:
        halves = super().chunk_ids(collection, document_id, tenant=tenant)
        act, self.after_reading = self.after_reading, lambda: None
        act()
        return {half: ids - self.lost[half] for half, ids in halves.items()}


@dataclass(frozen=True)
class House:
    """A ledger, blobs and two stores; `shelf` is kept in the first."""

    ledger: Ledger
    blobs: Blobs
    store: Halves
    other: MemoryStore

    @property
    def stores(self) -> dict[str, Any]:
        return {"memory": self.store, "other": self.other}

    def fill(self, content: str, letters: str) -> Accepted:
        """Make a version live whose chunks are these letters, in the ledger and in the store."""
        item = publish(self.ledger, content, letters)
        self.put(item.document_id, letters)
        original = original_name(hashlib.sha256(content.encode()).hexdigest())
        for name in (original, *(f"{step}-artifact" for step in STEPS[:-1])):
            self.blobs.write(item.document_id, name, content.encode())
        return item

    def put(self, document_id: str, letters: Iterable[str]) -> None:
        """Put a document with these chunks into the store, whatever the ledger says."""
        self.store.batch_upsert_documents("shelf", [DocumentRecord(document_id, "", "a.txt")])
        self.store.batch_upsert_chunks("shelf", [chunk(c, document_id) for c in letters])

    def look(self) -> Look:
        (place,) = places(self.ledger, self.stores)
        return look(self.ledger, place)

    def found(self) -> list[tuple[str, str, tuple[str, ...]]]:
        """Kind, half and ids of each finding."""
        return [(f.kind, f.half, f.ids) for f in self.look().findings]


def chunk(letter: str, document_id: str) -> ChunkRecord:
    return ChunkRecord(letter, document_id, letter, letter, np.ones(1, np.float32))


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    """Everything with the collection `shelf`, empty."""
    with closing(Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")) as ledger:
        ledger.create()
        ledger.collections.create(SCHEMA, store="memory", embedder="", analyzer="")
        store = Halves()
        store.ensure_schema(SCHEMA)
        yield House(ledger, Blobs(str(tmp_path / "blobs")), store, MemoryStore())


def test_a_store_that_holds_what_the_ledger_says_is_counted_and_right(house: House) -> None:
    house.fill("one", "xy")
    assert house.look() == Look("shelf", "", "memory", 1, 2, {"vector": 2, "keyword": 2}, 0, ())
    assert look_aside(house.ledger, house.stores) == []
    assert look_at_files(house.ledger, house.blobs) == []


@pytest.mark.parametrize("half", ["vector", "keyword"])
def test_a_live_chunk_that_a_half_lacks_is_missing(house: House, half: str) -> None:
    item = house.fill("one", "xy")
    house.store.lost[half].add("x")
    (finding,) = house.look().findings
    assert finding == Finding(
        "missing", "memory", "shelf", document_id=item.document_id, half=half, ids=("x",)
    )


def test_a_live_chunk_that_no_half_has_and_a_record_that_is_gone_are_missing(house: House) -> None:
    item = house.fill("one", "xy")
    house.store.delete_chunks("shelf", ["y"])
    house.store._documents["shelf", ""].clear()
    assert house.found() == [
        ("missing", "vector", ("y",)),
        ("missing", "keyword", ("y",)),
        ("missing", "document", (item.document_id,)),
    ]


def test_chunks_and_documents_that_the_ledger_does_not_know_are_orphans(house: House) -> None:
    item = house.fill("one", "x")
    house.put(item.document_id, "xo")
    house.put("f" * 32, "pq")
    assert house.found() == [
        ("orphan-documents", "", ("f" * 32,)),
        ("orphan-chunks", "", ("o", "p", "q")),
    ]


def test_what_a_removed_document_still_has_is_an_orphan(house: House) -> None:
    item = house.fill("one", "x")
    house.ledger.documents.delete(item.document_id)
    assert (house.look().skipped, house.found()) == (1, []), "the sweep will remove it"
    house.ledger.chunks.forget(item.document_id)
    house.ledger.documents.removed(item.document_id, {})
    assert house.found() == [
        ("orphan-documents", "", (item.document_id,)),
        ("orphan-chunks", "", ("x",)),
    ]


def test_chunks_of_a_version_that_comes_or_goes_are_no_finding(house: House) -> None:
    item = house.fill("one", "x")
    submit(house.ledger, "two")
    house.store.delete_chunks("shelf", ["x"])
    assert (house.look().skipped, house.found()) == (1, [])
    house.put(item.document_id, "x")
    item = house.fill("three", "xy")
    item = house.fill("four", "y")
    assert house.found() == [], "x is known until it is pruned"
    house.store.delete_chunks("shelf", house.ledger.chunks.end(item.document_id))
    assert house.found() == [], "and need not be there"


def test_a_document_that_somebody_works_on_is_skipped(house: House) -> None:
    house.fill("one", "x")
    taken(house.ledger, submit(house.ledger, "two"), lease=LONG)
    house.store.delete_chunks("shelf", ["x"])
    assert (house.look().skipped, house.found()) == (1, [])


def test_a_document_that_arrives_between_the_reads_is_no_finding(house: House) -> None:
    house.store.after_reading = lambda: house.fill("one", "xy") and None
    assert house.found() == []


def test_a_document_that_is_removed_between_the_reads_is_no_finding(house: House) -> None:
    item = house.fill("one", "xy")

    def remove() -> None:
        house.ledger.documents.delete(item.document_id)
        house.store.delete_document("shelf", item.document_id)
        house.ledger.chunks.forget(item.document_id)
        house.ledger.documents.removed(item.document_id, {})

    house.store.after_reading = remove
    assert house.found() == []


def test_a_version_that_goes_live_between_the_reads_is_no_finding(house: House) -> None:
    item = house.fill("one", "x")

    def replace_it() -> None:
        house.fill("two", "y")
        ended = house.ledger.chunks.end(item.document_id)
        house.store.delete_chunks("shelf", ended)
        house.ledger.chunks.forget(item.document_id, ended)

    house.store.after_reading = replace_it
    assert house.found() == []
    assert house.look().chunks == 1


def test_a_chunk_that_is_expected_and_written_between_the_reads_is_no_orphan(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.put("f" * 32, "o")
    known = house.ledger.inventory.chunks

    def adopted(collection: str, tenant: str, ids: Any) -> set[str]:
        store_chunks(house.ledger, submit(house.ledger), ids)
        return known(collection, tenant, ids)

    monkeypatch.setattr(house.ledger.inventory, "chunks", adopted)
    assert [kind for kind, _, _ in house.found()] == ["orphan-documents"]


def test_a_collection_that_its_store_lost_is_missing_with_all_it_held(house: House) -> None:
    house.fill("one", "x")
    house.store.drop_collection("shelf")
    assert [(kind, half) for kind, half, _ in house.found()] == [
        ("missing-collection", ""),
        ("missing", "vector"),
        ("missing", "keyword"),
        ("missing", "document"),
    ]


def test_a_collection_that_is_being_removed_is_left_alone(house: House) -> None:
    house.fill("one", "x")
    house.other.ensure_schema(SCHEMA)
    house.ledger.collections.delete("shelf")
    assert places(house.ledger, house.stores) == []
    assert look_aside(house.ledger, house.stores) == []


def test_most_of_a_store_unknown_to_the_ledger_is_for_a_person_to_decide(house: House) -> None:
    house.fill("one", "x")
    for number in range(audit.FEW + 1):
        house.put(f"{number:032}", f"{number}")
    assert not any(finding.certain for finding in house.look().findings)
    house.store.delete_document("shelf", f"{0:032}")
    assert all(finding.certain for finding in house.look().findings)


def test_every_tenant_is_compared_and_one_that_only_the_store_knows_is_found(house: House) -> None:
    schema = replace(SCHEMA, name="desk", tenants=True)
    house.ledger.collections.create(schema, store="memory", embedder="", analyzer="")
    house.store.ensure_schema(schema)
    for tenant in ("ann", "bob"):
        house.ledger.documents.submit("desk", submission(), uuid.uuid4().hex, tenant=tenant)
        house.store.ensure_tenant("desk", tenant)
    house.ledger.tenants.delete("desk", "bob")
    house.store.ensure_tenant("desk", "eve")
    looks = [look(house.ledger, place) for place in places(house.ledger, house.stores, "desk")]
    assert [(seen.tenant, [f.kind for f in seen.findings]) for seen in looks] == [
        ("ann", []),
        ("eve", ["unknown-tenant"]),
    ]


def test_a_tenant_whose_documents_its_store_lost_is_compared_too(house: House) -> None:
    schema = replace(SCHEMA, name="desk", tenants=True)
    house.ledger.collections.create(schema, store="memory", embedder="", analyzer="")
    house.store.ensure_schema(schema)
    house.ledger.tenants.create("desk", "ann")
    (place,) = places(house.ledger, house.stores, "desk")
    assert look(house.ledger, place).findings == ()


def desk_of(house: House, *tenants: str) -> dict[str, str]:
    """A collection `desk` with these tenants; each has a live document of a chunk of its name."""
    schema = replace(SCHEMA, name="desk", tenants=True)
    house.ledger.collections.create(schema, store="memory", embedder="", analyzer="")
    house.store.ensure_schema(schema)
    ids = {}
    for tenant in tenants:
        given = (submission(tenant), uuid.uuid4().hex)
        item = house.ledger.documents.submit("desk", *given, tenant=tenant)
        claim = store_chunks(house.ledger, item, [tenant])
        house.ledger.leases.go_live(claim, [tenant], {})
        house.store.ensure_tenant("desk", tenant)
        put_in_desk(house, tenant, item.document_id, tenant)
        ids[tenant] = item.document_id
    return ids


def put_in_desk(house: House, tenant: str, document_id: str, letter: str) -> None:
    record = DocumentRecord(document_id, "", "a.txt")
    house.store.batch_upsert_documents("desk", [record], tenant=tenant)
    house.store.batch_upsert_chunks("desk", [chunk(letter, document_id)], tenant=tenant)


def test_what_another_tenant_or_collection_owns_is_an_orphan_here(house: House) -> None:
    ids = desk_of(house, "ann", "bob")
    put_in_desk(house, "bob", ids["ann"], "ann")
    house.put(ids["ann"], ["ann"])
    looks = [look(house.ledger, place) for place in places(house.ledger, house.stores)]
    assert [(seen.collection, seen.tenant, [f.kind for f in seen.findings]) for seen in looks] == [
        ("desk", "ann", []),
        ("desk", "bob", ["orphan-documents", "orphan-chunks"]),
        ("shelf", "", ["orphan-documents", "orphan-chunks"]),
    ]
    assert house.ledger.chunks.visible(["ann"], collection="desk", tenant="ann")
    assert not house.ledger.chunks.visible(["ann"], collection="desk", tenant="bob")
    assert not house.ledger.chunks.visible(["ann"], collection="shelf")


def test_a_place_that_cannot_be_asked_is_a_finding_and_the_others_are_compared(
    house: House,
) -> None:
    desk_of(house, "ann", "bob", "eve")
    house.store.broken.add("bob")
    put_in_desk(house, "eve", "f" * 32, "o")
    looks = [look(house.ledger, place) for place in places(house.ledger, house.stores, "desk")]
    assert [[f.kind for f in seen.findings] for seen in looks] == [
        [],
        ["broken-place"],
        ["orphan-documents", "orphan-chunks"],
    ]
    broken = looks[1]
    assert (broken.documents, broken.chunks, broken.held) == (1, 1, {})
    (finding,) = broken.findings
    assert (finding.certain, finding.detail) == (False, "no such name Use another.")
    house.store.is_down = True
    with pytest.raises(StoreDown):
        look(house.ledger, places(house.ledger, house.stores, "desk")[0])


def test_tenants_that_cannot_be_listed_and_a_copy_that_cannot_be_read_are_told(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk_of(house, "ann")

    def refuse(_: str) -> list[str]:
        raise InvalidRequest("what is this?", hint="")

    monkeypatch.setattr(house.store, "tenants", refuse)
    (place,) = places(house.ledger, house.stores, "desk")
    assert [f.kind for f in look(house.ledger, place).findings] == ["broken-place"]
    house.other.ensure_schema(replace(SCHEMA, name="desk", tenants=True))
    monkeypatch.setattr(house.other, "tenants", refuse)
    (finding,) = look_aside(house.ledger, house.stores)
    assert (finding.kind, finding.store, finding.detail) == (
        "broken-place",
        "other",
        "what is this?",
    )


def test_a_collection_that_moves_while_others_are_looked_at_is_no_foreign_copy(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.other.ensure_schema(replace(SCHEMA, name="a"))
    house.other.ensure_schema(SCHEMA)
    moving = house.ledger.inventory.moving

    def switch_meanwhile(name: str) -> bool:
        moves = house.ledger.moves
        if name == "a":
            move = moves.take("shelf", "other", lease_seconds=LONG)
            moves.end(moves.switch(move, "memory"))
        return moving(name)

    monkeypatch.setattr(house.ledger.inventory, "moving", switch_meanwhile)
    stores = {"other": house.other}
    assert [f.collection for f in look_aside(house.ledger, stores)] == ["a"]


def test_a_copy_in_another_store_is_ours_when_the_ledger_knows_its_documents(house: House) -> None:
    item = house.fill("one", "x")
    house.other.ensure_schema(SCHEMA)
    house.other.ensure_schema(replace(SCHEMA, name="theirs"))
    found = look_aside(house.ledger, house.stores)
    assert [(f.kind, f.store, f.collection, f.certain) for f in found] == [
        ("foreign-copy", "other", "shelf", False),
        ("unknown-collection", "other", "theirs", False),
    ]
    house.other.batch_upsert_documents("shelf", [DocumentRecord(item.document_id, "", "a")])
    assert look_aside(house.ledger, house.stores, "shelf")[0].certain
    house.other.batch_upsert_documents("shelf", [DocumentRecord("f" * 32, "", "a")])
    assert not look_aside(house.ledger, house.stores, "shelf")[0].certain


def test_files_of_no_document_are_orphans_once_they_are_old(house: House, tmp_path: Path) -> None:
    house.fill("one", "x")
    house.blobs.write("f" * 32, "original-two", b"two")
    assert look_at_files(house.ledger, house.blobs) == [], "an upload may be under way"
    old = time.time() - FILES_SETTLE_SECONDS - 60
    for file in tmp_path.glob("blobs/documents/*/*"):
        os.utime(file, (old, old))
    assert look_at_files(house.ledger, house.blobs) == [
        Finding("orphan-files", "blobs", ids=("f" * 32,))
    ]


def test_a_live_document_without_any_file_is_found(house: House) -> None:
    item = house.fill("one", "x")
    house.blobs.delete(item.document_id)
    assert look_at_files(house.ledger, house.blobs) == [
        Finding("missing-files", "blobs", half="original", ids=(item.document_id,))
    ]


@pytest.mark.parametrize(("half", "name"), [("original", "original-"), ("text", "extract-")])
def test_a_live_document_that_lost_one_file_of_many_is_found(
    house: House, tmp_path: Path, half: str, name: str
) -> None:
    house.fill("one", "x")
    item = house.fill("two", "y")
    assert look_at_files(house.ledger, house.blobs) == []
    digest = hashlib.sha256(b"two").hexdigest()
    lost = name + (digest if half == "original" else "artifact")
    next(tmp_path.glob(f"blobs/documents/*/{lost}")).unlink()
    found = Finding("missing-files", "blobs", half=half, ids=(item.document_id,))
    assert look_at_files(house.ledger, house.blobs) == [found]
    submit(house.ledger, "three")
    assert look_at_files(house.ledger, house.blobs) == [], "a new version is on its way"


def test_what_else_lies_beside_the_documents_folders_is_not_ours(
    house: House, tmp_path: Path
) -> None:
    house.fill("one", "x")
    beside = tmp_path / "blobs" / "documents"
    for folder in ("lost+found", "새 폴더", "F" * 32, "f" * 31):
        (beside / folder).mkdir()
        (beside / folder / "a").touch()
    for file in (".DS_Store", "e" * 32):
        (beside / file).touch()
    for path in beside.glob("**/*"):
        os.utime(path, (1, 1))
    assert look_at_files(house.ledger, house.blobs) == []


def test_a_store_that_is_not_set_up_and_an_unknown_collection_are_told(house: House) -> None:
    with pytest.raises(SettingsError, match="shelf is kept in memory"):
        places(house.ledger, {"other": house.other})
    with pytest.raises(CollectionNotFound):
        places(house.ledger, house.stores, "nowhere")


def test_documents_are_compared_page_by_page(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stores.ledger.inventory.DOCUMENTS_PER_PAGE", 2)
    for number in range(5):
        item = submit(house.ledger, str(number), f"{number}.txt")
        claim = store_chunks(house.ledger, item, [str(number)])
        house.ledger.leases.go_live(claim, [str(number)], {})
        house.put(item.document_id, str(number))
    told: list[int] = []
    (place,) = places(house.ledger, house.stores)
    assert look(house.ledger, place, told.append).findings == ()
    assert told == [2, 2, 1]


def test_a_lease_that_ran_out_and_copied_nothing_leaves_nothing_out(house: House) -> None:
    moves = house.ledger.moves
    move = moves.take("shelf", "memory", lease_seconds=LONG)
    assert places(house.ledger, house.stores) == []
    moves.release(move)
    assert [place.name for place in places(house.ledger, house.stores)] == ["shelf"]
    moves.note("shelf", "memory", {"f" * 32: (0, 0)})
    assert places(house.ledger, house.stores) == [], "an import was broken off"


def test_a_collection_that_is_being_moved_is_left_out_until_that_has_ended(house: House) -> None:
    item = house.fill("one", "xy")
    house.store.lost["vector"].add("x")
    house.other.ensure_schema(SCHEMA)
    moves = house.ledger.moves
    move = moves.take("shelf", "other", lease_seconds=LONG)
    moves.note("shelf", "other", {item.document_id: (0, 0)})
    for _ in ("while it is moved", "after the mover was killed"):
        assert places(house.ledger, house.stores) == []
        assert look_aside(house.ledger, house.stores) == []
        moves.release(move)
    moves.end(move)
    assert house.found() == [("missing", "vector", ("x",))]
    (finding,) = look_aside(house.ledger, house.stores)
    assert (finding.kind, finding.store) == ("foreign-copy", "other")
