"""Queues of tenants take turns: a tenant with many documents does not delay the others."""

import threading
import time
import uuid
from dataclasses import replace
from itertools import groupby

import pytest
from ledger_moves import OVER, submission, taken, work
from sqlalchemy import insert, select, update

from callslip.errors import BrokenFile, StoreDown
from callslip.stores.ledger import Accepted, Dispatch, Ledger, Pace, tenant_queue_of
from callslip.stores.ledger.base import schema
from callslip.stores.ledger.base.database import Database
from callslip.stores.ledger.base.fair_queue import (
    LEAST_BYTES,
    MESSAGE_BYTES,
    MESSAGE_DOCUMENTS,
    SMALL_BYTES,
)
from callslip.stores.records import CollectionSchema, VectorSpec

pytest_plugins = ["ledger_fixtures"]

LARGE = SMALL_BYTES + 1
"""Bytes of a document that travels alone."""


@pytest.fixture
def server(ledger: Ledger) -> Ledger:
    """A ledger with a second collection, one with tenants."""
    schema = CollectionSchema("halls", VectorSpec(4), tenants=True)
    ledger.collections.create(schema, store="memory", embedder="tiny", analyzer="1")
    return ledger


def send(ledger: Ledger, tenant: str, name: str, priority: int = 0, size: int = LARGE) -> Accepted:
    """Submit without sending anything."""
    given = replace(submission("one", name), priority=priority, size=size)
    collection = "halls" if tenant else "papers"
    return ledger.documents.submit(collection, given, uuid.uuid4().hex, tenant=tenant)


def names(ledger: Ledger, dispatches: list[Dispatch]) -> list[str]:
    """Whose turn it is, as tenant:name."""
    records = [ledger.documents.version(n.document_id, n.version) for n in dispatches]
    return [f"{r.tenant}:{r.name}" for r in records]


def messages(dispatches: list[Dispatch]) -> list[list[Dispatch]]:
    """The versions of each message."""
    return [list(group) for _, group in groupby(dispatches, key=lambda each: each.message)]


def finish(ledger: Ledger, item: Accepted | Dispatch) -> None:
    """Take what was sent to its end."""
    accepted = Accepted(item.document_id, item.version, fresh=True)
    work(ledger, accepted)
    ledger.leases.go_live(taken(ledger, accepted, "upsert"), [], {})


def test_on_an_idle_machine_a_document_is_sent_at_once(server: Ledger) -> None:
    item = send(server, "a", "1")
    assert server.fair_queue.take(4, document_id=item.document_id) == [
        Dispatch(item.document_id, 1, "extract")
    ]
    assert server.fair_queue.take(4, document_id=item.document_id) == []


def test_tenants_and_collections_take_turns_and_no_more_is_sent_than_fits(server: Ledger) -> None:
    for n in range(50):
        send(server, "a", f"{n:02}")
    for n in range(3):
        send(server, "b", f"{n}")
        send(server, "", f"{n}")
    first = server.fair_queue.take(6)
    assert names(server, first) == ["a:00", "b:0", ":0", "a:01", "b:1", ":1"]
    assert server.fair_queue.take(6) == []
    finish(server, first[0])
    finish(server, first[1])
    assert names(server, server.fair_queue.take(6)) == ["a:02", "b:2"]


def test_a_document_waits_for_no_other_tenants_long_ones(server: Ledger) -> None:
    for n in range(10):
        send(server, "a", f"{n}")
    long = server.fair_queue.take(4)
    assert len(long) == 4
    late = send(server, "b", "late")
    assert names(server, server.fair_queue.take(4, document_id=late.document_id)) == ["b:late"]
    second = send(server, "b", "second")
    assert server.fair_queue.take(4, document_id=second.document_id) == []
    finish(server, late)
    assert names(server, server.fair_queue.take(4, document_id=late.document_id)) == ["b:second"]


def test_of_one_tenant_the_highest_priority_goes_first_then_the_oldest(server: Ledger) -> None:
    send(server, "a", "old")
    send(server, "a", "low", -3)
    send(server, "a", "young")
    send(server, "a", "high", 3)
    assert names(server, server.fair_queue.take(10)) == ["a:high", "a:old", "a:young", "a:low"]


def test_small_documents_of_one_tenant_queue_travel_together(server: Ledger) -> None:
    for n in range(2 * MESSAGE_DOCUMENTS + 2):
        send(server, "a", f"{n:02}", size=300)
    send(server, "b", "0", size=300)
    sent = server.fair_queue.take(2)
    together = [f"a:{n:02}" for n in range(MESSAGE_DOCUMENTS)]
    assert names(server, sent) == [*together, "b:0"]
    assert len({each.message for each in sent}) == 2
    assert server.fair_queue.take(2) == []  # both messages are on their way
    for each in sent[: MESSAGE_DOCUMENTS - 1]:
        finish(server, each)
    assert server.fair_queue.take(2) == []
    finish(server, sent[MESSAGE_DOCUMENTS - 1])
    assert names(server, server.fair_queue.take(2)) == [f"a:{n}" for n in range(16, 25)]


