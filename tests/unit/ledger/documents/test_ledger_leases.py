"""Claiming, keeping and finishing steps: one at a time, in order, by whoever holds the token."""

import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest
from ledger_moves import LONG, OVER, claim, publish, store_chunks, submission, submit, taken, work

from callslip.errors import BrokenFile, LeaseLost, StoreDown
from callslip.stores.ledger import STEPS, Claim, Finished, Ledger, Rebuilt, Refusal
from callslip.stores.records import CollectionSchema, VectorSpec

pytest_plugins = ["ledger_fixtures"]


def test_a_step_is_refused_while_the_one_before_is_not_done(ledger: Ledger) -> None:
    item = submit(ledger)
    for step in STEPS[1:]:
        assert claim(ledger, item, step) == Refusal("leased")
    taken(ledger, item, "extract")
    assert claim(ledger, item, "sectionize") == Refusal("leased")


def test_a_step_that_is_done_is_not_done_again(ledger: Ledger) -> None:
    item = publish(ledger, "one", ["x"])
    assert all(claim(ledger, item, step) == Refusal("done") for step in STEPS)


def test_a_version_that_does_not_exist_is_gone(ledger: Ledger) -> None:
    item = submit(ledger)
    claimed = ledger.leases.claim(
        item.document_id, 7, "extract", worker="w", lease_seconds=1, max_crashes=3
    )
    assert claimed == Refusal("gone")


def test_of_many_claims_at_once_one_wins(ledger: Ledger) -> None:
    item = submit(ledger)
    start = threading.Barrier(8)

    def attempt(_: int) -> Claim | Refusal:
        start.wait()
        return claim(ledger, item)

    with ThreadPoolExecutor(8) as pool:
        outcomes = list(pool.map(attempt, range(8)))
    assert sum(isinstance(o, Claim) for o in outcomes) == 1
    assert outcomes.count(Refusal("leased")) == 7
    assert ledger.documents.get(item.document_id).steps[0].attempts == 1


def test_a_lease_that_ran_out_is_taken_over_and_the_late_one_cannot_finish(
    ledger: Ledger,
) -> None:
    item = submit(ledger)
    late = taken(ledger, item, lease=OVER)
    new = taken(ledger, item)
    assert new.token == late.token + 1
    for attempt in (
        lambda: ledger.leases.finish(late, "late", {}),
        lambda: ledger.leases.renew(late),
        lambda: ledger.leases.fail(late, BrokenFile("late")),
        lambda: ledger.leases.release(late, StoreDown("late"), wait=1, give_up=9),
    ):
        with pytest.raises(LeaseLost):
            attempt()
    ledger.leases.drop(late)
    ledger.leases.finish(new, "new", {"n": 2})
    step = ledger.documents.get(item.document_id).steps[0]
    assert (step.state, step.artifact, step.counts, step.crashes) == ("done", "new", {"n": 2}, 1)


def test_a_lease_that_ran_out_but_was_not_taken_over_still_counts(ledger: Ledger) -> None:
    item = submit(ledger)
    slow = taken(ledger, item, lease=OVER)
    assert ledger.documents.get(item.document_id).state == "stalled"
    ledger.leases.finish(slow, "artifact", {})
    assert ledger.documents.get(item.document_id).steps[0].state == "done"


def test_a_renewed_lease_holds(ledger: Ledger) -> None:
    item = submit(ledger)
    held = taken(ledger, item)
    before = ledger.documents.get(item.document_id).steps[0].lease_until
    ledger.leases.renew(held)
    found = ledger.documents.get(item.document_id)
    assert found.steps[0].lease_until is not None
    assert before is not None
    assert found.steps[0].lease_until > before
    assert found.state == "working"
    assert claim(ledger, item) == Refusal("leased")


