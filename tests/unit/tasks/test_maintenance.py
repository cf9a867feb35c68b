"""Removing what was deleted and what no version needs, on a real ledger and real blobs."""

import threading
import time
import uuid
from collections.abc import Collection, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from context_parts import LoneBroker, context_of, working
from ledger_moves import LONG, publish, submission, submit, taken
from memory_store import MemoryStore
from redis.exceptions import LockNotOwnedError
from valkey_parts import valkey

from callslip.config.settings import Settings
from callslip.errors import CollectionExists, DocumentNotFound, StoreDown
from callslip.ingestion.maintenance.removal import drop_tenant, prune_documents
from callslip.models.language_models.completion import Usage
from callslip.stores.blobs import Blobs
from callslip.stores.ledger import Accepted, Ledger
from callslip.stores.records import ChunkRecord, CollectionSchema, DocumentRecord, VectorSpec
from callslip.tasks import maintenance
from callslip.tasks.composition import current


@dataclass(frozen=True)
class Setup:
    """What maintenance looks after."""

    ledger: Ledger
    blobs: Blobs
    store: MemoryStore

    def fill(self, content: str, letters: str, name: str = "a.txt") -> Accepted:
        """Make a version live whose chunks are these letters, in the ledger and in the store."""
        item = publish(self.ledger, content, letters, name=name)
        document_id, vector = item.document_id, np.ones(1, np.float32)
        self.blobs.write(document_id, f"original-{content}", content.encode())
        self.store.batch_upsert_documents("papers", [DocumentRecord(document_id, "", "a.txt")])
        self.store.batch_upsert_chunks(
            "papers",
            [ChunkRecord(letter, document_id, letter, letter, vector) for letter in letters],
        )
        return item


