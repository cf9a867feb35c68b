"""Workers, servers, sweeps and prunings in any order: no version is lost, none done twice."""

import contextlib
import uuid
from collections import defaultdict

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
from ledger_moves import LONG, OVER, submission

from callslip.errors import (
    BrokenFile,
    Conflict,
    DocumentNotFound,
    LeaseLost,
    StoreDown,
    TransientError,
)
from callslip.stores.ledger import STEPS, Accepted, Claim, Dispatch, Ledger
from callslip.stores.ledger.documents.chunks import Seen
from callslip.stores.records import CollectionSchema, VectorSpec

pytest_plugins = ["ledger_fixtures"]

PICK = st.integers(min_value=0, max_value=1000)
MAX_CRASHES = 4


class Upsert:
    """How far one worker is with the last step of a version."""

    def __init__(self, claim: Claim, chunk_ids: list[str]) -> None:
        self.claim, self.chunk_ids = claim, chunk_ids
        self.stage = "expect"


class Workers(RuleBasedStateMachine):
    """Several workers on a few documents; the store is a set of ids that everybody may write to.

    What ought to be true is kept beside the ledger: which steps were finished, which contents are
    live. A worker may stop anywhere and come back late; the letters of a content are its chunks.
    """

    def __init__(self, ledger: Ledger) -> None:
        super().__init__()
        self.ledger = ledger
        self.collection = uuid.uuid4().hex
        ledger.collections.create(
            CollectionSchema(self.collection, VectorSpec(1)), store="", embedder="", analyzer=""
        )
        self.items: list[Accepted] = []
        self.contents: dict[tuple[str, int], str] = {}
        self.claims: list[Claim] = []
        self.upserts: list[Upsert] = []
        self.finished: dict[tuple[str, int], list[str]] = defaultdict(list)
        self.live: dict[str, int] = {}
        self.deleted: set[str] = set()
        self.store: set[str] = set()
        self.leaving: tuple[str, set[str]] | None = None

    @initialize()
    def something_is_live(self) -> None:
        self.submit("a", "xy", steps=len(STEPS))

    @rule(
        name=st.sampled_from(["a", "a", "b"]),
        content=st.sampled_from(["xy", "y", "xz", "zx"]),
        steps=st.sampled_from([0, 5, 6]),
    )
    def submit(self, name: str, content: str, steps: int) -> None:
        """A new version that nobody disturbs for so many steps."""
        given = submission(content, name)
        new_id = f"{self.collection[:24]}{len(self.items):08}"  # in one order in every run
        accepted = self.ledger.documents.submit(self.collection, given, new_id)
        assert accepted.document_id not in self.deleted
        self.contents[accepted.document_id, accepted.version] = content
        if accepted not in self.items:
            self.items.append(accepted)
        self._work_on(accepted, steps)

    @precondition(lambda self: self.items)
    @rule(pick=PICK, ahead=st.sampled_from([0, 0, 0, 0, 1, 5]), lease=st.sampled_from([LONG, OVER]))
    def claim(self, pick: int, ahead: int, lease: float) -> None:
        """Mostly of the next step that is to be done, of a newer version rather than an older."""
        item = self.items[-1 - pick % min(len(self.items), 3)]
        done = len(self.finished[item.document_id, item.version])
        self._claim(item, min(done + ahead, len(STEPS) - 1), lease)

    @precondition(lambda self: self.claims)
    @rule(pick=PICK)
    def finish(self, pick: int) -> None:
        self._finish(self.claims[-1 - pick % min(len(self.claims), 4)])

    @precondition(lambda self: self._open_upserts())
    @rule(pick=PICK, times=st.integers(1, 4))
    def go_on_with_upsert(self, pick: int, times: int) -> None:
        """Record what is about to be stored; store it; count it; go live: others come between."""
        upserts = self._open_upserts()
        for _ in range(times):
            self._advance(upserts[pick % len(upserts)])

    @precondition(lambda self: self.claims or self._open_upserts())
    @rule(pick=PICK, how=st.sampled_from(["release", "renew", "fail", "drop"]))
    def something_else(self, pick: int, how: str) -> None:
        claims = [*self.claims[-3:], *(u.claim for u in self._open_upserts())]
        claim, leases = claims[pick % len(claims)], self.ledger.leases
        try:
            if how == "release":
                leases.release(claim, StoreDown("no answer"), wait=0, give_up=3600)
            elif how == "renew":
                leases.renew(claim)
            elif how == "fail" and pick % 4 == 0:
                leases.fail(claim, BrokenFile("it broke"))
        except LeaseLost:
            leases.drop(claim)

    @precondition(lambda self: self.items)
    @rule(pick=PICK)
    def delete(self, pick: int) -> None:
        if pick % 4 == 0:
            document_id = self.items[pick % len(self.items)].document_id
            self.ledger.documents.delete(document_id)
            self.deleted.add(document_id)

    @precondition(lambda self: self.items)
    @rule(pick=PICK)
    def go_back(self, pick: int) -> None:
        """To an older version, or one that never was live."""
        item = self.items[pick % len(self.items)]
        with contextlib.suppress(DocumentNotFound, Conflict):
            accepted = self.ledger.versions.restore(item.document_id, item.version)
            assert item.document_id not in self.deleted
            content = self.contents[item.document_id, item.version]
            self.contents[accepted.document_id, accepted.version] = content
            if accepted.fresh:
                self.items.append(accepted)

    @rule()
    def sweep(self) -> None:
        self._sweep()

    @rule()
    def restart(self) -> None:
        self.ledger.leases.expire_all()

    @precondition(lambda self: self.leaving is None)
    @rule()
    def begin_to_prune(self) -> None:
        for document_id in self._unpruned()[:1]:
            self.leaving = document_id, self.ledger.chunks.end(document_id)

    @precondition(lambda self: self.leaving is not None)
    @rule(dies=st.booleans())
    def go_on_with_pruning(self, dies: bool) -> None:
        assert self.leaving is not None
        document_id, chunk_ids = self.leaving
        self.store -= chunk_ids
        if not dies:
            self.ledger.chunks.forget(document_id, chunk_ids)
        self.leaving = None

    @invariant()
    def what_is_seen_is_what_is_live_and_stored(self) -> None:
        alive = {d: v for d, v in self.live.items() if d not in self.deleted}
        expected = {
            i: Seen(d, at, v) for d, v in alive.items() for i, at in self._spans(d, v).items()
        }
        every = {f"{d}-{letter}" for d, _ in self.contents for letter in "xyz"}
        assert self.ledger.chunks.seen(sorted(every)) == expected
        assert set(expected) <= self.store

    @invariant()
    def only_the_newest_version_may_be_queued(self) -> None:
        for document_id in {i.document_id for i in self.items}:
            newest = self.ledger.documents.get(document_id).newest.version
            for version in range(1, newest):
                found = self.ledger.documents.version(document_id, version)
                assert found.state in ("live", "superseded", "failed")

    def teardown(self) -> None:
        """With workers that live and a sweep that comes round, everything comes to an end."""
        if self.leaving is not None:
            self.go_on_with_pruning(dies=False)
        self.ledger.leases.expire_all()
        for _ in range(50):
            stuck = self._sweep()
            for item in stuck:
                self._work_on(item, len(STEPS))
            self.begin_to_prune()
            if self.leaving is not None:
                self.go_on_with_pruning(dies=False)
            elif not stuck:
                break
        for document_id in {i.document_id for i in self.items} - self.deleted:
            found = self.ledger.documents.get(document_id)
            assert found.state in ("live", "failed"), found
            if found.state == "live":
                assert found.live_version == found.newest.version == self.live[document_id]
        self.what_is_seen_is_what_is_live_and_stored()
        assert self._unpruned() == []

    def _open_upserts(self) -> list[Upsert]:
        return [upsert for upsert in self.upserts if upsert.stage != "over"]

    def _work_on(self, item: Accepted | Dispatch, end: int) -> None:
        for step in range(len(self.finished[item.document_id, item.version]), end):
            claim = self._claim(item, step, LONG)
            if claim in self.claims:
                self._finish(claim)
            elif claim is not None:
                while self._advance(self.upserts[-1]):
                    pass

    def _claim(self, item: Accepted | Dispatch, step: int, lease: float) -> Claim | None:
        claimed = self.ledger.leases.claim(
            item.document_id,
            item.version,
            STEPS[step],
            worker="tester",
            lease_seconds=lease,
            max_crashes=MAX_CRASHES,
        )
        if not isinstance(claimed, Claim):
            return None
        assert item.document_id not in self.deleted
        if claimed.step == "upsert":
            ids = self._chunk_ids(item.document_id, item.version)
            self.upserts.append(Upsert(claimed, ids))
        else:
            self.claims.append(claimed)
        return claimed

    def _advance(self, upsert: Upsert) -> bool:
        """Do the next thing of an upsert; false when it is over."""
        try:
            if upsert.stage == "expect":
                claim = upsert.claim
                spans = self._spans(claim.document_id, claim.version)
                self.ledger.chunks.expect(claim, dict.fromkeys(upsert.chunk_ids, "hash"), spans)
                upsert.stage = "write"
            elif upsert.stage == "write":
                self.store |= set(upsert.chunk_ids)
                upsert.stage = "count"
            elif upsert.stage == "count":
                assert upsert.chunk_ids
                upsert.stage = "go live" if set(upsert.chunk_ids) <= self.store else "over"
            elif upsert.stage == "go live":
                self.ledger.leases.go_live(upsert.claim, upsert.chunk_ids, {})
                self._note_finished(upsert.claim)
                self.live[upsert.claim.document_id] = upsert.claim.version
                upsert.stage = "over"
        except LeaseLost:
            self.ledger.leases.drop(upsert.claim)
            upsert.stage = "over"
        except TransientError as error:
            upsert.stage = "over"
            try:
                self.ledger.leases.release(upsert.claim, error, wait=0, give_up=3600)
            except LeaseLost:
                self.ledger.leases.drop(upsert.claim)
        return upsert.stage != "over"

    def _finish(self, claim: Claim) -> None:
        try:
            self.ledger.leases.finish(claim, "artifact", {})
        except LeaseLost:
            return
        self._note_finished(claim)

    def _note_finished(self, claim: Claim) -> None:
        done = self.finished[claim.document_id, claim.version]
        assert claim.document_id not in self.deleted
        assert tuple(done) == STEPS[: len(done)]
        assert claim.step == STEPS[len(done)], "a step was done twice, or out of turn"
        done.append(claim.step)

    def _sweep(self) -> list[Dispatch]:
        found = self.ledger.sweep.stuck(idle=True, resend_seconds=-1, max_crashes=MAX_CRASHES)
        mine = {item.document_id for item in self.items}
        stuck = sorted((s for s in found if s.document_id in mine), key=str)
        for item in stuck:
            assert item.step == STEPS[len(self.finished[item.document_id, item.version])]
            assert item.document_id not in self.deleted
        return stuck

    def _unpruned(self) -> list[str]:
        mine = {item.document_id for item in self.items}
        return sorted(mine & set(self.ledger.sweep.unpruned()))

    def _chunk_ids(self, document_id: str, version: int) -> list[str]:
        return list(self._spans(document_id, version))

    def _spans(self, document_id: str, version: int) -> dict[str, tuple[int, int]]:
        """Where each letter of a content stands in it."""
        content = self.contents[document_id, version]
        return {f"{document_id}-{letter}": (at, at + 1) for at, letter in enumerate(content)}


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_any_interleaving_loses_no_version_and_finishes_none_twice(ledger: Ledger) -> None:
    run_state_machine_as_test(
        lambda: Workers(ledger),
        settings=settings(
            max_examples=15,
            stateful_step_count=30,
            deadline=None,
            derandomize=True,
            suppress_health_check=list(HealthCheck),
        ),
    )
