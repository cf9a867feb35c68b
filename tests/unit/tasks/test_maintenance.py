"""Removing what was deleted and what no version needs, on a real ledger and real blobs."""

import time
import uuid
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from context_parts import LoneBroker, context_of, working
from ledger_moves import LONG, publish, submission, submit, taken
from memory_store import MemoryStore

from callslip.config.settings import Settings
from callslip.errors import CollectionExists, DocumentNotFound, StoreDown
from callslip.ingestion.maintenance.removal import drop_tenant, prune_document
from callslip.models.language_models.completion import Usage
from callslip.stores.blobs import Blobs
from callslip.stores.ledger import Accepted, Ledger
from callslip.stores.records import ChunkRecord, CollectionSchema, DocumentRecord, VectorSpec
from callslip.tasks import maintenance
from callslip.tasks.composition import current


@dataclass(frozen=True)
class House:
    """What maintenance looks after."""

    ledger: Ledger
    blobs: Blobs
    store: MemoryStore

    def fill(self, content: str, letters: str) -> Accepted:
        """Make a version live whose chunks are these letters, in the ledger and in the store."""
        item = publish(self.ledger, content, letters)
        document_id, vector = item.document_id, np.ones(1, np.float32)
        self.blobs.write(document_id, f"original-{content}", content.encode())
        self.store.batch_upsert_documents("shelf", [DocumentRecord(document_id, "", "a.txt")])
        self.store.batch_upsert_chunks(
            "shelf",
            [ChunkRecord(letter, document_id, letter, letter, vector) for letter in letters],
        )
        return item


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    """A ledger, blobs and a store with the collection `shelf`."""
    with closing(Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")) as ledger:
        ledger.create()
        made = House(ledger, Blobs(str(tmp_path / "blobs")), MemoryStore())
        make_shelf(made)
        context = context_of(
            Settings(), made.store, ledger=ledger, blobs=made.blobs, broker=LoneBroker()
        )
        with working(context):
            yield made


def make_shelf(house: House) -> None:
    """Make the collection, as the desk does."""
    house.ledger.collections.create(
        CollectionSchema("shelf", VectorSpec(1)), store="", embedder="", analyzer=""
    )
    house.store.ensure_schema(CollectionSchema("shelf", VectorSpec(1)))


def test_a_deleted_document_is_removed_everywhere_and_leaves_a_receipt(house: House) -> None:
    item = house.fill("one", "xy")
    maintenance.remove(item.document_id)
    assert house.store.count("shelf") == 2, "it is not deleted"
    house.ledger.documents.delete(item.document_id)
    maintenance.remove(item.document_id)
    maintenance.remove(item.document_id)
    found = house.ledger.documents.get(item.document_id)
    assert found.receipt == {
        "before": {"memory vector": 2, "memory keyword": 2, "memory document": 1, "blobs": 1},
        "after": {"memory vector": 0, "memory keyword": 0, "memory document": 0, "blobs": 0},
    }
    assert house.store.get_documents("shelf", [item.document_id]) == []


def test_a_removal_waits_for_a_worker_that_may_still_write(house: House) -> None:
    item = submit(house.ledger)
    claim = taken(house.ledger, item, lease=LONG)
    house.ledger.documents.delete(item.document_id)
    maintenance.remove(item.document_id)
    assert house.ledger.documents.get(item.document_id).removed_at is None
    house.ledger.leases.drop(claim)
    maintenance.remove(item.document_id)
    assert house.ledger.documents.get(item.document_id).removed_at is not None


def test_a_store_that_does_not_answer_puts_a_removal_off(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    def down(*_: object, **__: object) -> None:
        raise StoreDown("no answer")

    item = house.fill("one", "x")
    house.ledger.documents.delete(item.document_id)
    with monkeypatch.context() as patched:
        patched.setattr(house.store, "delete_document", down)
        maintenance.remove(item.document_id)
    assert house.ledger.documents.get(item.document_id).removed_at is None
    maintenance.remove(item.document_id)
    assert house.ledger.documents.get(item.document_id).removed_at is not None


def test_what_is_gone_already_holds_up_no_other(house: House) -> None:
    item = house.fill("one", "x")
    house.ledger.documents.delete(item.document_id)
    house.store.drop_collection("shelf")
    maintenance.remove(item.document_id)
    maintenance.remove("f" * 32)
    maintenance.drop("nowhere")


def test_chunks_that_no_version_needs_leave_the_store(house: House) -> None:
    house.fill("one", "xy")
    item = house.fill("two", "yz")
    assert house.store.count("shelf") == 3
    prune_document(current().backend, item.document_id)
    assert house.store.chunk_ids("shelf", item.document_id)["keyword"] == {"y", "z"}
    assert house.ledger.sweep.unpruned() == []


def test_a_deleted_collection_goes_with_all_it_holds_and_its_name_is_free_again(
    house: House,
) -> None:
    item = house.fill("one", "xy")
    house.ledger.collections.delete("shelf")
    with pytest.raises(CollectionExists):
        make_shelf(house)
    maintenance.drop("shelf")
    assert house.blobs.count(item.document_id) == 0
    with pytest.raises(DocumentNotFound):
        house.ledger.documents.get(item.document_id)
    make_shelf(house)


def test_a_late_message_does_not_touch_a_collection_that_was_made_anew(house: House) -> None:
    house.fill("one", "xy")
    house.ledger.collections.delete("shelf")
    maintenance.drop("shelf")
    make_shelf(house)
    item = house.fill("two", "xy")
    maintenance.drop("shelf")
    assert house.store.count("shelf") == 2
    assert set(house.ledger.chunks.visible(["x", "y"])) == {"x", "y"}
    again = house.ledger.documents.submit("shelf", submission("two"), uuid.uuid4().hex)
    assert (again.document_id, again.fresh) == (item.document_id, False)


def test_a_removal_that_was_interrupted_still_says_what_was_there_before(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    def down(*_: object, **__: object) -> None:
        raise StoreDown("no answer")

    item = house.fill("one", "xy")
    house.ledger.documents.delete(item.document_id)
    with monkeypatch.context() as patched:
        patched.setattr(house.blobs, "delete", down)
        maintenance.remove(item.document_id)
    assert house.store.count("shelf") == 0
    maintenance.remove(item.document_id)
    receipt = house.ledger.documents.get(item.document_id).receipt
    assert receipt
    assert receipt["before"]["memory vector"] == 2
    assert set(receipt["after"].values()) == {0}


def test_a_deleted_collection_leaves_a_receipt_each_time(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    def down(*_: object, **__: object) -> None:
        raise StoreDown("no answer")

    house.fill("one", "xy")
    house.ledger.collections.delete("shelf")
    with monkeypatch.context() as patched:
        patched.setattr(house.blobs, "delete", down)
        maintenance.drop("shelf")
    (receipt,) = house.ledger.receipts.find("shelf")
    assert (receipt.removed_at, receipt.after) == (None, None)
    maintenance.drop("shelf")
    before = {"documents": 1, "blobs": 1}
    before |= {"memory vector": 2, "memory keyword": 2, "memory document": 1}
    (receipt,) = house.ledger.receipts.find("shelf")
    assert receipt.before == before
    assert receipt.after == dict.fromkeys(before, 0)
    assert receipt.removed_at is not None
    make_shelf(house)
    house.ledger.collections.delete("shelf")
    maintenance.drop("shelf")
    newest, oldest = house.ledger.receipts.find("shelf")
    assert (newest.before["documents"], oldest) == (0, receipt)


def test_a_collection_that_a_store_does_not_let_go_is_not_forgotten(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.fill("one", "xy")
    house.ledger.collections.delete("shelf")
    with monkeypatch.context() as patched:
        patched.setattr(house.store, "drop_collection", lambda _: None)
        maintenance.drop("shelf")
    assert house.ledger.collections.deleted() == ["shelf"]
    assert house.ledger.receipts.find("shelf")[0].removed_at is None
    maintenance.drop("shelf")
    assert house.ledger.collections.deleted() == []


def test_a_deleted_tenant_leaves_a_receipt_of_all_its_documents(house: House) -> None:
    schema = CollectionSchema("desk", VectorSpec(1), tenants=True)
    house.ledger.collections.create(schema, store="", embedder="", analyzer="")
    house.store.ensure_schema(schema)
    for number in range(2):
        item = house.ledger.documents.submit(
            "desk", submission(str(number), f"{number}.txt"), uuid.uuid4().hex, tenant="ann"
        )
        house.store.ensure_tenant("desk", "ann")
        vector = np.ones(1, np.float32)
        house.store.batch_upsert_chunks(
            "desk", [ChunkRecord(f"c{number}", item.document_id, "", "", vector)], tenant="ann"
        )
    for document_id in house.ledger.tenants.delete("desk", "ann"):
        maintenance.remove(document_id)
    drop_tenant(current().backend, "desk", "ann")
    (receipt,) = house.ledger.receipts.find("desk")
    assert (receipt.tenant, receipt.before["documents"]) == ("ann", 2)
    assert (receipt.before["memory vector"], receipt.before["memory keyword"]) == (2, 2)
    assert receipt.after == dict.fromkeys(receipt.before, 0)
    assert house.store.tenants("desk") == []


def test_pruned_chunks_that_a_store_still_has_are_not_forgotten(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.fill("one", "xy")
    item = house.fill("two", "yz")
    with monkeypatch.context() as patched:
        patched.setattr(house.store, "delete_chunks", lambda *_, **__: None)
        prune_document(current().backend, item.document_id)
    assert house.ledger.sweep.unpruned() == [item.document_id]
    prune_document(current().backend, item.document_id)
    assert house.ledger.sweep.unpruned() == []


def test_what_language_models_used_is_remembered_for_longer_than_a_year(
    house: House,
) -> None:
    usage, now = house.ledger.model_usage, time.time()
    for days in (0, 399, 401):
        then = now - days * maintenance.DAY_SECONDS
        given = usage.reserve("shelf", "", "small", 9, ceiling=0, now=then)
        usage.settle(given, Usage(days, 0))
    maintenance.trim()
    assert [row.input_tokens for row in usage.rows(0)] == [0, 399]
