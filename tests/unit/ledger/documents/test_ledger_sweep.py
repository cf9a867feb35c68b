"""The sweep: what is sent again, when, and what is not."""

import math
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from ledger_moves import OVER, publish, store_chunks, submission, submit, taken, work
from sqlalchemy import event, update

from callslip.errors import BrokenFile, Conflict, StoreDown
from callslip.stores.ledger import Accepted, Dispatch, Ledger, Run, Step
from callslip.stores.ledger.base import schema
from callslip.stores.ledger.base.database import Database
from callslip.stores.ledger.documents.sweep import (
    LAST_CALL_SECONDS,
    MOVE_LEASE_SECONDS,
    PATIENCE_SECONDS,
)

pytest_plugins = ["ledger_fixtures"]


def stuck(ledger: Ledger, *, idle: bool = False, resend: float = 15.0) -> list[Dispatch]:
    """What a sweep would send now."""
    return ledger.sweep.stuck(idle=idle, resend_seconds=resend, max_crashes=3)


def at(item: Accepted, step: Step) -> Dispatch:
    """A submission to send to this step."""
    return Dispatch(item.document_id, item.version, step)


def let_pass(url: str, seconds: float) -> None:
    """Let versions have been sent, and documents dispatched, so much longer ago."""
    database = Database(url)
    with database.writing() as connection:
        for table in (schema.versions, schema.documents):
            connection.execute(update(table).values(dispatched_at=table.c.dispatched_at - seconds))
    database.close()


def test_what_was_just_sent_waits(ledger: Ledger) -> None:
    submit(ledger)
    assert stuck(ledger, idle=True) == []
    assert stuck(ledger, idle=False) == []


def test_with_empty_queues_what_waited_long_is_sent_again_and_then_waits_again(
    ledger: Ledger, ledger_url: str
) -> None:
    item = submit(ledger)
    work(ledger, item, "chunk")
    let_pass(ledger_url, 16)
    assert stuck(ledger, idle=False) == []
    assert stuck(ledger, idle=True) == [at(item, "enrich")]
    assert stuck(ledger, idle=True) == []
    let_pass(ledger_url, 16)
    assert stuck(ledger, idle=True) == [at(item, "enrich")]


def test_with_full_queues_patience_doubles_with_each_sending(
    ledger: Ledger, ledger_url: str
) -> None:
    item = submit(ledger)
    for doubled in (1, 2, 4, 8, 16, 32, 64, 64, 64):
        let_pass(ledger_url, PATIENCE_SECONDS * doubled - 60)
        assert stuck(ledger) == []
        let_pass(ledger_url, 61)
        assert stuck(ledger) == [at(item, "extract")]


def test_a_version_with_a_live_lease_is_left_alone(ledger: Ledger, ledger_url: str) -> None:
    taken(ledger, submit(ledger))
    let_pass(ledger_url, 10 * PATIENCE_SECONDS)
    assert stuck(ledger, idle=True) == stuck(ledger, idle=False) == []


def test_a_lease_that_ran_out_is_sent_again_at_once_and_only_once(ledger: Ledger) -> None:
    item = submit(ledger)
    work(ledger, item, "enrich")
    taken(ledger, item, "embed", lease=OVER)
    assert stuck(ledger) == [at(item, "embed")]
    assert stuck(ledger) == []
    step = ledger.documents.get(item.document_id).steps[4]
    assert (step.state, step.crashes) == ("pending", 1)


def test_a_lease_that_ran_out_is_found_behind_a_thousand_that_wait(
    ledger: Ledger, ledger_url: str
) -> None:
    for n in range(30):
        submit(ledger, "one", f"{n}.txt")
    let_pass(ledger_url, PATIENCE_SECONDS + 1)
    assert len(stuck(ledger)) == 30
    let_pass(ledger_url, PATIENCE_SECONDS + 1)
    late = submit(ledger, "one", "late.txt")
    taken(ledger, late, lease=OVER)
    found = ledger.sweep.stuck(idle=False, resend_seconds=15, max_crashes=3, limit=10)
    assert found == [at(late, "extract")]


def test_a_retry_is_sent_when_it_is_due_and_not_before(ledger: Ledger, ledger_url: str) -> None:
    item = submit(ledger)
    ledger.leases.release(taken(ledger, item), StoreDown("no answer"), wait=60, give_up=3600)
    let_pass(ledger_url, 10 * PATIENCE_SECONDS)
    assert stuck(ledger, idle=True) == stuck(ledger, idle=False) == []
    again = submit(ledger, "two")
    ledger.leases.release(taken(ledger, again), StoreDown("no answer"), wait=0, give_up=3600)
    assert stuck(ledger) == [at(again, "extract")]
    assert stuck(ledger) == []


