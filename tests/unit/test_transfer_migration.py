"""Moving a collection to another store: in use, after a kill, and when something differs."""

import random
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ledger_moves import OVER, claim, taken
from moving import (
    SHELF,
    Fate,
    Killed,
    OtherStore,
    Place,
    chunks_of,
    fill,
    mortal,
    run_out,
    silent,
    vector_of,
)

from callslip.errors import (
    CollectionNotFound,
    Conflict,
    CopyDiffers,
    LeaseLost,
    MoveError,
    StoreDown,
)
from stores.ledger import STEPS, Claim, Refusal, leases
from stores.records import BatchOutcome, ChunkRecord, LegHit
from stores.transfer import Report, hold, migrate, migration
from stores.transfer.hold import Hold


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    """An installation in which counts that differ are soon believed."""
    monkeypatch.setattr(migration, "SETTLE_SECONDS", 0.5)
    made = Place(tmp_path)
    yield made
    made.ledger.close()


def move(place: Place, to: str = "other", **more: Any) -> Report:
    """Migrate the collection."""
    given: dict[str, Any] = {"keep": False, "grace": 0.0, "progress": silent}
    return migrate(place.house, SHELF, to, **given | more)


@pytest.mark.parametrize("tenants", [False, True])
def test_a_collection_is_the_same_in_another_store(place: Place, tenants: bool) -> None:
    fill(place, tenants=tenants)
    before = place.state()
    report = move(place)
    assert (report.documents, report.chunks, report.left_out) == (
        (8, 20, 1) if tenants else (4, 10, 1)
    )
    assert place.ledger.collections.get(SHELF).store == "other"
    assert place.state() == before
    assert place.stores["memory"].collections() == []
    assert place.stores["other"].tenants(SHELF) == place.ledger.tenants.all(SHELF)
    assert all(leg["overlap@10"] == 1 for leg in report.probes.values())
    assert report.probes["vector"]["recall@10"] == [1, 1]
    assert report.probes["vector"]["itself_first"] == [1, 1]
    assert place.ledger.moves.underway(SHELF) is None
    assert not place.ledger.moves.has_copies(SHELF, "other")


def test_what_is_not_live_stays_behind_and_is_upserted_into_the_new_store(place: Place) -> None:
    place.make()
    place.publish("a", "alpha beta")
    item = place.submit("a", "beta gamma")
    late = place.submit("b", "delta")
    for step in STEPS[:-1]:
        place.do(item, step)
        place.do(late, step)
    assert move(place).left_out == 1
    assert place.upsert(item, "beta gamma")
    assert place.upsert(late, "delta")
    assert {c.split("-")[1] for c in place.held("other")} == {"alpha", "beta", "gamma", "delta"}
    assert len(place.state()) == 2


def test_a_kept_copy_goes_out_of_date_and_is_made_anew_on_the_way_back(place: Place) -> None:
    fill(place)
    move(place, keep=True)
    assert place.stores["memory"].count(SHELF) == 12, "a chunk of an older version too"
    gone = place.ledger.documents.id_of(SHELF, "two")
    assert gone
    place.ledger.documents.delete(gone)
    place.stores["other"].delete_document(SHELF, gone)
    place.publish("one", "quite other")
    place.publish("new", "a word")
    before = place.state()
    move(place, "memory")
    assert place.state() == before
    assert place.stores["memory"].count(SHELF) == sum(len(s[1]) for s in before.values())


def test_the_store_that_it_is_kept_in_is_no_place_to_move_to(place: Place) -> None:
    fill(place)
    with pytest.raises(Conflict, match="is kept in store 'memory' already"):
        move(place, "memory")
    with pytest.raises(CollectionNotFound):
        migrate(place.house, "nowhere", "other", keep=False, grace=0, progress=silent)


