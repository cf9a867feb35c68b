"""Sources in the ledger: when they are due, who may work on them, and what goes with them."""

import time

import pytest

from callslip.errors import CollectionNotFound, LeaseLost, SourceError, SourceExists
from callslip.stores.ledger import ItemRecord, Ledger, Run, SourceRecord
from callslip.stores.ledger.sources.sources import RESEND_SECONDS
from callslip.stores.records import CollectionSchema, VectorSpec

pytest_plugins = ["ledger_fixtures"]


def add(ledger: Ledger, name: str = "src", **more: object) -> SourceRecord:
    """A source of the collection."""
    return ledger.sources.add("papers", name, "file:///srv", **more)  # type: ignore[arg-type]


def claim(ledger: Ledger, source: SourceRecord, seconds: float = 30) -> Run:
    """The right to work on it."""
    run = ledger.source_runs.claim(source.source_id, lease_seconds=seconds)
    assert run is not None
    return run


def again(ledger: Ledger, source: SourceRecord) -> SourceRecord:
    """The source as it stands."""
    found = ledger.sources.find(source.collection, source.name, tenant=source.tenant)
    assert found is not None
    return found


@pytest.fixture
def passing(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Seconds that have passed beyond those of the clock."""
    passed = [0.0]
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + passed[0])
    return passed


def test_the_same_source_again_is_the_same_and_another_one_is_refused(ledger: Ledger) -> None:
    first = add(ledger, properties={"doc_type": "law"}, every_seconds=60.0)
    assert add(ledger, properties={"doc_type": "law"}, every_seconds=60.0) == first
    with pytest.raises(SourceExists, match="file:///srv"):
        add(ledger, every_seconds=60.0)
    assert add(ledger, tenant="other").source_id != first.source_id
    assert [source.name for source in ledger.sources.all()] == ["src", "src"]


def test_a_source_needs_a_collection(ledger: Ledger) -> None:
    with pytest.raises(CollectionNotFound):
        ledger.sources.add("nowhere", "src", "file:///srv")


def test_a_new_source_is_due_once_and_sent_again_when_nobody_took_it(
    ledger: Ledger, passing: list[float]
) -> None:
    source = add(ledger)
    assert ledger.sources.due() == [source.source_id]
    assert ledger.sources.due() == []
    passing[0] += RESEND_SECONDS + 1
    assert ledger.sources.due() == [source.source_id]


def test_one_process_at_a_time_works_on_a_source(ledger: Ledger, passing: list[float]) -> None:
    source = add(ledger)
    dead = claim(ledger, source)
    assert ledger.source_runs.claim(source.source_id, lease_seconds=30) is None
    assert ledger.sources.due() == []
    passing[0] += 31
    assert ledger.sources.due() == [source.source_id], "it is sent at the end of the lease"
    assert ledger.sources.due() == []
    alive = claim(ledger, source)
    assert alive.number == dead.number == 1, "the run goes on"
    for late in (
        lambda: ledger.source_runs.renew(dead),
        lambda: ledger.source_runs.note(dead, ItemRecord("a", "new")),
        lambda: ledger.source_runs.unchanged(dead, ["a"]),
        lambda: ledger.source_runs.end(dead),
    ):
        with pytest.raises(LeaseLost):
            late()
    ledger.source_runs.end(alive)


def test_a_source_with_an_interval_is_due_again_and_one_without_when_asked(
    ledger: Ledger, passing: list[float]
) -> None:
    often, once = add(ledger, "often", every_seconds=600.0), add(ledger, "once")
    for source in (often, once):
        ledger.source_runs.end(claim(ledger, source))
    assert ledger.sources.due() == []
    passing[0] += 601
    assert ledger.sources.due() == [often.source_id]
    ledger.sources.ask(once.source_id, delete_missing=True, force=True)
    assert ledger.sources.due() == [once.source_id]
    run = claim(ledger, once)
    assert (run.number, run.delete_missing, run.force) == (2, True, True)
    ledger.source_runs.end(run)
    ledger.sources.ask(once.source_id)
    assert not claim(ledger, once).force, "what was asked for held for one run"


def test_a_source_that_is_asked_for_during_a_run_is_looked_at_again(ledger: Ledger) -> None:
    source = add(ledger)
    run = claim(ledger, source)
    ledger.sources.ask(source.source_id, delete_missing=True)
    ledger.source_runs.end(run)
    assert ledger.sources.due() == [source.source_id]
    assert claim(ledger, source).delete_missing


def test_a_run_counts_its_files_and_tells_why_it_ended(ledger: Ledger) -> None:
    source = add(ledger)
    run = claim(ledger, source)
    for path, outcome in (("a", "new"), ("b", "new"), ("c", "failed")):
        document_id = None if outcome == "failed" else path * 32
        ledger.source_runs.note(run, ItemRecord(path, outcome, document_id))  # type: ignore[arg-type]
    ledger.source_runs.pause(run)
    run = claim(ledger, source)
    assert ledger.source_runs.end(run, SourceError("no folder")) == {"new": 2, "failed": 1}
    found = again(ledger, source)
    assert found.failure is not None
    assert (found.failure.detail, found.began_at) == ("no folder", None)
    ledger.sources.ask(source.source_id)
    run = claim(ledger, source)
    ledger.source_runs.unchanged(run, ["a", "c"])
    assert ledger.source_runs.counts(run) == {"unchanged": 1, "failed": 1, "missing": 1}
    assert [item.path for item in ledger.source_runs.unseen(run)] == ["b"]
    assert ledger.sources.seen(again(ledger, source)) == 2


def test_what_was_deleted_or_never_came_in_is_forgotten_by_the_next_run(ledger: Ledger) -> None:
    source = add(ledger)
    run = claim(ledger, source)
    ledger.source_runs.note(run, ItemRecord("deleted", "deleted", "d" * 32))
    ledger.source_runs.note(run, ItemRecord("failed", "failed"))
    ledger.source_runs.end(run)
    for _ in range(2):
        ledger.sources.ask(source.source_id)
        run = claim(ledger, source)
        ledger.source_runs.end(run)
    assert ledger.source_runs.known(run, ["deleted", "failed"]) == {}


def test_sources_go_with_their_collection_and_their_tenant(ledger: Ledger) -> None:
    ledger.collections.create(
        CollectionSchema("rooms", VectorSpec(4), tenants=True),
        store="memory",
        embedder="tiny",
        analyzer="1",
    )
    add(ledger)
    for tenant in ("a", "b"):
        ledger.tenants.create("rooms", tenant)
        ledger.sources.add("rooms", "src", "file:///srv", tenant=tenant)
    run = claim(ledger, ledger.sources.all()[1])
    ledger.source_runs.note(run, ItemRecord("x", "new", "x" * 32))
    ledger.tenants.delete("rooms", "a")
    assert [(s.collection, s.tenant) for s in ledger.sources.all()] == [
        ("papers", ""),
        ("rooms", "b"),
    ]
    ledger.collections.delete("papers")
    assert [s.tenant for s in ledger.sources.all()] == ["b"]
    ledger.sources.remove(ledger.sources.all()[0].source_id)
    assert ledger.sources.all() == []


def test_workers_that_are_known_to_be_gone_hold_no_source(ledger: Ledger) -> None:
    source = add(ledger)
    claim(ledger, source)
    assert ledger.source_runs.expire_all() == 1
    assert ledger.sources.due() == [source.source_id]
    assert claim(ledger, source).number == 1