def test_a_version_that_was_heard_of_gets_its_first_patience_back(
    ledger: Ledger, ledger_url: str
) -> None:
    item = submit(ledger)
    let_pass(ledger_url, PATIENCE_SECONDS + 1)
    assert stuck(ledger) == [at(item, "extract")]
    taken(ledger, item, lease=OVER)
    assert stuck(ledger) == [at(item, "extract")]
    let_pass(ledger_url, PATIENCE_SECONDS + 1)
    assert stuck(ledger) == [at(item, "extract")]


def test_a_document_that_kills_its_workers_is_set_aside_by_the_sweep(ledger: Ledger) -> None:
    item = submit(ledger)
    for _ in range(2):
        taken(ledger, item, lease=OVER)
        assert stuck(ledger) == [at(item, "extract")]
    taken(ledger, item, lease=OVER)
    assert stuck(ledger) == []
    found = ledger.documents.get(item.document_id)
    assert found.newest.failure is not None
    assert found.newest.failure.type == "worker-lost"


def test_what_is_over_is_not_sent(ledger: Ledger, ledger_url: str) -> None:
    publish(ledger, "one", ["x"])
    failed = submit(ledger, "one", "b.txt")
    ledger.leases.fail(taken(ledger, failed), BrokenFile("it broke"))
    deleted = submit(ledger, "one", "c.txt")
    taken(ledger, deleted, lease=OVER)
    ledger.documents.delete(deleted.document_id)
    replaced = submit(ledger, "one", "d.txt")
    taken(ledger, replaced, lease=OVER)
    newest = submit(ledger, "two", "d.txt")
    let_pass(ledger_url, PATIENCE_SECONDS + 1)
    assert stuck(ledger, idle=True) == [at(newest, "extract")]


