"""Batches: counts per state, rate, time left, what failed."""

import time
import uuid
from dataclasses import replace
from unittest.mock import patch

import pytest
from ledger_moves import OVER, store_chunks, submission, taken

from callslip.errors import BatchNotFound, BrokenFile
from callslip.stores.ledger import Accepted, Ledger
from callslip.stores.ledger.documents import batches as module
from callslip.stores.records import CollectionSchema, VectorSpec

pytest_plugins = ["ledger_fixtures"]


def send(ledger: Ledger, content: str, name: str, batch: str = "nightly") -> Accepted:
    given = replace(submission(content, name), batch=batch)
    return ledger.documents.submit("papers", given, uuid.uuid4().hex)


def go_live(ledger: Ledger, item: Accepted, chunks: int = 1) -> None:
    ids = [f"{item.document_id}-{item.version}-{n}" for n in range(chunks)]
    ledger.leases.go_live(store_chunks(ledger, item, ids), ids, {"chunks": chunks})


def test_ids_are_those_that_begin_with_the_text_to_the_letter(ledger: Ledger) -> None:
    for batch in ("a_night@1", "a_night@2", "A_night@3", "abnight@4", "a_nightA", "a_night"):
        ledger.batches.create(batch)
    assert sorted(ledger.batches.starting("a_night@")) == ["a_night@1", "a_night@2"]


def test_a_batch_counts_its_documents_by_state(ledger: Ledger) -> None:
    for name in "abcdefg":
        send(ledger, name, name)
    items = {i.name: Accepted(i.document_id, i.version, True) for i in found(ledger)}
    go_live(ledger, items["a"])
    ledger.leases.fail(taken(ledger, items["b"]), BrokenFile("it broke"))
    taken(ledger, items["c"])
    taken(ledger, items["d"], lease=OVER)
    ledger.documents.delete(items["e"].document_id)
    send(ledger, "newer", "f", batch="")
    report = ledger.batches.report("nightly")
    assert report.states == {
        **{"live": 1, "failed": 1, "working": 1, "stalled": 1},
        **{"deleted": 1, "superseded": 1, "waiting": 1},
    }
    assert (report.submitted, report.left, report.unchanged) == (7, 3, 0)
    assert report.seconds_left is None, "nobody can say yet"
    (failed,) = ledger.batches.items("nightly", state="failed")
    assert failed.failure is not None
    assert (failed.name, failed.failure.type, failed.failure.step) == (
        "b",
        "broken-file",
        "extract",
    )


def found(ledger: Ledger, batch: str = "nightly") -> list[module.BatchItem]:
    return ledger.batches.items(batch)


def test_what_is_there_already_counts_as_unchanged_and_done(ledger: Ledger) -> None:
    go_live(ledger, send(ledger, "one", "a", batch=""))
    assert not send(ledger, "one", "a").fresh
    assert not send(ledger, "one", "a").fresh, "the same twice is one"
    report = ledger.batches.report("nightly")
    assert (report.submitted, report.unchanged, report.left) == (1, 1, 0)
    assert report.states == {"live": 1}
    assert report.documents_per_minute is None, "nothing was done in it"


def test_a_failed_document_that_is_sent_again_is_on_its_way_again(ledger: Ledger) -> None:
    item = send(ledger, "one", "a")
    ledger.leases.fail(taken(ledger, item), BrokenFile("it broke"))
    assert ledger.batches.report("nightly").states == {"failed": 1}
    assert send(ledger, "one", "a").fresh
    assert ledger.batches.report("nightly").states == {"waiting": 1}


def test_rate_and_time_left_are_of_the_last_minutes_and_of_what_is_expected(
    ledger: Ledger,
) -> None:
    ledger.batches.create("nightly", expected=10)
    items = [send(ledger, name, name) for name in "abcdef"]
    for item in items[:5]:
        go_live(ledger, item, chunks=5)
    now = time.time()
    with patch.object(module, "ENOUGH_SECONDS", 0.0):
        report = ledger.batches.report("nightly")
    assert (report.expected, report.submitted, report.left) == (10, 6, 5)
    assert report.documents_per_minute is not None
    assert report.chunks_per_minute == pytest.approx(5 * report.documents_per_minute)
    first, last = (
        ledger.documents.version(i.document_id, 1).finished_at or 0 for i in (items[0], items[4])
    )
    assert report.seconds_left is not None
    assert report.seconds_left >= 5 * (last - first) / 4, "at the pace since the first was live"
    assert report.seconds_left <= 5 * (now + 5 - first) / 4
    with patch.object(module.time, "time", lambda: now + 2 * module.WINDOW_SECONDS):
        idle = ledger.batches.report("nightly")
    assert idle.documents_per_minute is None, "nothing was done in the last minutes"
    assert idle.seconds_left is None
    ledger.batches.create("nightly", expected=6)
    assert ledger.batches.report("nightly").left == 1


def test_a_batch_that_is_done_took_from_the_first_submission_to_the_last_end(
    ledger: Ledger,
) -> None:
    items = [send(ledger, name, name) for name in "ab"]
    for item in items:
        go_live(ledger, item)
    ended = time.time()
    with patch.object(module.time, "time", lambda: ended + 1000):
        report = ledger.batches.report("nightly")
    assert report.left == 0
    assert report.seconds is not None
    assert report.seconds < 100


def test_items_are_paged(ledger: Ledger) -> None:
    sent = {send(ledger, name, name).document_id for name in "abcde"}
    first = ledger.batches.items("nightly", limit=2)
    mark = (first[-1].document_id, first[-1].version)
    rest = ledger.batches.items("nightly", after=mark)
    assert [i.document_id for i in first + rest] == sorted(sent)


def test_a_batch_that_nobody_made_is_not_found(ledger: Ledger) -> None:
    with pytest.raises(BatchNotFound):
        ledger.batches.report("nothing")
    made = ledger.batches.create()
    assert ledger.batches.report(made).submitted == 0
    assert ledger.batches.report(made).seconds is None


def test_batches_of_a_collection_are_found_newest_first_and_old_ones_are_forgotten(
    ledger: Ledger,
) -> None:
    send(ledger, "one", "a", batch="older")
    send(ledger, "two", "b", batch="newer")
    assert ledger.batches.recent("papers", time.time() - 60) == ["newer", "older"]
    assert ledger.batches.recent("papers", time.time() + 60) == []
    ledger.batches.trim(time.time() - 60)
    assert ledger.batches.recent("papers", 0) == ["newer", "older"]
    ledger.batches.trim(time.time() + 60)
    assert ledger.batches.recent("papers", 0) == []
    with pytest.raises(BatchNotFound):
        ledger.batches.report("older")


def test_documents_of_a_collection_that_is_gone_count_as_deleted(ledger: Ledger) -> None:
    send(ledger, "one", "a")
    ledger.collections.delete("papers")
    ledger.collections.forget("papers")
    assert ledger.batches.report("nightly").states == {"deleted": 1}


def test_batches_of_other_tenants_take_no_places(ledger: Ledger) -> None:
    flats = CollectionSchema("flats", VectorSpec(2), tenants=True)
    ledger.collections.create(flats, store="s", embedder="e", analyzer="1")
    for n, tenant in enumerate(("north", "south", "south", "south")):
        given = replace(submission(f"{n}", f"{n}"), batch=f"batch {n}")
        ledger.documents.submit("flats", given, uuid.uuid4().hex, tenant=tenant)
    assert len(ledger.batches.recent("flats", 0)) == 4
    assert ledger.batches.recent("flats", 0, ["north"]) == ["batch 0"]
    assert ledger.batches.recent("flats", 0, []) == []
