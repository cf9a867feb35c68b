"""Moving a collection to another store: in use, after a kill, and when something differs."""

import random
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ledger_moves import OVER, claim, taken
from long_forms import ALL, kill_points
from moving import (
    COLLECTION,
    NEVER,
    Fate,
    Killed,
    OtherStore,
    Site,
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
from callslip.stores.audit.orphans import find_misplaced_collections
from callslip.stores.ledger import STEPS, Claim, Refusal
from callslip.stores.ledger.documents import progress
from callslip.stores.properties.filters import parse
from callslip.stores.records import BatchOutcome, ChunkRecord, RetrieverHit, moment
from callslip.stores.transfer import Report, migrate, migration, move_lease
from callslip.stores.transfer.move_lease import MoveLeaseKeeper


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """An installation in which counts that differ are soon believed."""
    monkeypatch.setattr(migration, "SETTLE_SECONDS", 0.5)
    made = Site(tmp_path)
    yield made
    made.ledger.close()


def move(site: Site, to: str = "other", **more: Any) -> Report:
    """Migrate the collection."""
    given: dict[str, Any] = {"keep": False, "grace": 0.0, "progress": silent}
    return migrate(site.backend, COLLECTION, to, **given | more)


@pytest.mark.parametrize("tenants", [False, True])
def test_a_collection_is_the_same_in_another_store(site: Site, tenants: bool) -> None:
    fill(site, tenants=tenants)
    before = site.state()
    report = move(site)
    assert (report.documents, report.chunks, report.left_out) == (
        (8, 20, 1) if tenants else (4, 10, 1)
    )
    assert site.ledger.collections.get(COLLECTION).store == "other"
    assert site.state() == before
    assert site.stores["memory"].collections() == []
    assert site.stores["other"].tenants(COLLECTION) == site.ledger.tenants.all(COLLECTION)
    assert all(retriever["overlap@10"] == 1 for retriever in report.probes.values())
    assert report.probes["vector"]["recall@10"] == [1, 1]
    assert report.probes["vector"]["itself_first"] == [1, 1]
    assert site.ledger.moves.underway(COLLECTION) is None
    assert not site.ledger.moves.has_copies(COLLECTION, "other")


def test_chunks_of_an_earlier_release_get_their_times_from_the_ledger(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    def undated(*of: Any) -> list[ChunkRecord]:
        return [replace(c, created_at="", updated_at="", pretty="") for c in chunks_of(*of)]

    monkeypatch.setattr("moving.chunks_of", undated)
    site.make()
    site.publish("a", "alpha beta")
    item = site.publish("a", "alpha gamma")
    move(site)
    times = [
        moment(each.created_at)
        for each in (
            site.ledger.documents.get(item.document_id),
            site.ledger.documents.version(item.document_id, 1),
            site.ledger.documents.version(item.document_id, 2),
        )
    ]
    ids = sorted(site.ledger.chunks.live_ids(item.document_id))
    chunks = site.stores["other"].get_chunks(COLLECTION, ids)
    assert {(c.body, c.created_at, c.updated_at) for c in chunks} == {
        ("alpha ☃\n", times[0], times[1]),
        ("gamma ☃\n", times[0], times[2]),
    }
    assert site.stores["other"].count(COLLECTION, parse({"updated_at >": times[1]}, None)) == 1


def test_what_is_not_live_stays_behind_and_is_upserted_into_the_new_store(site: Site) -> None:
    site.make()
    site.publish("a", "alpha beta")
    item = site.submit("a", "beta gamma")
    late = site.submit("b", "delta")
    for step in STEPS[:-1]:
        site.do(item, step)
        site.do(late, step)
    assert move(site).left_out == 1
    assert site.upsert(item, "beta gamma")
    assert site.upsert(late, "delta")
    assert {c.split("-")[1] for c in site.held("other")} == {"alpha", "beta", "gamma", "delta"}
    assert len(site.state()) == 2


def test_a_kept_copy_goes_out_of_date_and_is_made_anew_on_the_way_back(site: Site) -> None:
    fill(site)
    move(site, keep=True)
    assert site.stores["memory"].count(COLLECTION) == 12, "a chunk of an older version too"
    assert find_misplaced_collections(site.ledger, site.stores) == []
    assert not site.ledger.inventory.moving(COLLECTION)
    gone = site.ledger.documents.id_of(COLLECTION, "two")
    assert gone
    site.ledger.documents.delete(gone)
    site.stores["other"].delete_documents(COLLECTION, [gone])
    site.publish("one", "quite other")
    site.publish("new", "a word")
    before = site.state()
    move(site, "memory")
    assert site.state() == before
    assert site.stores["memory"].count(COLLECTION) == sum(len(s[1]) for s in before.values())
    site.stores["other"].ensure_schema(site.ledger.collections.get(COLLECTION).schema)
    found = find_misplaced_collections(site.ledger, site.stores)
    assert [finding.store for finding in found] == ["other"], "no move left a copy there"
    move(site, keep=True)
    move(site, "memory", keep=True)
    assert find_misplaced_collections(site.ledger, site.stores) == []


def test_the_store_that_it_is_kept_in_is_no_place_to_move_to(site: Site) -> None:
    fill(site)
    with pytest.raises(Conflict, match="is in store 'memory' already"):
        move(site, "memory")
    with pytest.raises(CollectionNotFound):
        migrate(site.backend, "nowhere", "other", keep=False, grace=0, progress=silent)


def test_a_foreign_collection_of_that_name_is_in_the_way(site: Site, tmp_path: Path) -> None:
    fill(site)
    (tmp_path / "else").mkdir()
    elsewhere = Site(tmp_path / "else", site.stores)
    elsewhere.make(store="other")
    elsewhere.publish("mine", "foreign words")
    before = elsewhere.state()
    with pytest.raises(Conflict, match="holds another collection"):
        move(site)
    assert elsewhere.state() == before
    assert site.ledger.collections.get(COLLECTION).store == "memory"
    elsewhere.ledger.close()


def test_a_store_that_is_down_is_named_and_nothing_is_begun(site: Site) -> None:
    class Down(OtherStore):
        def ping(self) -> None:
            raise StoreDown("no answer")

    fill(site)
    site.stores["other"] = Down()  # type: ignore[index]
    with pytest.raises(StoreDown):
        move(site)
    assert site.ledger.moves.underway(COLLECTION) is None


def test_an_object_that_the_target_refuses_is_named(site: Site) -> None:
    class Choosy(OtherStore):
        def batch_upsert_chunks(
            self, collection: str, chunks: Sequence[ChunkRecord], *, tenant: str = ""
        ) -> BatchOutcome:
            return BatchOutcome((), {c.chunk_id: "a property is too long" for c in chunks})

    fill(site)
    site.stores["other"] = Choosy()  # type: ignore[index]
    with pytest.raises(MoveError, match=r"refused .* a property is too long"):
        move(site)
    assert site.ledger.collections.get(COLLECTION).store == "memory"


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

    def vector_query(self, *given: Any, **more: Any) -> list[RetrieverHit]:
        return super().vector_query(*given, **more)[::-1][:2]


class Leaking(OtherStore):
    """Counts what nobody stored."""

    def count(self, *given: Any, **more: Any) -> int:
        return super().count(*given, **more) + 1


def test_a_document_that_is_deleted_between_two_queries_of_a_probe_is_no_difference(
    site: Site,
) -> None:
    fill(site)
    for n in range(6):
        site.publish(f"{n}", f"alpha beta word{n}")
    other = site.stores["other"]
    sound = other.keyword_query

    def query(*given: Any, **more: Any) -> list[RetrieverHit]:
        if len(ids := site.ledger.transcripts.ids(COLLECTION)) == 10:
            site.ledger.documents.delete(ids[-1][0])
        return sound(*given, **more)

    other.keyword_query = query  # type: ignore[method-assign]
    report = move(site)
    assert report.probes["keyword"]["probes"] >= 1
    assert report.probes["keyword"]["same_first"] == 1
    assert report.probes["keyword"]["overlap@10"] == 1


@pytest.mark.long
@pytest.mark.parametrize("kind", [Forgetful, Wrong, Confused, Leaking])
def test_a_target_that_differs_is_not_switched_to(site: Site, kind: type[OtherStore]) -> None:
    fill(site)
    sound, site.stores["other"] = site.stores["other"], kind()  # type: ignore[index]
    before = site.state()
    with pytest.raises(CopyDiffers):
        move(site)
    assert site.ledger.collections.get(COLLECTION).store == "memory"
    assert site.state() == before
    site.publish("after", "the pause is over")
    before = site.state()
    site.stores["other"] = sound  # type: ignore[index]
    move(site)
    assert site.state() == before


def test_upserts_wait_while_the_last_differences_are_copied_and_fail_nothing(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.make()
    item = site.submit("a", "alpha")
    for step in STEPS[:-1]:
        site.do(item, step)
    monkeypatch.setattr(progress, "PAUSE_SECONDS", 0.3)
    lease = site.ledger.moves.take(COLLECTION, "other", lease_seconds=0.4)
    site.ledger.moves.pause(lease)
    refused = claim(site.ledger, item, "upsert")
    assert refused == Refusal("leased")
    step = site.ledger.documents.get(item.document_id).steps[5]
    assert step.failure
    assert "is being moved" in step.failure.detail
    assert (step.state, step.attempts, step.crashes) == ("pending", 0, 0)
    sweep: dict[str, Any] = {"idle": False, "resend_seconds": 60, "max_crashes": 3}
    assert site.ledger.sweep.stuck(**sweep) == []
    time.sleep(0.5)
    (stuck,) = site.ledger.sweep.stuck(**sweep)
    assert (stuck.document_id, stuck.step) == (item.document_id, "upsert")
    assert isinstance(claim(site.ledger, item, "upsert"), Claim), "the mover was killed"
    with pytest.raises(LeaseLost):
        site.ledger.moves.renew(lease)


def test_two_movers_do_not_move_at_once(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(site)
    lease = site.ledger.moves.take(COLLECTION, "other", lease_seconds=60)
    with monkeypatch.context() as patient:
        patient.setattr(move_lease, "LEASE_SECONDS", 0.3)
        with pytest.raises(Conflict, match="is being moved by another process"):
            move(site)
    site.ledger.moves.release(lease)
    move(site)
    assert site.ledger.collections.get(COLLECTION).store == "other"


def test_a_mover_that_waited_for_another_finds_the_collection_moved(site: Site) -> None:
    fill(site)
    before = site.state()
    second: list[Exception] = []

    def too_late() -> None:
        try:
            move(site)
        except Conflict as error:
            second.append(error)

    other = threading.Thread(target=too_late)

    def first(_total: int, _chunks: int) -> None:
        if not other.ident:
            other.start()
            time.sleep(0.5)

    move(site, progress=first)
    other.join(30)
    assert [str(error) for error in second] == ["collection 'papers' is in store 'other' already"]
    assert site.state() == before
    assert site.ledger.moves.underway(COLLECTION) is None


def test_one_who_waited_for_a_mover_that_died_before_it_cleared_clears(site: Site) -> None:
    fill(site)
    before = site.state()

    def killed(reply: str) -> None:
        if reply.startswith("Switched"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        move(site, phase=killed)
    assert site.stores["memory"].collections() == [COLLECTION]
    movers = [threading.Thread(target=lambda: quietly_moves(site)) for _ in range(3)]
    for mover in movers:
        mover.start()
    for mover in movers:
        mover.join(60)
    assert site.state() == before
    assert site.stores["memory"].collections() == []
    assert site.ledger.moves.underway(COLLECTION) is None


def quietly_moves(site: Site) -> None:
    """Move it, or find it moved."""
    with suppress(Conflict):
        move(site)


def test_a_mover_that_stood_still_before_it_cleared_drops_nothing(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another one may have moved the collection back to where its copy was left."""
    fill(site)
    before = site.state()

    def back(reply: str) -> None:
        if reply.startswith("Switched"):
            run_out(site)
            move(site, "memory")

    monkeypatch.setattr(MoveLeaseKeeper, "_renew_once", lambda *_: [None])
    with pytest.raises(LeaseLost):
        move(site, phase=back)
    assert site.ledger.collections.get(COLLECTION).store == "memory"
    assert site.state() == before


def test_a_move_that_was_broken_off_is_given_up_by_moving_to_where_it_is(site: Site) -> None:
    fill(site)

    def killed(_total: int, chunks: int) -> None:
        if chunks:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        move(site, progress=killed)
    with pytest.raises(Conflict, match="is in store 'memory' already"):
        move(site, "memory")
    assert site.stores["other"].collections() == []
    assert site.ledger.moves.underway(COLLECTION) is None
    assert not site.ledger.moves.has_copies(COLLECTION, "other")


def test_a_mover_that_takes_long_renews_its_lease(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(site)
    monkeypatch.setattr(move_lease, "LEASE_SECONDS", 3.0)

    def until() -> float:
        underway = site.ledger.moves.underway(COLLECTION)
        assert underway
        return underway[2]

    def slow(_total: int, _chunks: int) -> None:
        begun = until()
        while until() == begun:
            time.sleep(0.05)

    move(site, progress=slow)
    assert site.ledger.collections.get(COLLECTION).store == "other"


def test_a_mover_that_stood_still_for_too_long_switches_nothing(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(site)
    monkeypatch.setattr(MoveLeaseKeeper, "_renew_once", lambda *_: [None])
    with pytest.raises(LeaseLost, match="stood still"):
        move(site, progress=lambda _total, _chunks: run_out(site))
    assert site.ledger.collections.get(COLLECTION).store == "memory"


def test_a_worker_that_stood_still_during_the_switch_cannot_finish_in_the_old_store(
    site: Site,
) -> None:
    fill(site)
    item = site.submit("one", "quite new")
    for step in STEPS[:-1]:
        site.do(item, step)
    late = taken(site.ledger, item, "upsert", lease=OVER)
    chunks = chunks_of(item.document_id, "quite new", {})
    site.ledger.chunks.expect(late, {c.chunk_id: "x" for c in chunks})
    move(site)
    with pytest.raises(LeaseLost):
        site.ledger.leases.go_live(late, [c.chunk_id for c in chunks], {})
    assert site.upsert(item, "quite new")
    assert len(site.state()[item.document_id][1]) == 2


def test_a_move_waits_for_an_upsert_that_runs(site: Site) -> None:
    fill(site)
    item = site.submit("one", "alpha new")
    for step in STEPS[:-1]:
        site.do(item, step)
    running = taken(site.ledger, item, "upsert")
    chunks = chunks_of(item.document_id, "alpha new", {"year": 7})
    mover = threading.Thread(target=move, args=(site,))
    mover.start()
    time.sleep(0.5)
    assert site.ledger.collections.get(COLLECTION).store == "memory"
    site.ledger.chunks.expect(running, {c.chunk_id: "x" for c in chunks})
    site.stores["memory"].batch_upsert_chunks(COLLECTION, chunks)
    site.ledger.leases.go_live(running, [c.chunk_id for c in chunks], {})
    mover.join(30)
    assert site.ledger.collections.get(COLLECTION).store == "other"
    held = site.state()[item.document_id][1]
    assert [c["properties"] for c in held] == [{"year": 7}] * 2


def test_a_collection_that_is_deleted_meanwhile_is_not_switched(site: Site) -> None:
    fill(site)

    def deleted(_total: int, _chunks: int) -> None:
        site.ledger.collections.delete(COLLECTION)

    with pytest.raises(CollectionNotFound):
        move(site, progress=deleted)


def test_a_move_to_yet_another_store_takes_back_what_the_first_one_copied(site: Site) -> None:
    class Third(OtherStore):
        kind = "third"

    fill(site)
    site.stores["third"] = Third()  # type: ignore[index]

    def killed(_total: int, chunks: int) -> None:
        if chunks:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        move(site, progress=killed)
    assert site.stores["other"].count(COLLECTION) > 0
    before = site.state()
    move(site, "third")
    assert site.stores["other"].collections() == []
    assert site.state() == before


# While it is used


@pytest.mark.long
def test_documents_that_come_change_and_go_during_a_move_are_in_the_new_store_as_they_are(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ingest, delete, remove and prune in threads, as workers do, against a move."""
    monkeypatch.setattr(migration, "FEW", 2)
    monkeypatch.setattr(progress, "PAUSE_SECONDS", 0.02)
    site.make()
    for n in range(40):
        site.publish(f"doc{n}", f"word{n} common more{n}")
    stop, faults, done = threading.Event(), [], []

    def works(seed: int) -> None:
        chance = random.Random(seed)
        try:
            while not stop.is_set():
                name = f"doc{chance.randrange(12)}-{seed}" if chance.random() < 0.5 else ""
                name = name or f"doc{chance.randrange(20) * 2 + seed}"
                if chance.random() < 0.3:
                    remove(site, name)
                else:
                    rework(site, name, f"word{chance.random()} common", stop)
                done.append(name)
        except Exception as error:
            faults.append(error)

    def searches() -> None:
        try:
            while not stop.is_set():
                store = site.stores[site.ledger.collections.get(COLLECTION).store]
                assert store.count(COLLECTION) > 0
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
            move(site, to, grace=0.2)
            assert site.ledger.collections.get(COLLECTION).store == to
            if to == "other" and n and len(done) > 20:
                break
    finally:
        stop.set()
        for thread in threads:
            thread.join(30)
    assert faults == []
    assert len(done) > 20
    for document_id in site.ledger.collections.document_ids(COLLECTION):
        sweep_document(site, document_id)
    wanted = {c["chunk_id"] for state in site.state().values() for c in state[1]}
    ledger = {c for state in site.state().values() for c in state[0].chunks}
    assert wanted == ledger
    assert site.held("other") == ledger
    assert site.stores["memory"].collections() == []


def rework(site: Site, name: str, text: str, stop: threading.Event) -> None:
    """Take a new version to live as a worker does, trying again while the collection moves."""
    item = site.submit(name, text)
    for step in STEPS[:-1]:
        site.do(item, step)
    while not site.upsert(item, text):
        if stop.is_set():
            return
        time.sleep(0.02)
    sweep_document(site, item.document_id)


def sweep_document(site: Site, document_id: str) -> None:
    """Remove or prune as the maintenance worker does, in every store that holds the collection."""
    ledger = site.ledger
    document = ledger.documents.get(document_id)
    if document.deleted_at is not None:
        if not ledger.sweep.busy(document_id):
            for store in holding(site):
                quietly(lambda store=store: store.delete_documents(COLLECTION, [document_id]))
            ledger.chunks.forget(document_id)
            ledger.documents.removed(document_id, {})
        return
    ended = ledger.chunks.end(document_id)
    for store in holding(site):
        quietly(lambda store=store: store.delete_chunks(COLLECTION, ended))
    ledger.chunks.forget(document_id, ended)


def remove(site: Site, name: str) -> None:
    """Delete a document and what it left."""
    if document_id := site.ledger.documents.id_of(COLLECTION, name):
        site.ledger.documents.delete(document_id)
        sweep_document(site, document_id)


def holding(site: Site) -> list[Any]:
    """The stores that have the collection."""
    return [store for store in site.stores.values() if COLLECTION in store.collections()]


def quietly(call: Callable[[], None]) -> None:
    """The sweep comes back to a store that lost the collection in between."""
    with suppress(CollectionNotFound):
        call()


# Killed


def test_a_move_that_is_killed_anywhere_is_finished_by_the_same_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migration, "SETTLE_SECONDS", 0.0)
    monkeypatch.setattr(
        MoveLeaseKeeper, "_renew_once", lambda *_: [None]
    )  # else it would count at random
    (tmp_path / "first").mkdir()
    first = Site(tmp_path / "first")
    first.make()
    first.publish("one", "alpha beta")
    first.publish("two", "gamma")
    state = first.state()
    first.ledger.close()

    def move_with(fate: Fate, folder: Path, *, publishes: bool) -> None:
        before = state
        shutil.copytree(tmp_path / "first", folder)
        site = Site(folder, deepcopy(first.stores))
        killed = False
        try:
            migrate(mortal(site, fate), COLLECTION, "other", keep=False, grace=0, progress=silent)
        except Killed:
            killed = True
            run_out(site)
        if site.ledger.moves.underway(COLLECTION) or killed:
            if publishes and site.ledger.collections.get(COLLECTION).store == "memory":
                site.publish("three", "delta")
                before = site.state()
            try:
                move(site)
            except Conflict:  # it was killed when all was done
                assert site.ledger.moves.underway(COLLECTION) is None
        assert site.ledger.collections.get(COLLECTION).store == "other", folder
        assert site.state() == before, folder
        assert site.stores["memory"].collections() == [], folder
        assert site.ledger.moves.underway(COLLECTION) is None
        site.ledger.close()

    spared = Fate(NEVER)
    move_with(spared, tmp_path / "spared", publishes=False)
    calls = NEVER - spared.left
    for number, point in enumerate(kill_points(calls)):
        move_with(Fate(point), tmp_path / str(point), publishes=number % (7 if ALL else 2) == 0)
    assert calls > 40


def test_vectors_are_the_same_to_the_last_bit(site: Site) -> None:
    fill(site)
    before = {c["chunk_id"]: c["vector"] for s in site.state().values() for c in s[1]}
    move(site)
    for chunk_id in before:
        (found,) = site.stores["other"].get_chunks(COLLECTION, [chunk_id], include_vector=True)
        assert found.vector is not None
        assert np.array_equal(found.vector, np.array(before[chunk_id], np.float32))