def test_what_was_claimed_or_deleted_since_it_was_found_is_left_alone(
    ledger: Ledger, ledger_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    items = [submit(ledger, "one", f"{n}.txt") for n in range(4)]
    let_pass(ledger_url, 16)
    worker, plain = Ledger(ledger_url), Database.writing

    def after_others(database: Database) -> object:
        monkeypatch.setattr(Database, "writing", plain)
        taken(worker, items[1])
        worker.documents.delete(items[2].document_id)
        worker.documents.submit("papers", submission("two", "3.txt"), "unused")
        worker.fair_queue.take(100)
        return plain(database)

    monkeypatch.setattr(Database, "writing", after_others)
    assert stuck(ledger, idle=True) == [at(items[0], "extract")]
    assert ledger.documents.get(items[1].document_id).steps[0].crashes == 0
    worker.close()


def test_deleted_documents_are_named_until_they_are_removed(
    ledger: Ledger, ledger_url: str
) -> None:
    item = publish(ledger, "one", ["x"])
    submit(ledger, "one", "b.txt")
    assert ledger.sweep.unremoved(resend_seconds=15) == []
    ledger.documents.delete(item.document_id)
    assert ledger.sweep.unremoved(resend_seconds=15) == [item.document_id]
    assert ledger.sweep.unremoved(resend_seconds=15) == []
    let_pass(ledger_url, 16)
    assert ledger.sweep.unremoved(resend_seconds=15) == [item.document_id]
    ledger.documents.removed(item.document_id, {})
    let_pass(ledger_url, 16)
    assert ledger.sweep.unremoved(resend_seconds=15) == []


def test_a_removal_that_comes_second_changes_no_receipt(ledger: Ledger) -> None:
    item = publish(ledger, "one", ["x"])
    ledger.documents.delete(item.document_id)
    ledger.documents.removing({item.document_id: {"blobs": 2}})
    receipt = {"before": {"blobs": 2}, "after": {"blobs": 0}}
    ledger.documents.removed(item.document_id, receipt)
    ledger.documents.removing({item.document_id: {"blobs": 0}})
    assert ledger.documents.get(item.document_id).receipt == receipt


def test_a_document_is_busy_while_a_lease_on_it_lives(ledger: Ledger) -> None:
    item = submit(ledger)
    assert not ledger.sweep.busy(item.document_id)
    taken(ledger, item, lease=OVER)
    assert not ledger.sweep.busy(item.document_id)
    held = store_chunks(ledger, item, ["x"])
    assert ledger.sweep.busy(item.document_id)
    ledger.leases.go_live(held, ["x"], {})
    assert not ledger.sweep.busy(item.document_id)


def test_times_are_seconds_since_1970(ledger: Ledger) -> None:
    before = time.time()
    item = submit(ledger)
    assert before <= ledger.documents.get(item.document_id).created_at <= time.time()


def test_after_the_clock_was_set_back_nothing_waits_until_it_has_caught_up(
    ledger: Ledger, ledger_url: str
) -> None:
    def bound() -> int:
        return ledger.sweep.bound_times(lease_seconds=30, wait_seconds=60)

    taken(ledger, submit(ledger))
    assert bound() == 0
    leased, resting, sent, removed = (submit(ledger, name=name) for name in "abcd")
    taken(ledger, leased, lease=3600)
    ledger.leases.release(taken(ledger, resting), StoreDown("no"), wait=3600, give_up=math.inf)
    taken(ledger, removed, lease=3600)
    ledger.documents.delete(removed.document_id)
    let_pass(ledger_url, -3600)
    assert bound() == 3
    assert bound() == 0
    until = ledger.documents.get(leased.document_id).steps[0].lease_until
    assert until == pytest.approx(time.time() + 30, abs=5)
    let_pass(ledger_url, 16)
    assert stuck(ledger, idle=True) == [at(sent, "extract"), at(resting, "extract")]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds by which the clock is ahead."""
    ahead = [0.0]
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + ahead[0])
    return ahead


def test_the_last_write_of_a_deleted_document_may_end_after_its_lease(
    ledger: Ledger, clock: list[float]
) -> None:
    read, written = submit(ledger, name="a"), submit(ledger, name="b")
    taken(ledger, read, lease=30)
    work(ledger, written)
    claim = taken(ledger, written, "upsert", lease=30)
    for item in (read, written):
        ledger.documents.delete(item.document_id)
        assert ledger.sweep.busy(item.document_id)
    clock[0] = 31
    assert not ledger.sweep.busy(read.document_id)
    assert ledger.sweep.busy(written.document_id)
    clock[0] = 31 + LAST_CALL_SECONDS
    assert not ledger.sweep.busy(written.document_id)
    clock[0] = 31
    ledger.leases.drop(claim)
    assert not ledger.sweep.busy(written.document_id)


@pytest.mark.parametrize("every_seconds", [None, 600.0])
def test_after_the_clock_was_set_back_a_source_is_due_in_time(
    ledger: Ledger, clock: list[float], every_seconds: float | None
) -> None:
    def claim() -> Run | None:
        ledger.sweep.bound_times(lease_seconds=30, wait_seconds=60)
        return ledger.source_runs.claim(source.source_id, lease_seconds=30)

    source = ledger.sources.add("papers", "src", "file:///srv", every_seconds=every_seconds)
    clock[0] = 3600
    assert claim() is not None
    ledger.sources.ask(source.source_id, force=True)
    clock[0] = 0
    assert claim() is None, "the lease begins anew"
    clock[0] += 31
    run = claim()
    assert run is not None
    assert run.number == 1
    ledger.source_runs.end(run)
    clock[0] = 3600
    run = claim()
    assert run is not None, "the request during the run is kept"
    assert run.force
    ledger.source_runs.end(run)
    clock[0] = 0
    assert claim() is None
    clock[0] += 601
    assert ledger.sources.due() == ([] if every_seconds is None else [source.source_id])


def test_after_the_clock_was_set_back_a_killed_mover_pauses_nothing(
    ledger: Ledger, clock: list[float]
) -> None:
    clock[0] = 3600
    ledger.moves.pause(ledger.moves.take("papers", "memory", lease_seconds=15))
    clock[0] = 0
    ledger.sweep.bound_times(lease_seconds=30, wait_seconds=60)
    with pytest.raises(Conflict):
        ledger.moves.take("papers", "memory", lease_seconds=15)
    clock[0] = MOVE_LEASE_SECONDS + 1
    assert not ledger.inventory.moving("papers")
    ledger.moves.take("papers", "memory", lease_seconds=15)


def test_a_sweep_reads_none_of_the_versions_and_steps_that_are_over(tmp_path: Path) -> None:
    """It runs every few seconds, beside the versions of years."""
    with closing(Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")) as ledger:
        ledger.create()
        read: list[tuple[str, Any]] = []

        def note(*sent: Any) -> None:
            read.append((sent[2], sent[3]))

        event.listen(ledger._database._writer, "before_cursor_execute", note)
        ledger.sweep.bound_times(lease_seconds=30, wait_seconds=60)
        ledger.sweep.stuck(idle=True, resend_seconds=15, max_crashes=3)
        ledger.fair_queue.oldest()
        ledger.sweep.unremoved(resend_seconds=15)
    plans = []
    with closing(sqlite3.connect(tmp_path / "ledger.db")) as connection:
        for statement, values in read:
            if statement.startswith("SELECT"):
                explained = connection.execute(f"EXPLAIN QUERY PLAN {statement}", values)
                plans += [step for *_, step in explained]
    scans = [plan for plan in plans if plan.startswith(("SCAN versions", "SCAN steps"))]
    assert [plan for plan in scans if "versions_waiting" not in plan] == []
    assert any("versions_by_state" in plan for plan in plans)