@pytest.mark.parametrize(
    ("waiting", "window", "expected"),
    [(18, 4, [5, 4, 3, 2]), (5, 4, [2, 1, 1, 1]), (2, 4, [1, 1]), (200, 2, [16, 16])],
)
def test_messages_are_smaller_when_few_documents_wait(
    server: Ledger, waiting: int, window: int, expected: list[int]
) -> None:
    for n in range(waiting):
        send(server, "a", f"{n:03}", size=300)
    sent = server.fair_queue.take(window)
    assert [len(message) for message in messages(sent)] == expected


def test_small_documents_of_many_tenants_travel_together_under_load(server: Ledger) -> None:
    for tenant in "abcdefgh":
        for n in range(4):
            send(server, tenant, f"{n}", size=300)
    assert [len(message) for message in messages(server.fair_queue.take(4))] == [4, 4, 4, 4]
    sent = server.fair_queue.take(8)  # of 16 documents, then 14, 12 and 10, an eighth each
    assert [len(message) for message in messages(sent)] == [2, 2, 2, 2]


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ([300, LARGE, 300, 300], [["a:0"], ["a:1"], ["a:2", "a:3"]]),
        ([SMALL_BYTES] * 5, [["a:0", "a:1", "a:2", "a:3"], ["a:4"]]),
        ([LARGE, LARGE], [["a:0"], ["a:1"]]),
    ],
)
def test_a_message_has_small_documents_within_its_bytes(
    server: Ledger, sizes: list[int], expected: list[list[str]]
) -> None:
    assert MESSAGE_BYTES == 4 * SMALL_BYTES
    for n, size in enumerate(sizes):
        send(server, "a", f"{n}", size=size)
    for message in expected:
        sent = server.fair_queue.take(1)
        assert names(server, sent) == message
        for each in sent:
            finish(server, each)


def test_what_is_urgent_does_not_travel_with_others(server: Ledger) -> None:
    for n in range(3):
        send(server, "a", f"{n}", size=300)
    send(server, "a", "urgent", 5, size=300)
    (urgent,) = server.fair_queue.take(1)
    assert names(server, [urgent]) == ["a:urgent"]
    finish(server, urgent)
    assert names(server, server.fair_queue.take(1)) == ["a:0", "a:1", "a:2"]


def test_a_document_that_was_tried_before_travels_alone(server: Ledger) -> None:
    items = [send(server, "a", f"{n}", size=300) for n in range(4)]
    assert len(server.fair_queue.take(1)) == 4
    server.leases.release(taken(server, items[1]), StoreDown("no answer"), wait=0, give_up=60)
    for item in (items[0], items[2], items[3]):
        finish(server, item)
    send(server, "a", "later", size=300)
    swept = server.sweep.stuck(idle=False, resend_seconds=60, max_crashes=3, window=9)
    assert names(server, swept) == ["a:1", "a:later"]
    assert len({each.message for each in swept}) == 2


def test_versions_of_a_message_that_a_worker_took_to_its_death_are_sent_alone(
    server: Ledger,
) -> None:
    items = [send(server, "a", f"{n}", size=300) for n in range(3)]
    server.fair_queue.take(1)
    for item in items:
        taken(server, item, lease=OVER)
    swept = server.sweep.stuck(idle=False, resend_seconds=60, max_crashes=3, window=1)
    assert names(server, swept) == ["a:0", "a:1", "a:2"]
    assert {each.message for each in swept} == {0.0}


def test_a_retry_that_is_due_waits_for_its_turn_and_holds_no_place_meanwhile(
    server: Ledger,
) -> None:
    items = [send(server, "a", f"{n}") for n in range(3)]
    assert len(server.fair_queue.take(1)) == 1
    server.leases.release(taken(server, items[0]), StoreDown("no answer"), wait=0, give_up=60)
    assert names(server, server.fair_queue.take(1)) == ["a:1"]
    swept = {"idle": False, "resend_seconds": 60.0, "max_crashes": 3}
    assert server.sweep.stuck(**swept, window=1) == []
    assert names(server, server.sweep.stuck(**swept, window=3)) == ["a:0", "a:2"]


def test_what_a_dead_worker_had_keeps_its_place_and_is_sent_again(server: Ledger) -> None:
    item = send(server, "a", "1")
    send(server, "a", "2")
    server.fair_queue.take(1)
    taken(server, item, lease=OVER)
    swept = server.sweep.stuck(idle=False, resend_seconds=60, max_crashes=3, window=1)
    assert names(server, swept) == ["a:1"]


def test_the_sweep_sends_for_every_tenant_of_which_nothing_is_sent(server: Ledger) -> None:
    for tenant in "abcd":
        send(server, tenant, "1")
        send(server, tenant, "2")
    assert sorted(names(server, server.fair_queue.take_all(2))) == ["a:1", "b:1", "c:1", "d:1"]
    assert server.fair_queue.take_all(2) == []