def test_a_foreign_collection_of_that_name_is_in_the_way(place: Place, tmp_path: Path) -> None:
    fill(place)
    (tmp_path / "else").mkdir()
    elsewhere = Place(tmp_path / "else", place.stores)
    elsewhere.make(store="other")
    elsewhere.publish("mine", "foreign words")
    before = elsewhere.state()
    with pytest.raises(Conflict, match="holds another collection"):
        move(place)
    assert elsewhere.state() == before
    assert place.ledger.collections.get(SHELF).store == "memory"
    elsewhere.ledger.close()


def test_a_store_that_is_down_is_named_and_nothing_is_begun(place: Place) -> None:
    class Down(OtherStore):
        def ping(self) -> None:
            raise StoreDown("no answer")

    fill(place)
    place.stores["other"] = Down()  # type: ignore[index]
    with pytest.raises(StoreDown):
        move(place)
    assert place.ledger.moves.underway(SHELF) is None


def test_an_object_that_the_target_refuses_is_named(place: Place) -> None:
    class Choosy(OtherStore):
        def batch_upsert_chunks(
            self, collection: str, chunks: Sequence[ChunkRecord], *, tenant: str = ""
        ) -> BatchOutcome:
            return BatchOutcome((), {c.chunk_id: "a property is too long" for c in chunks})

    fill(place)
    place.stores["other"] = Choosy()  # type: ignore[index]
    with pytest.raises(MoveError, match=r"refused .* a property is too long"):
        move(place)
    assert place.ledger.collections.get(SHELF).store == "memory"


class Forgetful(OtherStore):
    """Says that it stored what it did not."""

    def batch_upsert_chunks(
        self, collection: str, chunks: Sequence[ChunkRecord], *, tenant: str = ""
    ) -> BatchOutcome:
        super().batch_upsert_chunks(collection, chunks[1:], tenant=tenant)
        return BatchOutcome(tuple(c.chunk_id for c in chunks))


class Wrong(OtherStore):
    """Stores other vectors."""

    def batch_upsert_chunks(
        self, collection: str, chunks: Sequence[ChunkRecord], *, tenant: str = ""
    ) -> BatchOutcome:
        wrong = [ChunkRecord(**{**c.__dict__, "vector": vector_of("")}) for c in chunks]
        return super().batch_upsert_chunks(collection, wrong, tenant=tenant)


class Confused(OtherStore):
    """Finds other chunks than those that are near."""

    def vector_query(self, *given: Any, **more: Any) -> list[LegHit]:
        return super().vector_query(*given, **more)[::-1][:2]


class Leaking(OtherStore):
    """Counts what nobody stored."""

    def count(self, *given: Any, **more: Any) -> int:
        return super().count(*given, **more) + 1


@pytest.mark.parametrize("kind", [Forgetful, Wrong, Confused, Leaking])
def test_a_target_that_differs_is_not_switched_to(place: Place, kind: type[OtherStore]) -> None:
    fill(place)
    sound, place.stores["other"] = place.stores["other"], kind()  # type: ignore[index]
    before = place.state()
    with pytest.raises(CopyDiffers):
        move(place)
    assert place.ledger.collections.get(SHELF).store == "memory"
    assert place.state() == before
    place.publish("after", "the pause is over")
    before = place.state()
    place.stores["other"] = sound  # type: ignore[index]
    move(place)
    assert place.state() == before