@pytest.fixture
def setup(tmp_path: Path) -> Iterator[Setup]:
    """A ledger, blobs and a store with the collection `papers`."""
    with closing(Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")) as ledger:
        ledger.create()
        made = Setup(ledger, Blobs(str(tmp_path / "blobs")), MemoryStore())
        make_collection(made)
        context = context_of(
            Settings(), made.store, ledger=ledger, blobs=made.blobs, broker=LoneBroker()
        )
        with working(context):
            yield made


def make_collection(setup: Setup) -> None:
    """Make the collection, as the server does."""
    setup.ledger.collections.create(
        CollectionSchema("papers", VectorSpec(1)), store="", embedder="", analyzer=""
    )
    setup.store.ensure_schema(CollectionSchema("papers", VectorSpec(1)))


def test_a_deleted_document_is_removed_everywhere_and_leaves_a_receipt(setup: Setup) -> None:
    item = setup.fill("one", "xy")
    maintenance.remove(item.document_id)
    assert setup.store.count("papers") == 2, "it is not deleted"
    setup.ledger.documents.delete(item.document_id)
    maintenance.remove(item.document_id)
    maintenance.remove(item.document_id)
    found = setup.ledger.documents.get(item.document_id)
    assert found.receipt == {
        "before": {"memory vector": 2, "memory keyword": 2, "memory document": 1, "blobs": 1},
        "after": {"memory vector": 0, "memory keyword": 0, "memory document": 0, "blobs": 0},
    }
    assert setup.store.get_documents("papers", [item.document_id]) == []


def test_a_removal_waits_for_a_worker_that_may_still_write(setup: Setup) -> None:
    item = submit(setup.ledger)
    claim = taken(setup.ledger, item, lease=LONG)
    setup.ledger.documents.delete(item.document_id)
    maintenance.remove(item.document_id)
    assert setup.ledger.documents.get(item.document_id).removed_at is None
    setup.ledger.leases.drop(claim)
    maintenance.remove(item.document_id)
    assert setup.ledger.documents.get(item.document_id).removed_at is not None


def test_a_store_that_does_not_answer_puts_a_removal_off(
    setup: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    def down(*_: object, **__: object) -> None:
        raise StoreDown("no answer")

    item = setup.fill("one", "x")
    setup.ledger.documents.delete(item.document_id)
    with monkeypatch.context() as patched:
        patched.setattr(setup.store, "delete_documents", down)
        maintenance.remove(item.document_id)
    assert setup.ledger.documents.get(item.document_id).removed_at is None
    maintenance.remove(item.document_id)
    assert setup.ledger.documents.get(item.document_id).removed_at is not None


def test_what_is_deleted_at_once_is_removed_together_and_one_that_fails_alone(
    setup: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    items = [setup.fill(f"{n}", f"{n}", f"{n}.txt") for n in range(5)]
    bad, calls, delete = items[2].document_id, [], setup.store.delete_documents

    def deletes(collection: str, document_ids: Collection[str], *, tenant: str = "") -> None:
        calls.append(list(document_ids))
        if bad in document_ids:
            raise StoreDown("no answer")
        delete(collection, document_ids, tenant=tenant)

    for item in items:
        setup.ledger.documents.delete(item.document_id)
    monkeypatch.setattr(setup.store, "delete_documents", deletes)
    maintenance.remove(items[0].document_id)
    assert sorted(map(len, calls)) == [1, 1, 1, 1, 1, 5]
    records = [setup.ledger.documents.get(item.document_id) for item in items]
    assert [record.removed_at is None for record in records] == [False, False, True, False, False]
    assert records[0].receipt
    assert records[0].receipt["before"]["memory vector"] == 1
    maintenance.remove(items[1].document_id)  # its message comes when it is removed already
    assert len(calls) == 6


def test_a_deletion_whose_message_comes_while_another_removes_is_removed_too(
    setup: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second, third = (setup.fill(name, name, name) for name in "abc")
    delete, held = setup.store.delete_documents, set[str]()

    @contextmanager
    def alone(_: object, name: str) -> Iterator[LoneBroker | None]:
        if name in held:
            yield None
            return
        held.add(name)
        yield LoneBroker()
        held.remove(name)

    def deletes(collection: str, document_ids: Collection[str], *, tenant: str = "") -> None:
        if second.document_id not in document_ids:
            setup.ledger.documents.delete(second.document_id)
            maintenance.remove(second.document_id)  # another has the lock
            assert setup.ledger.documents.get(second.document_id).removed_at is None
        delete(collection, document_ids, tenant=tenant)

    setup.ledger.documents.delete(first.document_id)
    monkeypatch.setattr(setup.store, "delete_documents", deletes)
    monkeypatch.setattr(maintenance, "alone", alone)
    maintenance.remove(first.document_id)
    assert setup.ledger.documents.get(second.document_id).removed_at is not None
    assert setup.ledger.documents.get(third.document_id).removed_at is None


def test_what_is_gone_already_holds_up_no_other(setup: Setup) -> None:
    item = setup.fill("one", "x")
    setup.ledger.documents.delete(item.document_id)
    setup.store.drop_collection("papers")
    maintenance.remove(item.document_id)
    maintenance.remove("f" * 32)
    maintenance.drop("nowhere")


def test_chunks_that_no_version_needs_leave_the_store(setup: Setup) -> None:
    setup.fill("one", "xy")
    item = setup.fill("two", "yz")
    assert setup.store.count("papers") == 3
    prune_documents(current().backend, [item.document_id])
    assert setup.store.chunk_ids("papers", item.document_id)["keyword"] == {"y", "z"}
    assert setup.ledger.sweep.unpruned() == []


def test_a_deleted_collection_goes_with_all_it_holds_and_its_name_is_free_again(
    setup: Setup,
) -> None:
    item = setup.fill("one", "xy")
    setup.ledger.collections.delete("papers")
    with pytest.raises(CollectionExists):
        make_collection(setup)
    maintenance.drop("papers")
    assert setup.blobs.count(item.document_id) == 0
    with pytest.raises(DocumentNotFound):
        setup.ledger.documents.get(item.document_id)
    make_collection(setup)


def test_a_collection_is_removed_once_and_a_new_one_of_its_name_is_not(
    setup: Setup, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sweep and the message run at once; the name is free before the second of them ends."""
    document_ids, threads = setup.ledger.collections.document_ids, []

    def also_swept(name: str) -> list[str]:
        if not threads:
            threads.append(threading.Thread(target=maintenance.sweep))
            threads[0].start()
            threads[0].join()
            if not setup.ledger.collections.deleted():
                make_collection(setup)
        return document_ids(name)

    monkeypatch.setattr(setup.ledger.collections, "document_ids", also_swept)
    setup.ledger.collections.delete("papers")
    with valkey(tmp_path) as broker:
        context = context_of(
            Settings(), setup.store, ledger=setup.ledger, blobs=setup.blobs, broker=broker
        )
        with working(context):
            maintenance.drop("papers")
    assert threads
    assert setup.ledger.collections.deleted() == []
    if not setup.ledger.collections.all():
        make_collection(setup)
    assert setup.store.collections() == ["papers"]


def test_a_late_message_does_not_touch_a_collection_that_was_made_anew(setup: Setup) -> None:
    setup.fill("one", "xy")
    setup.ledger.collections.delete("papers")
    maintenance.drop("papers")
    make_collection(setup)
    item = setup.fill("two", "xy")
    maintenance.drop("papers")
    assert setup.store.count("papers") == 2
    assert set(setup.ledger.chunks.visible(["x", "y"])) == {"x", "y"}
    again = setup.ledger.documents.submit("papers", submission("two"), uuid.uuid4().hex)
    assert (again.document_id, again.fresh) == (item.document_id, False)


def test_the_end_of_a_late_removal_does_not_touch_a_collection_that_was_made_anew(
    setup: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    finish, made = setup.ledger.receipts.finish, []

    def overtaken(*receipt: Any) -> None:
        if not made:
            made.append("another process removes the collection meanwhile")
            maintenance.drop("papers")
            make_collection(setup)
            made.append(submit(setup.ledger).document_id)
        finish(*receipt)

    setup.fill("one", "xy")
    setup.ledger.collections.delete("papers")
    monkeypatch.setattr(setup.ledger.receipts, "finish", overtaken)
    maintenance.drop("papers")
    assert setup.ledger.documents.get(made[-1]).state == "waiting"


def test_a_removal_of_a_collection_whose_lock_another_process_has_ends(
    setup: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(_: LoneBroker) -> bool:
        raise LockNotOwnedError

    setup.fill("one", "xy")
    setup.ledger.collections.delete("papers")
    with monkeypatch.context() as patched:
        patched.setattr(LoneBroker, "reacquire", lost)
        with pytest.raises(LockNotOwnedError):
            maintenance.drop("papers")
    assert setup.store.collections() == ["papers"]
    maintenance.drop("papers")
    assert setup.store.collections() == []


def test_a_removal_that_was_interrupted_still_says_what_was_there_before(
    setup: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    def down(*_: object, **__: object) -> None:
        raise StoreDown("no answer")

    item = setup.fill("one", "xy")
    setup.ledger.documents.delete(item.document_id)
    with monkeypatch.context() as patched:
        patched.setattr(setup.blobs, "delete", down)
        maintenance.remove(item.document_id)
    assert setup.store.count("papers") == 0
    maintenance.remove(item.document_id)
    receipt = setup.ledger.documents.get(item.document_id).receipt
    assert receipt
    assert receipt["before"]["memory vector"] == 2
    assert set(receipt["after"].values()) == {0}


def test_a_deleted_collection_leaves_a_receipt_each_time(
    setup: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    def down(*_: object, **__: object) -> None:
        raise StoreDown("no answer")

    setup.fill("one", "xy")
    setup.ledger.collections.delete("papers")
    with monkeypatch.context() as patched:
        patched.setattr(setup.blobs, "delete", down)
        maintenance.drop("papers")
    (receipt,) = setup.ledger.receipts.find("papers")
    assert (receipt.removed_at, receipt.after) == (None, None)
    maintenance.drop("papers")
    before = {"documents": 1, "blobs": 1}
    before |= {"memory vector": 2, "memory keyword": 2, "memory document": 1}
    (receipt,) = setup.ledger.receipts.find("papers")
    assert receipt.before == before
    assert receipt.after == dict.fromkeys(before, 0)
    assert receipt.removed_at is not None
    make_collection(setup)
    setup.ledger.collections.delete("papers")
    maintenance.drop("papers")
    newest, oldest = setup.ledger.receipts.find("papers")
    assert (newest.before["documents"], oldest) == (0, receipt)


def test_a_collection_that_a_store_does_not_let_go_is_not_forgotten(
    setup: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    setup.fill("one", "xy")
    setup.ledger.collections.delete("papers")
    with monkeypatch.context() as patched:
        patched.setattr(setup.store, "drop_collection", lambda _: None)
        maintenance.drop("papers")
    assert setup.ledger.collections.deleted() == ["papers"]
    assert setup.ledger.receipts.find("papers")[0].removed_at is None
    maintenance.drop("papers")
    assert setup.ledger.collections.deleted() == []


def test_a_deleted_tenant_leaves_a_receipt_of_all_its_documents(setup: Setup) -> None:
    schema = CollectionSchema("notes", VectorSpec(1), tenants=True)
    setup.ledger.collections.create(schema, store="", embedder="", analyzer="")
    setup.store.ensure_schema(schema)
    for number in range(2):
        item = setup.ledger.documents.submit(
            "notes", submission(str(number), f"{number}.txt"), uuid.uuid4().hex, tenant="ann"
        )
        setup.store.ensure_tenant("notes", "ann")
        vector = np.ones(1, np.float32)
        setup.store.batch_upsert_chunks(
            "notes", [ChunkRecord(f"c{number}", item.document_id, "", "", vector)], tenant="ann"
        )
    for document_id in setup.ledger.tenants.delete("notes", "ann"):
        maintenance.remove(document_id)
    drop_tenant(current().backend, "notes", "ann")
    (receipt,) = setup.ledger.receipts.find("notes")
    assert (receipt.tenant, receipt.before["documents"]) == ("ann", 2)
    assert (receipt.before["memory vector"], receipt.before["memory keyword"]) == (2, 2)
    assert receipt.after == dict.fromkeys(receipt.before, 0)
    assert setup.store.tenants("notes") == []


def test_a_tenant_that_was_made_again_meanwhile_keeps_what_it_has(
    setup: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = CollectionSchema("notes", VectorSpec(1), tenants=True)
    setup.ledger.collections.create(schema, store="", embedder="", analyzer="")
    setup.store.ensure_schema(schema)
    setup.ledger.tenants.create("notes", "ann")
    setup.store.ensure_tenant("notes", "ann")
    setup.ledger.tenants.delete("notes", "ann")
    begin = setup.ledger.receipts.begin

    def removed_by_another_process(_: object, *arguments: Any) -> None:
        begin(*arguments)
        setup.ledger.tenants.forget("notes", "ann")
        setup.ledger.tenants.create("notes", "ann")

    monkeypatch.setattr(type(setup.ledger.receipts), "begin", removed_by_another_process)
    drop_tenant(current().backend, "notes", "ann")
    assert setup.store.tenants("notes") == ["ann"]


def test_pruned_chunks_that_a_store_still_has_are_not_forgotten(
    setup: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    setup.fill("one", "xy")
    item = setup.fill("two", "yz")
    with monkeypatch.context() as patched:
        patched.setattr(setup.store, "delete_chunks", lambda *_, **__: None)
        prune_documents(current().backend, [item.document_id])
    assert setup.ledger.sweep.unpruned() == [item.document_id]
    prune_documents(current().backend, [item.document_id])
    assert setup.ledger.sweep.unpruned() == []


def test_documents_are_pruned_together_and_one_that_fails_alone(
    setup: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    for letters in ("ab", "cd", "ef"):
        setup.fill(letters, letters, f"{letters}.txt")
    items = [setup.fill(letters[1], letters[1], f"{letters}.txt") for letters in ("ab", "cd", "ef")]
    ids, calls, delete = [i.document_id for i in items], [], setup.store.delete_chunks
    renewed: list[int] = []

    def deletes(collection: str, chunk_ids: Iterable[str], *, tenant: str = "") -> None:
        calls.append(set(chunk_ids))
        if "c" in calls[-1]:
            raise StoreDown("no answer")
        delete(collection, calls[-1], tenant=tenant)

    with monkeypatch.context() as patched:
        patched.setattr(setup.store, "delete_chunks", deletes)
        prune_documents(current().backend, ids, lambda: renewed.append(len(calls)))
    assert calls == [{"a", "c", "e"}, {"a"}, {"c"}, {"e"}]
    assert renewed == [0, 1, 2, 3]
    assert setup.store.find_ids("papers") == ["b", "c", "d", "f"]
    assert setup.ledger.sweep.unpruned() == [ids[1]]
    maintenance.sweep()
    assert setup.store.find_ids("papers") == ["b", "d", "f"]
    assert setup.ledger.sweep.unpruned() == []


def test_what_language_models_used_is_remembered_for_longer_than_a_year(
    setup: Setup,
) -> None:
    usage, now = setup.ledger.model_usage, time.time()
    for days in (0, 399, 401):
        then = now - days * maintenance.DAY_SECONDS
        given = usage.reserve("papers", "", "small", 9, ceiling=0, now=then)
        usage.settle(given, Usage(days, 0))
    maintenance.trim()
    assert [row.input_tokens for row in usage.rows(0)] == [0, 399]


class Starting(MemoryStore):
    """A store whose server has started, answers, and does not know what it has yet."""

    starting = False

    def ping(self) -> None:
        if self.starting:
            raise StoreDown("not ready")

    def collections(self) -> list[str]:
        return [] if self.starting else super().collections()


def test_a_deletion_while_a_store_starts_is_put_off(tmp_path: Path) -> None:
    with closing(Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")) as ledger:
        ledger.create()
        store = Starting()
        setup = Setup(ledger, Blobs(str(tmp_path / "blobs")), store)
        make_collection(setup)
        item = setup.fill("one", "xy")
        ledger.documents.delete(item.document_id)
        parts = {"ledger": ledger, "blobs": setup.blobs, "broker": LoneBroker()}
        with working(context_of(Settings(), store, **parts)):
            store.starting = True
            maintenance.remove(item.document_id)
            assert ledger.documents.get(item.document_id).removed_at is None
            store.starting = False
            assert store.count("papers") == 2
            maintenance.remove(item.document_id)
        receipt = ledger.documents.get(item.document_id).receipt
        assert receipt is not None
        assert receipt["before"]["memory vector"] == 2
        assert store.count("papers") == 0
