"""Two workers, a sweep and a broker that loses and repeats messages: every version ends."""

import math
import time
import uuid
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from ledger_moves import submission
from long_forms import ALL

from callslip.errors import BrokenFile, Conflict, DocumentNotFound, LeaseLost, TransientError
from callslip.stores.ledger import STEPS, Claim, Dispatch, Ledger
from callslip.stores.records import CollectionSchema, VectorSpec

pytest_plugins = ["ledger_fixtures"]

LEASE, RESEND, WAIT = 60.0, 30.0, 5.0
MAX_CRASHES = 3
WINDOW = 2
"""Versions in the broker at a time."""

WORKERS = st.integers(0, 1)
PICK = st.integers(0, 1000)


class Clock:
    """The time of the ledger, which passes only when the machine says so."""

    def __init__(self) -> None:
        self.now = time.time()

    def __call__(self) -> float:
        self.now += 1e-4  # no two calls at one time
        return self.now


@dataclass
class Job:
    """A claimed step; the stages of the last one are expect, write, publish."""

    claim: Claim
    stage: str


class Broker(RuleBasedStateMachine):
    """Messages name a version and a step, as tasks/ingest.py sends them.

    The letters of a content are its chunks. A worker that stands still while the clock goes on
    loses its lease, and may go on all the same.
    """

    def __init__(self, ledger: Ledger, clock: Clock) -> None:
        super().__init__()
        self.ledger, self.clock = ledger, clock
        self.collection = uuid.uuid4().hex
        ledger.collections.create(
            CollectionSchema(self.collection, VectorSpec(1)), store="", embedder="", analyzer=""
        )
        self.messages: list[Dispatch] = []
        self.jobs: list[Job | None] = [None, None]
        self.contents: dict[tuple[str, int], str] = {}
        self.done: dict[tuple[str, int], list[str]] = defaultdict(list)
        self.live: dict[str, int] = {}
        self.deleted: set[str] = set()
        self.crashes: dict[tuple[str, int], int] = defaultdict(int)
        self.broken: set[tuple[str, int]] = set()
        self.store: set[str] = set()

    # What callers do

    @initialize()
    def one_is_live(self) -> None:
        self.submit("a", "xy")
        self._until_quiet()

    @rule(name=st.sampled_from("aabc"), content=st.sampled_from(["xy", "y", "xz", "zx"]))
    def submit(self, name: str, content: str) -> None:
        new_id = f"{self.collection[:24]}{len(self.contents):08}"
        accepted = self.ledger.documents.submit(self.collection, submission(content, name), new_id)
        assert accepted.document_id not in self.deleted
        self.contents[accepted.document_id, accepted.version] = content
        self.broken.discard((accepted.document_id, accepted.version))
        self.crashes.pop((accepted.document_id, accepted.version), None)
        self._send_next(accepted.document_id)

    @precondition(lambda self: len(self.contents) > 1)
    @rule(pick=PICK)
    def delete(self, pick: int) -> None:
        if pick % 3:
            return
        document_id = sorted(self.contents)[pick % len(self.contents)][0]
        self.ledger.documents.delete(document_id)
        self.deleted.add(document_id)
        self._send_next(document_id)

    @rule(pick=PICK)
    def roll_back(self, pick: int) -> None:
        document_id, version = sorted(self.contents)[pick % len(self.contents)]
        with suppress(DocumentNotFound, Conflict):
            accepted = self.ledger.versions.restore(document_id, version)
            assert document_id not in self.deleted
            content = self.contents[document_id, version]
            self.contents[document_id, accepted.version] = content
            self._send_next(document_id)

    # What the broker does

    @precondition(lambda self: self.messages)
    @rule(worker=WORKERS, pick=PICK, again=st.sampled_from([False, False, True]))
    def deliver(self, worker: int, pick: int, again: bool) -> None:
        """In any order; `again` leaves a copy for later."""
        if self.jobs[worker] is None:
            at = pick % len(self.messages)
            message = self.messages[at] if again else self.messages.pop(at)
            self._receive(worker, message)

    @precondition(lambda self: self.messages)
    @rule(pick=PICK, everything=st.sampled_from([False, False, False, True]))
    def lose(self, pick: int, everything: bool) -> None:
        if everything:
            self.messages.clear()
        else:
            del self.messages[pick % len(self.messages)]

    # What workers do

    @rule(worker=WORKERS, times=st.integers(1, 8))
    def work(self, worker: int, times: int) -> None:
        """Take the oldest message and do its step; without any, the sweep comes round."""
        for _ in range(times):
            if self.jobs[worker] is not None:
                self._advance(worker)
            elif self.messages:
                self._receive(worker, self.messages.pop(0))
            else:
                self.clock.now += RESEND + 1
                self.sweep()

    @rule(worker=WORKERS, redelivered=st.booleans())
    def die(self, worker: int, redelivered: bool) -> None:
        self._begin(worker)
        job, self.jobs[worker] = self.jobs[worker], None
        if job is not None:
            claim = job.claim
            self.crashes[claim.document_id, claim.version] += 1
            if redelivered:
                self.messages.append(Dispatch(claim.document_id, claim.version, claim.step))

    @rule(worker=WORKERS, how=st.sampled_from(["renew", "release", "release", "fail"]))
    def meet_an_error(self, worker: int, how: str) -> None:
        self._begin(worker)
        job, leases = self.jobs[worker], self.ledger.leases
        if job is None:
            return
        claim = job.claim
        try:
            if how == "renew":
                leases.renew(claim)
                return
            if how == "release":
                leases.release(claim, TransientError("busy"), wait=WAIT, give_up=math.inf)
            else:
                leases.fail(claim, BrokenFile("it broke"))
                self.broken.add((claim.document_id, claim.version))
        except LeaseLost:
            leases.drop(claim)
        self._stop(worker)

    @rule(worker=WORKERS, times=st.integers(0, 6))
    def stand_still(self, worker: int, times: int) -> None:
        """Until the lease is over; the other worker takes over, and this one may go on later."""
        self._begin(worker)
        self.wait(LEASE + 1)
        self.sweep()
        self.work(1 - worker, times)

    # What passes by itself

    @rule(seconds=st.sampled_from([1.0, WAIT * 2, RESEND + 1, LEASE + 1, 5000.0]))
    def wait(self, seconds: float) -> None:
        """A worker with a job stands still meanwhile, which counts as its crash if it is late."""
        self.clock.now += seconds
        for job in self.jobs:
            if job is not None and seconds > RESEND:
                self.crashes[job.claim.document_id, job.claim.version] += 1

    @rule()
    def sweep(self) -> None:
        """As tasks/maintenance.py does."""
        sweep = self.ledger.sweep
        for item in sweep.stuck(
            idle=not self.messages, resend_seconds=RESEND, max_crashes=MAX_CRASHES, window=WINDOW
        ):
            if (item.document_id, item.version) in self.contents:
                assert item.document_id not in self.deleted
                self.messages.append(item)
        for document_id in sweep.unremoved(resend_seconds=RESEND):
            if document_id in self.deleted and not sweep.busy(document_id):
                self.store = {i for i in self.store if not i.startswith(document_id)}
                self.ledger.chunks.forget(document_id)
                self.ledger.documents.removed(document_id, {})
        for document_id in sweep.unpruned():
            ended = self.ledger.chunks.end(document_id)
            self.store -= ended
            self.ledger.chunks.forget(document_id, ended)

    @rule(story=st.lists(st.tuples(st.integers(0, 9), WORKERS, PICK), min_size=6, max_size=12))
    def much_happens(self, story: list[tuple[int, int, int]]) -> None:
        """Many things in a row: Hypothesis draws few kinds of rules for one example."""
        for what, worker, pick in story:
            match what:
                case 0 | 1 | 2:
                    self.work(worker, 1 + pick % 8)
                case 3:
                    self.submit("abc"[pick % 3], ["xy", "y", "xz", "zx"][pick % 4])
                case 4 | 5:
                    self.stand_still(worker, pick % 7)
                case 6:
                    self.die(worker, redelivered=pick % 2 == 0)
                case 7:
                    self.meet_an_error(worker, ["renew", "release", "fail"][pick % 3])
                case 8 if self.messages:
                    self.deliver(worker, pick, again=True)
                case _:
                    self.wait(RESEND + 1)
            self.searches_see_the_live_versions_as_they_are_stored()

    # What must be true

    @invariant()
    def searches_see_the_live_versions_as_they_are_stored(self) -> None:
        alive = {d: v for d, v in self.live.items() if d not in self.deleted}
        expected = {i: d for d, v in alive.items() for i in self._chunks(d, v)}
        every = {f"{d}-{letter}" for d, _ in self.contents for letter in "xyz"}
        assert self.ledger.chunks.visible(sorted(every)) == expected
        assert expected.keys() <= self.store

    def teardown(self) -> None:
        """Once nothing is lost and nobody dies any more, every version comes to its end."""
        self._until_quiet()
        for document_id in {d for d, _ in self.contents}:
            found = self.ledger.documents.get(document_id)
            if document_id in self.deleted:
                assert found.removed_at is not None
                continue
            newest = document_id, found.newest.version
            if found.state != "live":
                assert found.state == "failed", found
                assert newest in self.broken or self.crashes[newest] >= MAX_CRASHES, found
            else:
                assert self.live[document_id] == found.newest.version
        self.searches_see_the_live_versions_as_they_are_stored()
        assert {i.split("-")[0] for i in self.store}.isdisjoint(self.deleted)
        self.ledger.collections.delete(self.collection)
        self.ledger.collections.forget(self.collection)

    def _until_quiet(self) -> None:
        for _ in range(100):
            for worker in (0, 1):
                while self.jobs[worker] is not None:
                    self._advance(worker)
            if not self.messages:
                self.clock.now += 2 * LEASE
                self.sweep()
                if not self.messages:
                    self.clock.now += 2 * LEASE
                    self.sweep()
                    if not self.messages:
                        return
            self._receive(0, self.messages.pop(0))
        raise AssertionError(f"no end: {self.messages}")

    def _begin(self, worker: int) -> None:
        """Let a worker without a job begin one."""
        while self.jobs[worker] is None and self.messages:
            self._receive(worker, self.messages.pop(0))

    def _receive(self, worker: int, message: Dispatch) -> None:
        claim = self.ledger.leases.claim(
            message.document_id,
            message.version,
            message.step,
            worker=str(worker),
            lease_seconds=LEASE,
            max_crashes=MAX_CRASHES,
        )
        if isinstance(claim, Claim):
            assert claim.document_id not in self.deleted
            self.jobs[worker] = Job(claim, "expect" if claim.step == "upsert" else "finish")
        elif claim.reason == "done":
            self._go_on(message.document_id, message.version, message.step)
        else:
            self._send_next(message.document_id)

    def _advance(self, worker: int) -> None:
        job = self.jobs[worker]
        assert job is not None
        claim, leases = job.claim, self.ledger.leases
        ids = self._chunks(claim.document_id, claim.version)
        try:
            match job.stage:
                case "expect":
                    self.ledger.chunks.expect(claim, dict.fromkeys(ids, "hash"))
                    job.stage = "write"
                    return
                case "write":
                    leases.renew(claim)
                    self.store |= set(ids)
                    job.stage = "publish"
                    return
                case "publish":
                    leases.go_live(claim, ids, {})
                    self._note(claim)
                    self.live[claim.document_id] = claim.version
                    self._stop(worker)
                case _:
                    leases.finish(claim, "artifact", {})
                    self._note(claim)
                    self.jobs[worker] = None
                    self._go_on(claim.document_id, claim.version, claim.step)
        except LeaseLost:
            leases.drop(claim)
            self._stop(worker)
        except TransientError as error:
            with suppress(LeaseLost):
                leases.release(claim, error, wait=WAIT, give_up=math.inf)
            self._stop(worker)

    def _note(self, claim: Claim) -> None:
        done = self.done[claim.document_id, claim.version]
        assert claim.document_id not in self.deleted
        if self.live.get(claim.document_id) == claim.version:
            # A later version failed that may have changed chunks: the store gets these back.
            assert claim.step == done.pop() == "upsert"
        assert claim.step == STEPS[len(done)], "a step was done twice, or out of turn"
        done.append(claim.step)

    def _go_on(self, document_id: str, version: int, step: str) -> None:
        if step == STEPS[-1]:
            self._send_next(document_id)
        else:
            after = STEPS[STEPS.index(step) + 1]
            self.messages.append(Dispatch(document_id, version, after))

    def _stop(self, worker: int) -> None:
        job, self.jobs[worker] = self.jobs[worker], None
        if job is not None:
            self._send_next(job.claim.document_id)

    def _send_next(self, document_id: str) -> None:
        self.messages += self.ledger.fair_queue.take(WINDOW, document_id=document_id)

    def _chunks(self, document_id: str, version: int) -> list[str]:
        return [f"{document_id}-{letter}" for letter in self.contents[document_id, version]]


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_whatever_the_broker_does_every_version_ends_and_none_is_done_twice(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    monkeypatch.setattr(time, "time", clock)
    make: Callable[[], Broker] = lambda: Broker(ledger, clock)  # noqa: E731
    run_state_machine_as_test(
        make,
        settings=settings(
            max_examples=400 if ALL else 12,
            stateful_step_count=40 if ALL else 20,
            deadline=None,
            derandomize=True,
            suppress_health_check=list(HealthCheck),
        ),
    )