def test_upserts_wait_while_the_last_differences_are_copied_and_fail_nothing(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.make()
    item = place.submit("a", "alpha")
    for step in STEPS[:-1]:
        place.do(item, step)
    monkeypatch.setattr(leases, "PAUSE_SECONDS", 0.3)
    lease = place.ledger.moves.take(SHELF, "other", lease_seconds=0.4)
    place.ledger.moves.pause(lease)
    refused = claim(place.ledger, item, "upsert")
    assert refused == Refusal("leased")
    step = place.ledger.documents.get(item.document_id).steps[5]
    assert step.failure
    assert "is being moved" in step.failure.detail
    assert (step.state, step.attempts, step.crashes) == ("pending", 0, 0)
    sweep: dict[str, Any] = {"idle": False, "resend_seconds": 60, "max_crashes": 3}
    assert place.ledger.sweep.stuck(**sweep) == []
    time.sleep(0.5)
    (stuck,) = place.ledger.sweep.stuck(**sweep)
    assert (stuck.document_id, stuck.step) == (item.document_id, "upsert")
    assert isinstance(claim(place.ledger, item, "upsert"), Claim), "the mover was killed"
    with pytest.raises(LeaseLost):
        place.ledger.moves.renew(lease)


def test_two_movers_do_not_move_at_once(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(place)
    lease = place.ledger.moves.take(SHELF, "other", lease_seconds=60)
    with monkeypatch.context() as patient:
        patient.setattr(hold, "LEASE_SECONDS", 0.3)
        with pytest.raises(Conflict, match="is being moved by another process"):
            move(place)
    place.ledger.moves.release(lease)
    move(place)
    assert place.ledger.collections.get(SHELF).store == "other"


def test_a_mover_that_waited_for_another_finds_the_collection_moved(place: Place) -> None:
    fill(place)
    before = place.state()
    second: list[Exception] = []

    def too_late() -> None:
        try:
            move(place)
        except Conflict as error:
            second.append(error)

    other = threading.Thread(target=too_late)

    def first(_total: int, _chunks: int) -> None:
        if not other.ident:
            other.start()
            time.sleep(0.5)

    move(place, progress=first)
    other.join(30)
    assert [str(error) for error in second] == [
        "collection 'shelf' is kept in store 'other' already"
    ]
    assert place.state() == before
    assert place.ledger.moves.underway(SHELF) is None


def test_one_who_waited_for_a_mover_that_died_before_it_cleared_clears(place: Place) -> None:
    fill(place)
    before = place.state()

    def killed(said: str) -> None:
        if said.startswith("Switched"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        move(place, phase=killed)
    assert place.stores["memory"].collections() == [SHELF]
    movers = [threading.Thread(target=lambda: quietly_moves(place)) for _ in range(3)]
    for mover in movers:
        mover.start()
    for mover in movers:
        mover.join(60)
    assert place.state() == before
    assert place.stores["memory"].collections() == []
    assert place.ledger.moves.underway(SHELF) is None


def quietly_moves(place: Place) -> None:
    """Move it, or find it moved."""
    with suppress(Conflict):
        move(place)


def test_a_mover_that_stood_still_before_it_cleared_drops_nothing(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another one may have moved the collection back to where its copy was left."""
    fill(place)
    before = place.state()

    def back(said: str) -> None:
        if said.startswith("Switched"):
            run_out(place)
            move(place, "memory")

    monkeypatch.setattr(Hold, "_keep", lambda _: None)
    with pytest.raises(LeaseLost):
        move(place, phase=back)
    assert place.ledger.collections.get(SHELF).store == "memory"
    assert place.state() == before


def test_a_move_that_was_broken_off_is_given_up_by_moving_to_where_it_is(place: Place) -> None:
    fill(place)

    def killed(_total: int, chunks: int) -> None:
        if chunks:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        move(place, progress=killed)
    with pytest.raises(Conflict, match="is kept in store 'memory' already"):
        move(place, "memory")
    assert place.stores["other"].collections() == []
    assert place.ledger.moves.underway(SHELF) is None
    assert not place.ledger.moves.has_copies(SHELF, "other")


def test_a_mover_that_takes_long_renews_its_lease(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(place)
    monkeypatch.setattr(hold, "LEASE_SECONDS", 3.0)

    def until() -> float:
        underway = place.ledger.moves.underway(SHELF)
        assert underway
        return underway[2]

    def slow(_total: int, _chunks: int) -> None:
        begun = until()
        while until() == begun:
            time.sleep(0.05)

    move(place, progress=slow)
    assert place.ledger.collections.get(SHELF).store == "other"


def test_a_mover_that_stood_still_for_too_long_switches_nothing(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(place)
    monkeypatch.setattr(Hold, "_keep", lambda _: None)
    with pytest.raises(LeaseLost, match="stood still"):
        move(place, progress=lambda _total, _chunks: run_out(place))
    assert place.ledger.collections.get(SHELF).store == "memory"


def test_a_worker_that_stood_still_during_the_switch_cannot_finish_in_the_old_store(
    place: Place,
) -> None:
    fill(place)
    item = place.submit("one", "quite new")
    for step in STEPS[:-1]:
        place.do(item, step)
    late = taken(place.ledger, item, "upsert", lease=OVER)
    chunks = chunks_of(item.document_id, "quite new", {})
    place.ledger.chunks.expect(late, {c.chunk_id: "x" for c in chunks})
    move(place)
    with pytest.raises(LeaseLost):
        place.ledger.leases.go_live(late, [c.chunk_id for c in chunks], {})
    assert place.upsert(item, "quite new")
    assert len(place.state()[item.document_id][1]) == 2


def test_a_move_waits_for_an_upsert_that_runs(place: Place) -> None:
    fill(place)
    item = place.submit("one", "alpha new")
    for step in STEPS[:-1]:
        place.do(item, step)
    running = taken(place.ledger, item, "upsert")
    chunks = chunks_of(item.document_id, "alpha new", {"year": 7})
    mover = threading.Thread(target=move, args=(place,))
    mover.start()
    time.sleep(0.5)
    assert place.ledger.collections.get(SHELF).store == "memory"
    place.ledger.chunks.expect(running, {c.chunk_id: "x" for c in chunks})
    place.stores["memory"].batch_upsert_chunks(SHELF, chunks)
    place.ledger.leases.go_live(running, [c.chunk_id for c in chunks], {})
    mover.join(30)
    assert place.ledger.collections.get(SHELF).store == "other"
    held = place.state()[item.document_id][1]
    assert [c["properties"] for c in held] == [{"year": 7}] * 2


def test_a_collection_that_is_deleted_meanwhile_is_not_switched(place: Place) -> None:
    fill(place)

    def deleted(_total: int, _chunks: int) -> None:
        place.ledger.collections.delete(SHELF)

    with pytest.raises(CollectionNotFound):
        move(place, progress=deleted)


def test_a_move_to_yet_another_store_takes_back_what_the_first_one_copied(place: Place) -> None:
    class Third(OtherStore):
        kind = "third"

    fill(place)
    place.stores["third"] = Third()  # type: ignore[index]

    def killed(_total: int, chunks: int) -> None:
        if chunks:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        move(place, progress=killed)
    assert place.stores["other"].count(SHELF) > 0
    before = place.state()
    move(place, "third")
    assert place.stores["other"].collections() == []
    assert place.state() == before


# While it is used


def test_documents_that_come_change_and_go_during_a_move_are_in_the_new_store_as_they_are(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ingest, delete, remove and prune in threads, as workers do, against a move."""
    monkeypatch.setattr(migration, "FEW", 2)
    monkeypatch.setattr(leases, "PAUSE_SECONDS", 0.02)
    place.make()
    for n in range(40):
        place.publish(f"doc{n}", f"word{n} common more{n}")
    stop, faults, done = threading.Event(), [], []

    def works(seed: int) -> None:
        chance = random.Random(seed)
        try:
            while not stop.is_set():
                name = f"doc{chance.randrange(12)}-{seed}" if chance.random() < 0.5 else ""
                name = name or f"doc{chance.randrange(20) * 2 + seed}"
                if chance.random() < 0.3:
                    remove(place, name)
                else:
                    rework(place, name, f"word{chance.random()} common", stop)
                done.append(name)
        except Exception as error:
            faults.append(error)

    def searches() -> None:
        try:
            while not stop.is_set():
                store = place.stores[place.ledger.collections.get(SHELF).store]
                assert store.count(SHELF) > 0
                time.sleep(0.001)
        except Exception as error:
            faults.append(error)

    threads = [threading.Thread(target=works, args=(seed,)) for seed in (0, 1)]
    threads.append(threading.Thread(target=searches))
    for thread in threads:
        thread.start()
    try:
        for n in range(21):
            to = ("other", "memory")[n % 2]
            move(place, to, grace=0.2)
            assert place.ledger.collections.get(SHELF).store == to
            if to == "other" and n and len(done) > 20:
                break
    finally:
        stop.set()
        for thread in threads:
            thread.join(30)
    assert faults == []
    assert len(done) > 20
    for document_id in place.ledger.collections.document_ids(SHELF):
        sweep_document(place, document_id)
    wanted = {c["chunk_id"] for state in place.state().values() for c in state[1]}
    ledger = {c for state in place.state().values() for c in state[0].chunks}
    assert wanted == ledger
    assert place.held("other") == ledger
    assert place.stores["memory"].collections() == []


def rework(place: Place, name: str, text: str, stop: threading.Event) -> None:
    """Take a new version to live as a worker does, trying again while the collection moves."""
    item = place.submit(name, text)
    for step in STEPS[:-1]:
        place.do(item, step)
    while not place.upsert(item, text):
        if stop.is_set():
            return
        time.sleep(0.02)
    sweep_document(place, item.document_id)


def sweep_document(place: Place, document_id: str) -> None:
    """Remove or prune as the maintenance worker does, in every store that holds the collection."""
    ledger = place.ledger
    document = ledger.documents.get(document_id)
    if document.deleted_at is not None:
        if not ledger.sweep.busy(document_id):
            for store in holding(place):
                quietly(lambda store=store: store.delete_document(SHELF, document_id))
            ledger.chunks.forget(document_id)
            ledger.documents.removed(document_id, {})
        return
    ended = ledger.chunks.end(document_id)
    for store in holding(place):
        quietly(lambda store=store: store.delete_chunks(SHELF, ended))
    ledger.chunks.forget(document_id, ended)


def remove(place: Place, name: str) -> None:
    """Delete a document and what it left."""
    if document_id := place.ledger.documents.id_of(SHELF, name):
        place.ledger.documents.delete(document_id)
        sweep_document(place, document_id)


def holding(place: Place) -> list[Any]:
    """The stores that have the collection."""
    return [store for store in place.stores.values() if SHELF in store.collections()]


def quietly(call: Callable[[], None]) -> None:
    """The sweep comes back to a store that lost the collection in between."""
    with suppress(CollectionNotFound):
        call()


# Killed


def test_a_move_that_is_killed_anywhere_is_finished_by_the_same_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migration, "SETTLE_SECONDS", 0.0)
    monkeypatch.setattr(Hold, "_keep", lambda _: None)  # else it would count at random
    (tmp_path / "first").mkdir()
    first = Place(tmp_path / "first")
    first.make()
    first.publish("one", "alpha beta")
    first.publish("two", "gamma")
    state = first.state()
    first.ledger.close()
    calls, ended = 0, False
    while not ended:
        before = state
        folder = tmp_path / str(calls)
        shutil.copytree(tmp_path / "first", folder)
        place = Place(folder, deepcopy(first.stores))
        fate = Fate(calls)
        try:
            migrate(mortal(place, fate), SHELF, "other", keep=False, grace=0, progress=silent)
            ended = True
        except Killed:
            run_out(place)
        if place.ledger.moves.underway(SHELF) or not ended:
            if calls % 7 == 0 and place.ledger.collections.get(SHELF).store == "memory":
                place.publish("three", "delta")
                before = place.state()
            try:
                move(place)
            except Conflict:  # it was killed when all was done
                assert place.ledger.moves.underway(SHELF) is None
        assert place.ledger.collections.get(SHELF).store == "other", calls
        assert place.state() == before, calls
        assert place.stores["memory"].collections() == [], calls
        assert place.ledger.moves.underway(SHELF) is None
        place.ledger.close()
        calls += 1
    assert calls > 40


def test_vectors_are_the_same_to_the_last_bit(place: Place) -> None:
    fill(place)
    before = {c["chunk_id"]: c["vector"] for s in place.state().values() for c in s[1]}
    move(place)
    for chunk_id in before:
        (found,) = place.stores["other"].get_chunks(SHELF, [chunk_id], include_vector=True)
        assert found.vector is not None
        assert np.array_equal(found.vector, np.array(before[chunk_id], np.float32))