@pytest.mark.parametrize("end", ["live", "failed", "deleted", "replaced", "tenant", "collection"])
def test_what_is_over_holds_no_place(server: Ledger, end: str) -> None:
    item = send(server, "a", "1")
    assert len(server.fair_queue.take(1)) == 1
    other = send(server, "", "other")
    if end == "live":
        finish(server, item)
    elif end == "failed":
        server.leases.fail(taken(server, item), BrokenFile("it broke"))
    elif end == "deleted":
        server.documents.delete(item.document_id)
    elif end == "tenant":
        server.tenants.delete("halls", "a")
    elif end == "collection":
        server.collections.delete("halls")
    else:
        server.documents.submit("halls", submission("two", "1"), "unused", tenant="a")
    sent = server.fair_queue.take(1)
    assert len(sent) == 1
    assert sent[0].document_id in (other.document_id, item.document_id)
    assert (sent[0].document_id == item.document_id) <= (end == "replaced")


def test_what_waits_is_counted_by_tenant_queue(server: Ledger) -> None:
    for n in range(5):
        send(server, "a", f"{n}")
    send(server, "b", "1")
    server.fair_queue.take(2)
    waiting = server.fair_queue.waiting()
    assert {queue: work.documents for queue, work in waiting.items()} == {
        tenant_queue_of("halls", "a"): 5,
        tenant_queue_of("halls", "b"): 1,
    }
    assert all(work.size == work.documents * LARGE for work in waiting.values())


def test_the_pace_is_that_of_the_last_documents_without_the_idle_time(
    server: Ledger, ledger_url: str
) -> None:
    assert server.fair_queue.pace() is None
    for name in "1234567":
        finish(server, send(server, "a", name))
    database = Database(ledger_url)
    with database.writing() as connection:
        # Two at once, an hour without any, then three in a row; two were imported.
        times = [(0, 4), (0, 5), (3605, 3607), (3605, 3609), (3605, 3610), (9000, 3), (9001, 7)]
        rows = connection.execute(select(schema.versions.c.document_id)).scalars().all()
        for document_id, (sent_at, finished_at) in zip(rows, times, strict=True):
            connection.execute(
                update(schema.versions)
                .where(schema.versions.c.document_id == document_id)
                .values(dispatched_at=sent_at, finished_at=finished_at)
            )
    database.close()
    assert server.fair_queue.pace() == Pace(documents=5 / 10, size=5 * LARGE / 10)


def test_tiny_documents_do_not_make_larger_ones_look_like_hours(server: Ledger) -> None:
    for name in "12":
        finish(server, send(server, "a", name, size=30))
    pace = server.fair_queue.pace()
    assert pace is not None
    assert pace.size == pytest.approx(pace.documents * LEAST_BYTES)
    send(server, "a", "3", size=30)
    send(server, "a", "4", size=LARGE)
    work = server.fair_queue.waiting()[tenant_queue_of("halls", "a")]
    assert work.size == LEAST_BYTES + LARGE


def test_many_who_ask_at_once_are_given_each_version_once(server: Ledger, ledger_url: str) -> None:
    for n in range(40):
        send(server, "ab"[n % 2], f"{n}")
    given: list[Dispatch] = []

    def ask() -> None:
        mine = Ledger(ledger_url)
        for window in range(2, 42, 2):
            given.extend(mine.fair_queue.take(window))
        mine.close()

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(given) == len(set(given)) == 40


def test_turns_are_quick_before_ten_thousand_that_wait(server: Ledger, ledger_url: str) -> None:
    one = send(server, "a", "first")
    database = Database(ledger_url)
    with database.writing() as connection:  # 10,000 submissions would take a minute
        stored = connection.execute(select(schema.versions)).one()
        row = dict(zip(schema.versions.c.keys(), stored, strict=True))
        stored = connection.execute(select(schema.documents)).one()
        document = dict(zip(schema.documents.c.keys(), stored, strict=True))
        ids = [f"{n:032}" for n in range(10_000)]
        connection.execute(
            insert(schema.documents), [document | {"document_id": i, "name": i} for i in ids]
        )
        connection.execute(insert(schema.versions), [row | {"document_id": i} for i in ids])
        step = {"version": 1, "step": "extract", "state": "pending"}
        connection.execute(insert(schema.steps), [step | {"document_id": i} for i in ids])
    database.close()
    late = send(server, "b", "late")
    server.fair_queue.take(4)
    began = time.perf_counter()
    for _ in range(20):
        server.fair_queue.take(4, document_id=one.document_id)
        waiting = server.fair_queue.waiting().values()
        assert sum(work.documents for work in waiting) == 10_002
    assert (time.perf_counter() - began) / 20 < 0.1
    assert server.documents.get(late.document_id).state == "waiting"
