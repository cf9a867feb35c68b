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
from callslip.stores.audit import comparison
from callslip.stores.audit.comparison import Finding, ScopeReport, audit_scope, audit_scopes
from callslip.stores.audit.orphans import (
    FILES_SETTLE_SECONDS,
    audit_files,
    find_misplaced_collections,
)
from callslip.stores.blobs import Blobs, original_name
from callslip.stores.ledger import STEPS, Accepted, Ledger
from callslip.stores.records import ChunkRecord, CollectionSchema, DocumentRecord, VectorSpec

SCHEMA = CollectionSchema("papers", VectorSpec(1))


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
class Site:
    """A ledger, blobs and two stores; `papers` is kept in the first."""

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
        self.store.batch_upsert_documents("papers", [DocumentRecord(document_id, "", "a.txt")])
        self.store.batch_upsert_chunks("papers", [chunk(c, document_id) for c in letters])

    def audit_scope(self) -> ScopeReport:
        (scope,) = audit_scopes(self.ledger, self.stores)
        return audit_scope(self.ledger, scope)

    def found(self) -> list[tuple[str, str, tuple[str, ...]]]:
        """Kind, half and ids of each finding."""
        return [(f.kind, f.half, f.ids) for f in self.audit_scope().findings]


def chunk(letter: str, document_id: str) -> ChunkRecord:
    return ChunkRecord(letter, document_id, letter, letter, np.ones(1, np.float32))


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """Everything with the collection `papers`, empty."""
    with closing(Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")) as ledger:
        ledger.create()
        ledger.collections.create(SCHEMA, store="memory", embedder="", analyzer="")
        store = Halves()
        store.ensure_schema(SCHEMA)
        yield Site(ledger, Blobs(str(tmp_path / "blobs")), store, MemoryStore())


def test_a_store_that_holds_what_the_ledger_says_is_counted_and_right(
    site: Site,
) -> None:
    site.fill("one", "xy")
    assert site.audit_scope() == ScopeReport(
        "papers", "", "memory", 1, 2, {"vector": 2, "keyword": 2}, 0, ()
    )
    assert find_misplaced_collections(site.ledger, site.stores) == []
    assert audit_files(site.ledger, site.blobs) == []


@pytest.mark.parametrize("half", ["vector", "keyword"])
def test_a_live_chunk_that_a_half_lacks_is_missing(site: Site, half: str) -> None:
    item = site.fill("one", "xy")
    site.store.lost[half].add("x")
    (finding,) = site.audit_scope().findings
    assert finding == Finding(
        "missing", "memory", "papers", document_id=item.document_id, half=half, ids=("x",)
    )


def test_a_live_chunk_that_no_half_has_and_a_record_that_is_gone_are_missing(
    site: Site,
) -> None:
    item = site.fill("one", "xy")
    site.store.delete_chunks("papers", ["y"])
    site.store._documents["papers", ""].clear()
    assert site.found() == [
        ("missing", "vector", ("y",)),
        ("missing", "keyword", ("y",)),
        ("missing", "document", (item.document_id,)),
    ]


def test_chunks_and_documents_that_the_ledger_does_not_know_are_orphans(
    site: Site,
) -> None:
    item = site.fill("one", "x")
    site.put(item.document_id, "xo")
    site.put("f" * 32, "pq")
    assert site.found() == [
        ("orphan-documents", "", ("f" * 32,)),
        ("orphan-chunks", "", ("o", "p", "q")),
    ]


def test_what_a_removed_document_still_has_is_an_orphan(site: Site) -> None:
    item = site.fill("one", "x")
    site.ledger.documents.delete(item.document_id)
    assert (site.audit_scope().skipped, site.found()) == (1, []), "the sweep will remove it"
    site.ledger.chunks.forget(item.document_id)
    site.ledger.documents.removed(item.document_id, {})
    assert site.found() == [
        ("orphan-documents", "", (item.document_id,)),
        ("orphan-chunks", "", ("x",)),
    ]


def test_chunks_of_a_version_that_comes_or_goes_are_no_finding(site: Site) -> None:
    item = site.fill("one", "x")
    submit(site.ledger, "two")
    site.store.delete_chunks("papers", ["x"])
    assert (site.audit_scope().skipped, site.found()) == (1, [])
    site.put(item.document_id, "x")
    item = site.fill("three", "xy")
    item = site.fill("four", "y")
    assert site.found() == [], "x is known until it is pruned"
    site.store.delete_chunks("papers", site.ledger.chunks.end(item.document_id))
    assert site.found() == [], "and need not be there"


def test_a_document_that_somebody_works_on_is_skipped(site: Site) -> None:
    site.fill("one", "x")
    taken(site.ledger, submit(site.ledger, "two"), lease=LONG)
    site.store.delete_chunks("papers", ["x"])
    assert (site.audit_scope().skipped, site.found()) == (1, [])


def test_a_document_that_arrives_between_the_reads_is_no_finding(
    site: Site,
) -> None:
    site.store.after_reading = lambda: site.fill("one", "xy") and None
    assert site.found() == []


def test_a_document_that_is_removed_between_the_reads_is_no_finding(
    site: Site,
) -> None:
    item = site.fill("one", "xy")

    def remove() -> None:
        site.ledger.documents.delete(item.document_id)
        site.store.delete_documents("papers", [item.document_id])
        site.ledger.chunks.forget(item.document_id)
        site.ledger.documents.removed(item.document_id, {})

    site.store.after_reading = remove
    assert site.found() == []


def test_a_version_that_goes_live_between_the_reads_is_no_finding(
    site: Site,
) -> None:
    item = site.fill("one", "x")

    def replace_it() -> None:
        site.fill("two", "y")
        ended = site.ledger.chunks.end(item.document_id)
        site.store.delete_chunks("papers", ended)
        site.ledger.chunks.forget(item.document_id, ended)

    site.store.after_reading = replace_it
    assert site.found() == []
    assert site.audit_scope().chunks == 1


def test_a_chunk_that_is_expected_and_written_between_the_reads_is_no_orphan(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.put("f" * 32, "o")
    known = site.ledger.inventory.chunks

    def adopted(collection: str, tenant: str, ids: Any) -> set[str]:
        store_chunks(site.ledger, submit(site.ledger), ids)
        return known(collection, tenant, ids)

    monkeypatch.setattr(site.ledger.inventory, "chunks", adopted)
    assert [kind for kind, _, _ in site.found()] == ["orphan-documents"]


def test_a_collection_that_its_store_lost_is_missing_with_all_it_held(
    site: Site,
) -> None:
    site.fill("one", "x")
    site.store.drop_collection("papers")
    assert [(kind, half) for kind, half, _ in site.found()] == [
        ("missing-collection", ""),
        ("missing", "vector"),
        ("missing", "keyword"),
        ("missing", "document"),
    ]


def test_a_collection_that_is_being_removed_is_left_alone(site: Site) -> None:
    site.fill("one", "x")
    site.other.ensure_schema(SCHEMA)
    site.ledger.collections.delete("papers")
    assert audit_scopes(site.ledger, site.stores) == []
    assert find_misplaced_collections(site.ledger, site.stores) == []


def test_most_of_a_store_unknown_to_the_ledger_is_for_a_person_to_decide(
    site: Site,
) -> None:
    site.fill("one", "x")
    for number in range(comparison.FEW + 1):
        site.put(f"{number:032}", f"{number}")
    assert not any(finding.certain for finding in site.audit_scope().findings)
    site.store.delete_documents("papers", [f"{0:032}"])
    assert all(finding.certain for finding in site.audit_scope().findings)


def test_every_tenant_is_compared_and_one_that_only_the_store_knows_is_found(
    site: Site,
) -> None:
    schema = replace(SCHEMA, name="notes", tenants=True)
    site.ledger.collections.create(schema, store="memory", embedder="", analyzer="")
    site.store.ensure_schema(schema)
    for tenant in ("ann", "bob"):
        site.ledger.documents.submit("notes", submission(), uuid.uuid4().hex, tenant=tenant)
        site.store.ensure_tenant("notes", tenant)
    site.ledger.tenants.delete("notes", "bob")
    site.store.ensure_tenant("notes", "eve")
    audits = [
        audit_scope(site.ledger, scope) for scope in audit_scopes(site.ledger, site.stores, "notes")
    ]
    assert [(seen.tenant, [f.kind for f in seen.findings]) for seen in audits] == [
        ("ann", []),
        ("eve", ["unknown-tenant"]),
    ]


def test_a_tenant_whose_documents_its_store_lost_is_compared_too(
    site: Site,
) -> None:
    schema = replace(SCHEMA, name="notes", tenants=True)
    site.ledger.collections.create(schema, store="memory", embedder="", analyzer="")
    site.store.ensure_schema(schema)
    site.ledger.tenants.create("notes", "ann")
    (scope,) = audit_scopes(site.ledger, site.stores, "notes")
    assert audit_scope(site.ledger, scope).findings == ()


def store_scope(site: Site, *tenants: str) -> dict[str, str]:
    """A collection `notes` with these tenants; each has a live document of a chunk of its name."""
    schema = replace(SCHEMA, name="notes", tenants=True)
    site.ledger.collections.create(schema, store="memory", embedder="", analyzer="")
    site.store.ensure_schema(schema)
    ids = {}
    for tenant in tenants:
        given = (submission(tenant), uuid.uuid4().hex)
        item = site.ledger.documents.submit("notes", *given, tenant=tenant)
        claim = store_chunks(site.ledger, item, [tenant])
        site.ledger.leases.go_live(claim, [tenant], {})
        site.store.ensure_tenant("notes", tenant)
        put_in_scope(site, tenant, item.document_id, tenant)
        ids[tenant] = item.document_id
    return ids


def put_in_scope(site: Site, tenant: str, document_id: str, letter: str) -> None:
    record = DocumentRecord(document_id, "", "a.txt")
    site.store.batch_upsert_documents("notes", [record], tenant=tenant)
    site.store.batch_upsert_chunks("notes", [chunk(letter, document_id)], tenant=tenant)


def test_what_another_tenant_or_collection_owns_is_an_orphan_here(
    site: Site,
) -> None:
    ids = store_scope(site, "ann", "bob")
    put_in_scope(site, "bob", ids["ann"], "ann")
    site.put(ids["ann"], ["ann"])
    audits = [audit_scope(site.ledger, scope) for scope in audit_scopes(site.ledger, site.stores)]
    assert [(seen.collection, seen.tenant, [f.kind for f in seen.findings]) for seen in audits] == [
        ("notes", "ann", []),
        ("notes", "bob", ["orphan-documents", "orphan-chunks"]),
        ("papers", "", ["orphan-documents", "orphan-chunks"]),
    ]
    assert site.ledger.chunks.visible(["ann"], collection="notes", tenant="ann")
    assert not site.ledger.chunks.visible(["ann"], collection="notes", tenant="bob")
    assert not site.ledger.chunks.visible(["ann"], collection="papers")


def test_a_place_that_cannot_be_asked_is_a_finding_and_the_others_are_compared(
    site: Site,
) -> None:
    store_scope(site, "ann", "bob", "eve")
    site.store.broken.add("bob")
    put_in_scope(site, "eve", "f" * 32, "o")
    audits = [
        audit_scope(site.ledger, scope) for scope in audit_scopes(site.ledger, site.stores, "notes")
    ]
    assert [[f.kind for f in seen.findings] for seen in audits] == [
        [],
        ["broken-place"],
        ["orphan-documents", "orphan-chunks"],
    ]
    broken = audits[1]
    assert (broken.documents, broken.chunks, broken.stored) == (1, 1, {})
    (finding,) = broken.findings
    assert (finding.certain, finding.detail) == (False, "no such name Use another.")
    site.store.is_down = True
    with pytest.raises(StoreDown):
        audit_scope(site.ledger, audit_scopes(site.ledger, site.stores, "notes")[0])


def test_tenants_that_cannot_be_listed_and_a_copy_that_cannot_be_read_are_told(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    store_scope(site, "ann")

    def refuse(_: str) -> list[str]:
        raise InvalidRequest("what is this?", hint="")

    monkeypatch.setattr(site.store, "tenants", refuse)
    (scope,) = audit_scopes(site.ledger, site.stores, "notes")
    assert [f.kind for f in audit_scope(site.ledger, scope).findings] == ["broken-place"]
    site.other.ensure_schema(replace(SCHEMA, name="notes", tenants=True))
    monkeypatch.setattr(site.other, "tenants", refuse)
    (finding,) = find_misplaced_collections(site.ledger, site.stores)
    assert (finding.kind, finding.store, finding.detail) == (
        "broken-place",
        "other",
        "what is this?",
    )


def test_a_collection_that_moves_while_others_are_looked_at_is_no_foreign_copy(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.other.ensure_schema(replace(SCHEMA, name="a"))
    site.other.ensure_schema(SCHEMA)
    moving = site.ledger.inventory.moving

    def switch_meanwhile(name: str) -> bool:
        moves = site.ledger.moves
        if name == "a":
            move = moves.take("papers", "other", lease_seconds=LONG)
            moves.end(moves.switch(move, "memory"))
        return moving(name)

    monkeypatch.setattr(site.ledger.inventory, "moving", switch_meanwhile)
    stores = {"other": site.other}
    assert [f.collection for f in find_misplaced_collections(site.ledger, stores)] == ["a"]


def test_a_copy_in_another_store_is_ours_when_the_ledger_knows_its_documents(
    site: Site,
) -> None:
    item = site.fill("one", "x")
    site.other.ensure_schema(SCHEMA)
    site.other.ensure_schema(replace(SCHEMA, name="theirs"))
    found = find_misplaced_collections(site.ledger, site.stores)
    assert [(f.kind, f.store, f.collection, f.certain) for f in found] == [
        ("foreign-copy", "other", "papers", False),
        ("unknown-collection", "other", "theirs", False),
    ]
    site.other.batch_upsert_documents("papers", [DocumentRecord(item.document_id, "", "a")])
    assert find_misplaced_collections(site.ledger, site.stores, "papers")[0].certain
    site.other.batch_upsert_documents("papers", [DocumentRecord("f" * 32, "", "a")])
    assert not find_misplaced_collections(site.ledger, site.stores, "papers")[0].certain


def test_files_of_no_document_are_orphans_once_they_are_old(site: Site, tmp_path: Path) -> None:
    site.fill("one", "x")
    site.blobs.write("f" * 32, "original-two", b"two")
    assert audit_files(site.ledger, site.blobs) == [], "an upload may be under way"
    old = time.time() - FILES_SETTLE_SECONDS - 60
    for file in tmp_path.glob("blobs/documents/*/*"):
        os.utime(file, (old, old))
    assert audit_files(site.ledger, site.blobs) == [
        Finding("orphan-files", "blobs", ids=("f" * 32,))
    ]


def test_a_live_document_without_any_file_is_found(site: Site) -> None:
    item = site.fill("one", "x")
    site.blobs.delete(item.document_id)
    assert audit_files(site.ledger, site.blobs) == [
        Finding("missing-files", "blobs", half="original", ids=(item.document_id,))
    ]


@pytest.mark.parametrize(("half", "name"), [("original", "original-"), ("text", "extract-")])
def test_a_live_document_that_lost_one_file_of_many_is_found(
    site: Site, tmp_path: Path, half: str, name: str
) -> None:
    site.fill("one", "x")
    item = site.fill("two", "y")
    assert audit_files(site.ledger, site.blobs) == []
    digest = hashlib.sha256(b"two").hexdigest()
    lost = name + (digest if half == "original" else "artifact")
    next(tmp_path.glob(f"blobs/documents/*/{lost}")).unlink()
    found = Finding("missing-files", "blobs", half=half, ids=(item.document_id,))
    assert audit_files(site.ledger, site.blobs) == [found]
    submit(site.ledger, "three")
    assert audit_files(site.ledger, site.blobs) == [], "a new version is on its way"


def test_what_else_lies_beside_the_documents_folders_is_not_ours(
    site: Site, tmp_path: Path
) -> None:
    site.fill("one", "x")
    beside = tmp_path / "blobs" / "documents"
    for folder in ("lost+found", "새 폴더", "F" * 32, "f" * 31):
        (beside / folder).mkdir()
        (beside / folder / "a").touch()
    for file in (".DS_Store", "e" * 32):
        (beside / file).touch()
    for path in beside.glob("**/*"):
        os.utime(path, (1, 1))
    assert audit_files(site.ledger, site.blobs) == []


def test_a_store_that_is_not_set_up_and_an_unknown_collection_are_told(
    site: Site,
) -> None:
    with pytest.raises(SettingsError, match="papers is stored in memory"):
        audit_scopes(site.ledger, {"other": site.other})
    with pytest.raises(CollectionNotFound):
        audit_scopes(site.ledger, site.stores, "nowhere")


def test_documents_are_compared_page_by_page(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("callslip.stores.ledger.documents.inventory.DOCUMENTS_PER_PAGE", 2)
    for number in range(5):
        item = submit(site.ledger, str(number), f"{number}.txt")
        claim = store_chunks(site.ledger, item, [str(number)])
        site.ledger.leases.go_live(claim, [str(number)], {})
        site.put(item.document_id, str(number))
    sorted_ids: list[int] = []
    (scope,) = audit_scopes(site.ledger, site.stores)
    assert audit_scope(site.ledger, scope, sorted_ids.append).findings == ()
    assert sorted_ids == [2, 2, 1]


def test_a_lease_that_ran_out_and_copied_nothing_leaves_nothing_out(
    site: Site,
) -> None:
    moves = site.ledger.moves
    move = moves.take("papers", "memory", lease_seconds=LONG)
    assert audit_scopes(site.ledger, site.stores) == []
    moves.release(move)
    assert [scope.name for scope in audit_scopes(site.ledger, site.stores)] == ["papers"]
    moves.note("papers", "memory", {"f" * 32: (0, 0)})
    assert audit_scopes(site.ledger, site.stores) == [], "an import was broken off"


def test_a_collection_that_is_being_moved_is_left_out_until_that_has_ended(
    site: Site,
) -> None:
    item = site.fill("one", "xy")
    site.store.lost["vector"].add("x")
    site.other.ensure_schema(SCHEMA)
    moves = site.ledger.moves
    move = moves.take("papers", "other", lease_seconds=LONG)
    moves.note("papers", "other", {item.document_id: (0, 0)})
    for _ in ("while it is moved", "after the mover was killed"):
        assert audit_scopes(site.ledger, site.stores) == []
        assert find_misplaced_collections(site.ledger, site.stores) == []
        moves.release(move)
    moves.end(move)
    assert site.found() == [("missing", "vector", ("x",))]
    (finding,) = find_misplaced_collections(site.ledger, site.stores)
    assert (finding.kind, finding.store) == ("foreign-copy", "other")
