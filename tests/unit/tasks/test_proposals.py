"""Runs for proposals on the scheduler: what is due, bounded in time, and after a kill."""

import math
import subprocess
import time
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from context_parts import LoneBroker, context_of, working
from ledger_moves import publish, store_chunks, submission
from memory_store import MemoryStore

from callslip.config.settings import EmbedderSettings, ProposalsSettings, Settings
from callslip.errors import StoreDown
from callslip.retrieval.tuning.proposing import Proposed
from callslip.stores.ledger import Ledger
from callslip.stores.records import CollectionSchema, VectorSpec
from callslip.tasks import proposals
from callslip.workers.app import make_app

ALWAYS = ProposalsSettings(tune_days=1e-9, discover_days=1e-9)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    made = Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")
    made.create()
    for name in ("papers", "laws", "empty"):
        schema = CollectionSchema(name, VectorSpec(4), tenants=name == "laws")
        made.collections.create(schema, store="memory", embedder="tiny", analyzer="1")
    publish(made, "one", "abc")
    yield made
    made.close()


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """The commands that were run; each ends at once."""
    commands: list[tuple[str, ...]] = []

    class Child(subprocess.Popen[str]):
        def __init__(self, command: Sequence[str], **more: Any) -> None:
            commands.append(tuple(command)[3:-1])
            super().__init__(("true",), **more)

    monkeypatch.setattr("callslip.tasks.shared.children.subprocess.Popen", Child)
    return commands


def context(ledger: Ledger, settings: ProposalsSettings = ALWAYS, **more: Any) -> Any:
    parts = {"ledger": ledger, "broker": LoneBroker()}
    return context_of(Settings(proposals=settings, **more), MemoryStore(), **parts)


def test_what_is_due_is_run_for_each_collection_with_documents(
    ledger: Ledger, ran: list[tuple[str, ...]]
) -> None:
    with working(context(ledger)):
        proposals.propose()
    assert ran == [("proposals", "run", kind, "-c", "papers") for kind in ("ranking", "facets")]
    with working(context(ledger, ProposalsSettings())):
        proposals.propose()  # the first is due a week after the collection was made
    with working(context(ledger, ProposalsSettings(tune_days=0, discover_days=0))):
        proposals.propose()
    assert len(ran) == 2
    with working(context(ledger, embedder=EmbedderSettings(kind="none"))):
        proposals.propose()
    assert ran[2:] == [("proposals", "run", "ranking", "-c", "papers")]


def test_two_schedulers_run_it_once(ledger: Ledger, ran: list[tuple[str, ...]]) -> None:
    class Taken(LoneBroker):
        def acquire(self) -> bool:
            return False

    busy = context_of(Settings(proposals=ALWAYS), MemoryStore(), ledger=ledger, broker=Taken())
    with working(busy):
        proposals.propose()
    assert ran == []


def test_a_run_that_takes_too_long_is_ended_and_recorded(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    children: list[subprocess.Popen[str]] = []

    class Slow(subprocess.Popen[str]):
        def __init__(self, command: Sequence[str], **more: Any) -> None:
            ledger.proposals.begin("ranking", "papers", "", 60)
            super().__init__(("sleep", "60"), **more)
            children.append(self)

    monkeypatch.setattr("callslip.tasks.shared.children.subprocess.Popen", Slow)
    started = time.monotonic()
    settings = ProposalsSettings(tune_days=1e-9, discover_days=0, run_minutes=0.005)
    with working(context(ledger, settings)):
        proposals.propose()
    assert time.monotonic() - started < 20
    assert [child.poll() is not None for child in children] == [True]
    (row,) = ledger.proposals.find("papers")
    assert (row.state, row.reason.partition(":")[0]) == ("failed", "time-out")


def test_a_run_that_was_killed_is_due_when_its_lease_is_over(
    ledger: Ledger, ran: list[tuple[str, ...]]
) -> None:
    ledger.proposals.begin("ranking", "papers", "", 0.05)
    time.sleep(0.1)
    settings = ProposalsSettings(discover_days=0)
    with working(context(ledger, settings)):
        proposals.propose()
    assert ran == [("proposals", "run", "ranking", "-c", "papers")]


def test_a_run_records_what_it_finds_or_why_it_failed(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = Proposed({"sampled": 9}, {"facets": ["author"]}, {"facets": None})
    monkeypatch.setattr(proposals, "further_facets", lambda *_: found)
    assert proposals.look(context(ledger), "facets", "papers") == "waiting"
    assert proposals.look(context(ledger), "ranking", "papers") == "nothing"
    for error in (StoreDown("it does not answer"), ValueError("a text")):

        def fails(*_: object, error: Exception = error) -> Proposed:
            raise error

        monkeypatch.setattr(proposals, "further_facets", fails)
        with pytest.raises(type(error)):
            proposals.look(context(ledger), "facets", "papers")
    failed = ledger.proposals.find("papers", states=["failed"])
    assert {row.reason for row in failed} == {
        "store-down: it does not answer",
        "internal-error: unexpected ValueError",
    }
    assert [p.state for p in ledger.proposals.find("papers", states=["waiting"])] == ["waiting"]


def test_the_largest_tenant_stands_for_a_collection_with_tenants(ledger: Ledger) -> None:
    assert ledger.tenants.largest("laws") is None
    for n, tenant in enumerate(("south", "north", "north")):
        new = submission(f"text {n}", f"{n}.txt")
        item = ledger.documents.submit("laws", new, uuid.uuid4().hex, tenant=tenant)
        ledger.fair_queue.take(math.inf, document_id=item.document_id)
        chunks = [f"c{n}"]
        ledger.leases.go_live(store_chunks(ledger, item, chunks), chunks, {"chunks": 1})
    assert ledger.tenants.largest("laws") == "north"
    found = Proposed({}, {}, {}, "none")
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(proposals, "further_facets", lambda *_: found)
        proposals.look(context(ledger), "facets", "laws")
    (row,) = ledger.proposals.find("laws")
    assert (row.tenant, row.state) == ("north", "nothing")


@pytest.mark.long
def test_the_command_of_a_run_works_on_the_ledger_of_the_settings(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CALLSLIP_DATA_DIR", str(tmp_path))
    settings = ProposalsSettings(tune_days=1e-9, discover_days=0)
    with working(context(ledger, settings)):
        proposals.propose()
    (row,) = ledger.proposals.find("papers")
    assert (row.kind, row.state) == ("ranking", "nothing")
    assert row.reason.startswith("too-few-questions")


def test_the_scheduler_looks_for_what_is_due(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path, broker={"url": "redis://127.0.0.1:1"})  # type: ignore[arg-type]
    app = make_app("maintenance", context_of(settings, MemoryStore()))
    entry = app.conf.beat_schedule["propose"]
    assert entry["task"] == proposals.propose.name
    assert entry["schedule"] == proposals.LOOK_SECONDS