def test_leases_are_renewed_together_and_one_that_is_lost_leaves_the_others_alone(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    items = [submit(ledger, name=name) for name in "abc"]
    held = [taken(ledger, item, lease=0.3) for item in items]
    time.sleep(0.4)
    new = taken(ledger, items[1])
    renewed: list[int] = []
    renew_all = ledger.leases.renew_all

    def counted(claims: Sequence[Claim]) -> list[LeaseLost | None]:
        renewed.append(len(claims))
        if len(renewed) == 2:
            raise StoreDown("no answer")
        return renew_all(claims)

    monkeypatch.setattr(ledger.leases, "renew_all", counted)
    with ledger.leases.keep(held) as leases:
        names = [thread.name for thread in threading.enumerate()]
        assert names.count("lease-keeper") == 1
        deadline = time.monotonic() + 10
        while len(renewed) < 4 and time.monotonic() < deadline:
            time.sleep(0.02)
    assert renewed[:4] == [3, 2, 2, 2]
    assert [lease.is_lost for lease in leases] == [False, True, False]
    with pytest.raises(LeaseLost, match=items[1].document_id):
        leases[1].check()
    assert (
        ledger.leases.finish_all([Finished(c, "x", {}) for c in (held[0], new, held[2])])
        == [None] * 3
    )
    with ledger.leases.keep([]) as none:
        assert list(none) == []


def test_a_deadlock_of_a_common_renewal_ends_in_one_for_each(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = [taken(ledger, submit(ledger, name=name)) for name in "ab"]
    renew, sizes = ledger.leases._renew_in_one, list[int]()

    def alone(claims: Sequence[Claim]) -> list[LeaseLost | None]:
        sizes.append(len(claims))
        if len(claims) > 1:
            raise StoreDown("the ledger does not answer: deadlock")
        return renew(claims)

    monkeypatch.setattr(ledger.leases._database, "is_sqlite", False)
    monkeypatch.setattr(ledger.leases, "_renew_in_one", alone)
    assert ledger.leases.renew_all(held) == [None, None]
    assert sizes == [2, 1, 1]


def test_a_finished_step_cannot_be_finished_twice(ledger: Ledger) -> None:
    item = submit(ledger)
    held = taken(ledger, item)
    ledger.leases.finish(held, "first", {})
    with pytest.raises(LeaseLost):
        ledger.leases.finish(held, "second", {})
    assert ledger.documents.get(item.document_id).steps[0].artifact == "first"


def test_workers_that_die_each_time_set_the_document_aside(ledger: Ledger) -> None:
    item = submit(ledger)
    for _ in range(3):
        taken(ledger, item, lease=OVER)
    assert claim(ledger, item) == Refusal("gone")
    found = ledger.documents.get(item.document_id)
    assert found.state == "failed"
    assert found.newest.failure is not None
    assert (found.newest.failure.type, found.newest.failure.step) == ("worker-lost", "extract")
    assert found.steps[0].crashes == 3
    again = submit(ledger)
    assert again.fresh
    assert taken(ledger, again).token == 4


def test_after_a_transient_error_a_step_rests(ledger: Ledger) -> None:
    item = submit(ledger)
    ledger.leases.release(taken(ledger, item), StoreDown("no answer"), wait=60, give_up=3600)
    assert claim(ledger, item) == Refusal("leased")
    found = ledger.documents.get(item.document_id)
    step = found.steps[0]
    assert (found.state, step.state, step.crashes) == ("waiting", "pending", 0)
    assert step.failure is not None
    assert step.failure.type == "store-down"
    assert step.retry_at is not None
    assert step.retry_at > time.time()


def test_transient_errors_are_retried_until_it_is_given_up(ledger: Ledger) -> None:
    item = submit(ledger)
    for _ in range(5):
        ledger.leases.release(taken(ledger, item), StoreDown("no answer"), wait=0, give_up=3600)
    ledger.leases.release(taken(ledger, item), StoreDown("no answer"), wait=10, give_up=5)
    found = ledger.documents.get(item.document_id)
    assert found.state == "failed"
    assert found.newest.failure is not None
    assert found.newest.failure.type == "store-down"


def test_a_step_that_comes_through_forgets_how_long_it_failed(ledger: Ledger) -> None:
    item = submit(ledger)
    ledger.leases.release(taken(ledger, item), StoreDown("no answer"), wait=0, give_up=3600)
    ledger.leases.finish(taken(ledger, item), "artifact", {})
    step = ledger.documents.get(item.document_id).steps[0]
    assert (step.state, step.failure, step.retry_at) == ("done", None, None)


def test_a_step_that_is_tried_again_has_not_finished(ledger: Ledger) -> None:
    item = submit(ledger)
    ledger.leases.fail(taken(ledger, item), BrokenFile("it broke"))
    taken(ledger, submit(ledger))
    step = ledger.documents.get(item.document_id).steps[0]
    assert (step.state, step.finished_at) == ("running", None)


def test_going_live_makes_the_version_before_it_superseded(ledger: Ledger) -> None:
    first = publish(ledger, "one", ["x"])
    publish(ledger, "two", ["y"])
    found = ledger.documents.get(first.document_id)
    assert (found.state, found.live_version) == ("live", 2)
    assert ledger.documents.version(first.document_id, 1).state == "superseded"
    assert found.steps[-1].counts == {"chunks": 1}


def test_a_late_worker_cannot_go_live(ledger: Ledger) -> None:
    old = store_chunks(ledger, submit(ledger, "one"), ["x"])
    submit(ledger, "two")
    with pytest.raises(LeaseLost):
        ledger.leases.go_live(old, ["x"], {})
    assert ledger.documents.get(old.document_id).live_version is None


def test_a_dropped_lease_is_free_at_once(ledger: Ledger) -> None:
    item = submit(ledger)
    held = taken(ledger, item)
    ledger.documents.delete(item.document_id)
    assert ledger.sweep.busy(item.document_id)
    ledger.leases.drop(held)
    assert not ledger.sweep.busy(item.document_id)


def test_all_leases_can_be_ended_without_counting_as_crashes(ledger: Ledger) -> None:
    items = [submit(ledger, name, name) for name in ("a", "b", "c")]
    old = [taken(ledger, item) for item in items[:2]]
    assert ledger.leases.expire_all() == 2
    with pytest.raises(LeaseLost):
        ledger.leases.finish(old[0], "late", {})
    assert taken(ledger, items[0]).token == 2
    stuck = ledger.sweep.stuck(idle=False, resend_seconds=15, max_crashes=3)
    assert {s.document_id for s in stuck} == {items[1].document_id}
    work(ledger, items[1])
    assert ledger.documents.get(items[1].document_id).steps[0].crashes == 0


def test_a_step_that_is_given_back_is_taken_again_without_a_crash(ledger: Ledger) -> None:
    item = submit(ledger)
    first = taken(ledger, item, "extract")
    ledger.leases.give_back(first)
    (again,) = ledger.sweep.stuck(idle=False, resend_seconds=900, max_crashes=3)
    assert (again.document_id, again.step) == (item.document_id, "extract")
    second = taken(ledger, item, "extract")
    assert second.token == first.token + 1
    step = ledger.documents.get(item.document_id).steps[0]
    assert (step.attempts, step.crashes) == (2, 0)
    with pytest.raises(LeaseLost):
        ledger.leases.give_back(first)


def test_a_rebuilt_collection_repeats_the_steps_of_terms_and_vectors(ledger: Ledger) -> None:
    live = publish(ledger, "one", ["c"])
    queued = ledger.documents.submit("papers", submission("two", "b.txt"), "b" * 32)
    work(ledger, queued, upto="enrich")
    running = taken(ledger, queued, "embed")
    move = ledger.moves.take("papers", "memory:2", lease_seconds=LONG)
    schema = CollectionSchema("papers", VectorSpec(7))
    ledger.moves.switch(move, "memory", Rebuilt("new", "2", schema))
    record = ledger.collections.get("papers")
    assert (record.store, record.embedder, record.schema) == ("memory:2", "new", schema)
    with pytest.raises(LeaseLost):
        ledger.leases.finish(running, "of the former embedder", {})
    states = {s.step: s.state for s in ledger.documents.get(queued.document_id).steps}
    assert [states[step] for step in STEPS[3:]] == ["pending"] * 3
    assert ledger.documents.artifact(live.document_id, 1, "enrich") is None
    assert set(ledger.chunks.visible(["c"])) == {"c"}
    work(ledger, queued)
