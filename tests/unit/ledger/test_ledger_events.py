"""Every change of a document leaves its event, in the same transaction and in order."""

import time

import pytest
from ledger_moves import publish, store_chunks, submission, submit, taken, work

from callslip.errors import BrokenFile, LeaseLost, StoreDown
from callslip.stores.ledger import STEPS, Accepted, Ledger

pytest_plugins = ["ledger_fixtures"]


def output(ledger: Ledger, item: Accepted, after: int = 0) -> list[tuple[str, str | None]]:
    """The kinds and steps of a document's events."""
    found = ledger.events.of_document(item.document_id, after=after)
    assert [e.event_id for e in found] == sorted({e.event_id for e in found})
    return [(e.kind, e.step) for e in found]


def last(ledger: Ledger, item: Accepted) -> int:
    return ledger.events.of_document(item.document_id, after=0)[-1].event_id


def test_a_document_on_its_way_tells_each_step_and_that_it_is_live(ledger: Ledger) -> None:
    item = publish(ledger, "one", ["c1", "c2"])
    steps = [(f"step.{what}", step) for step in STEPS for what in ("started", "finished")]
    assert output(ledger, item) == [("document.queued", None), *steps, ("document.live", None)]
    event = ledger.events.of_document(item.document_id, after=0)[-2]
    assert (event.collection, event.tenant, event.version) == ("papers", "", 1)
    assert event.data == {"chunks": 2}


def test_a_newer_version_supersedes_the_live_one_when_it_is_live(ledger: Ledger) -> None:
    first = publish(ledger, "one", ["c1"])
    seen = last(ledger, first)
    publish(ledger, "two", ["c2"])
    found = ledger.events.of_document(first.document_id, after=seen)
    assert [(e.kind, e.version) for e in found[-3:]] == [
        ("step.finished", 2),
        ("document.superseded", 1),
        ("document.live", 2),
    ]
    assert ledger.events.before_version(first.document_id, 2) == seen
    assert ledger.events.before_version(first.document_id, 1) == 0
    assert found[0].kind == "document.queued"


def test_a_version_on_its_way_is_superseded_by_the_next(ledger: Ledger) -> None:
    item = submit(ledger, "one")
    submit(ledger, "two")
    assert output(ledger, item) == [
        ("document.queued", None),
        ("document.superseded", None),
        ("document.queued", None),
    ]


def test_a_failure_and_a_try_anew_are_told(ledger: Ledger) -> None:
    item = submit(ledger)
    ledger.leases.release(taken(ledger, item), StoreDown("no answer"), wait=0, give_up=60)
    ledger.leases.fail(taken(ledger, item), BrokenFile("it broke"))
    assert output(ledger, item)[1:] == [
        ("step.started", "extract"),
        ("step.retrying", "extract"),
        ("step.started", "extract"),
        ("step.failed", "extract"),
        ("document.failed", None),
    ]
    retrying, again, _, failed = ledger.events.of_document(item.document_id, after=0)[2:]
    assert retrying.data is not None
    assert retrying.data["type"] == "store-down"
    assert again.data == {"attempt": 2}
    assert failed.data is not None
    assert failed.data["type"] == "broken-file"
    submit(ledger)
    assert output(ledger, item)[-1] == ("document.queued", None)


def test_the_same_content_again_tells_nothing(ledger: Ledger) -> None:
    item = publish(ledger, "one", ["c1"])
    seen = last(ledger, item)
    submit(ledger, "one")
    assert output(ledger, item, after=seen) == []


def test_a_result_that_comes_too_late_tells_nothing(ledger: Ledger) -> None:
    item = submit(ledger)
    late = taken(ledger, item, lease=-1)
    taken(ledger, item)
    seen = last(ledger, item)
    with pytest.raises(LeaseLost):
        ledger.leases.finish(late, "artifact", {})
    assert output(ledger, item, after=seen) == []


def test_a_repair_tells_that_the_version_is_on_its_way_and_live_again(ledger: Ledger) -> None:
    item = publish(ledger, "one", ["c1"])
    seen = last(ledger, item)
    assert ledger.leases.reopen(item.document_id, 1, "upsert")
    ledger.leases.go_live(store_chunks(ledger, item, ["c1"]), ["c1"], {"chunks": 1})
    assert output(ledger, item, after=seen) == [
        ("document.queued", None),
        ("step.started", "upsert"),
        ("step.finished", "upsert"),
        ("document.live", None),
    ]


def test_a_deletion_is_told_once_and_its_removal_with_the_receipt(ledger: Ledger) -> None:
    item = publish(ledger, "one", ["c1"])
    seen = last(ledger, item)
    ledger.documents.delete(item.document_id)
    ledger.documents.delete(item.document_id)
    receipt = {"before": {"blobs": 1}, "after": {"blobs": 0}}
    ledger.documents.removed(item.document_id, receipt)
    ledger.documents.removed(item.document_id, {"before": {}, "after": {}})
    assert output(ledger, item, after=seen) == [
        ("document.deleted", None),
        ("document.removed", None),
    ]
    assert ledger.events.of_document(item.document_id, after=seen)[-1].data == receipt


def test_documents_that_go_with_their_tenant_or_collection_are_told_each(ledger: Ledger) -> None:
    mine = ledger.documents.submit("papers", submission("one"), "a" * 32, tenant="t")
    other = ledger.documents.submit("papers", submission("two"), "b" * 32, tenant="u")
    ledger.tenants.delete("papers", "t")
    assert output(ledger, mine)[-1] == ("document.deleted", None)
    assert output(ledger, other)[-1] == ("document.queued", None)
    ledger.collections.delete("papers")
    assert output(ledger, mine).count(("document.deleted", None)) == 1
    assert output(ledger, other)[-1] == ("document.deleted", None)


def test_old_events_are_forgotten_and_ids_are_never_given_again(ledger: Ledger) -> None:
    item = submit(ledger)
    work(ledger, item)
    seen = last(ledger, item)
    assert ledger.events.trim(time.time() - 60) == 0
    assert ledger.events.trim(time.time() + 1) == len(output(ledger, item)) + 11
    assert output(ledger, item) == []
    assert ledger.events.before_version(item.document_id, 1) == 0
    other = submit(ledger, "two", "b.txt")
    assert last(ledger, other) > seen
