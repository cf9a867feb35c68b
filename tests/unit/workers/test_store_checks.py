"""What probes of a store lead to: a restart, an audit, a report."""

import json
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from context_parts import LoneBroker, context_of, working
from ledger_moves import publish
from memory_store import MemoryStore

from callslip.config.settings import Settings
from callslip.errors import KeywordsDown, StoreDown, StoreReadOnly
from callslip.stores.blobs import Blobs
from callslip.stores.ledger import Ledger
from callslip.stores.records import ChunkRecord, CollectionSchema, DocumentRecord, VectorSpec
from callslip.tasks import audit
from callslip.tasks.composition import Context
from callslip.tasks.shared import store_health
from callslip.tasks.shared.store_health import Health
from callslip.workers import store_checks
from callslip.workers.store_checks import (
    DOUBTS,
    DURABLE,
    RESTART_AFTER,
    Doubt,
    audit_doubts,
    check_store,
    doubt_of,
    restart_reason,
)
from callslip.workers.supervision.runfile import Process, RunFile

COLLECTION = CollectionSchema("papers", VectorSpec(1))


class HashBroker(LoneBroker):
    """A broker with hashes and values, whose locks are always free."""

    def __init__(self) -> None:
        self.hashes: dict[str, dict[str, Any]] = {}
        self.values: dict[str, str] = {}

    def hget(self, name: str, key: str) -> Any:
        return self.hashes.get(name, {}).get(key)

    def hset(self, name: str, key: str, value: Any) -> None:
        self.hashes.setdefault(name, {})[key] = value

    def hdel(self, name: str, key: str) -> None:
        self.hashes.get(name, {}).pop(key, None)

    def hexists(self, name: str, key: str) -> bool:
        return key in self.hashes.get(name, {})

    def hgetall(self, name: str) -> Any:
        return {key.encode(): value for key, value in self.hashes.get(name, {}).items()}

    def set(self, name: str, value: str, **_: object) -> None:
        self.values[name] = value

    def getdel(self, name: str) -> bytes | None:
        value = self.values.pop(name, None)
        return None if value is None else value.encode()


class Probed(MemoryStore):
    """A store whose probe raises what it was told to."""

    error: StoreDown | None = None

    def probe(self) -> None:
        if self.error:
            raise self.error


@pytest.fixture
def setup(tmp_path: Path) -> Iterator[Context]:
    """A context with a ledger, a broker and a store with the collection `papers`."""
    with closing(Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")) as ledger:
        ledger.create()
        ledger.collections.create(COLLECTION, store="memory", embedder="", analyzer="")
        store = Probed()
        store.ensure_schema(COLLECTION)
        parts = {"ledger": ledger, "blobs": Blobs(str(tmp_path / "blobs")), "broker": HashBroker()}
        settings = Settings(data_dir=tmp_path)
        with working(context_of(settings, store, **parts)) as context:
            yield context


def broker_of(context: Context) -> HashBroker:
    broker: Any = context.broker
    assert isinstance(broker, HashBroker)
    return broker


def store_of(context: Context) -> Probed:
    store = context.store_of("memory")
    assert isinstance(store, Probed)
    return store


def health_of(context: Context) -> Health:
    health = store_health.read(context.broker, "memory")
    assert health
    return health


def runs_since(context: Context, started: float) -> None:
    """Record that `callslip up` runs the store, in a process that was started then."""
    parts = {"memory": Process(1, started)}
    RunFile(Process(1, 1.0), "", "", None, parts).write(context.settings.data_dir)


def test_a_store_that_fails_several_probes_is_not_ready_and_restarted_once(setup: Context) -> None:
    check_store("memory")
    assert store_health.faults(setup.broker, 10) == {}
    store_of(setup).error = StoreDown("no answer")
    for _ in range(RESTART_AFTER):
        assert store_health.take_restart(setup.broker, "memory") == ""
        check_store("memory")
    assert "no answer" in store_health.faults(setup.broker, 10)["memory"]
    assert "no answer" in store_health.take_restart(setup.broker, "memory")
    check_store("memory")
    assert store_health.take_restart(setup.broker, "memory") == ""
    store_of(setup).error = None
    check_store("memory")
    assert store_health.faults(setup.broker, 10) == {}


def test_a_keyword_service_that_is_away_is_reported_and_restarts_no_store(
    setup: Context,
) -> None:
    store_of(setup).error = KeywordsDown("the service is away")
    for _ in range(RESTART_AFTER + 1):
        check_store("memory")
    assert health_of(setup).reason == "the service is away"
    assert broker_of(setup).values == {}


def test_a_store_whose_disk_was_full_is_restarted_when_there_is_room_again(
    setup: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_checks, "is_short", lambda _: True)
    runs_since(setup, 5.0)
    store_of(setup).error = StoreReadOnly("full")
    for _ in range(RESTART_AFTER + 1):
        check_store("memory")
    assert store_health.take_restart(setup.broker, "memory") == "", "it may not start now"
    monkeypatch.setattr(store_checks, "is_short", lambda _: False)
    store_of(setup).error = None
    check_store("memory")
    assert "disk was full" in store_health.take_restart(setup.broker, "memory")
    check_store("memory")
    assert store_health.take_restart(setup.broker, "memory") == ""


def test_a_store_that_fails_on_after_a_full_disk_is_restarted(
    setup: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_checks, "is_short", lambda _: True)
    runs_since(setup, 5.0)
    store_of(setup).error = StoreReadOnly("full")
    for _ in range(RESTART_AFTER):
        check_store("memory")
    monkeypatch.setattr(store_checks, "is_short", lambda _: False)
    store_of(setup).error = StoreDown("no answer")
    check_store("memory")
    assert "no answer" in store_health.take_restart(setup.broker, "memory")


def test_an_old_result_says_nothing(setup: Context) -> None:
    store_health.write(setup.broker, "memory", Health(time.time() - 31, "no answer"))
    assert store_health.faults(setup.broker, 10) == {}
    assert store_health.faults(setup.broker, 20) != {}


WELL = Health(100.0, well_at=100.0, started=50.0)
DOWN = replace(WELL, checked_at=110.0, reason="no answer", failures=1)


@pytest.mark.parametrize(
    ("before", "after", "doubt"),
    [
        (None, WELL, Doubt(100.0, 100.0, 50.0)),
        (WELL, replace(WELL, checked_at=110.0), None),
        (WELL, DOWN, None),
        (DOWN, replace(WELL, checked_at=120.0), Doubt(120.0, 100.0, 0.0)),
        (DOWN, replace(WELL, checked_at=120.0, started=115.0), Doubt(120.0, 100.0, 115.0)),
        (WELL, replace(WELL, checked_at=110.0, started=105.0), Doubt(110.0, 100.0, 105.0)),
        (
            replace(DOWN, started=0.0),
            replace(WELL, checked_at=120.0, started=0.0),
            Doubt(120.0, 100.0, 100.0),
        ),
    ],
)
def test_the_end_of_a_fault_and_a_restart_are_doubts(
    before: Health | None, after: Health, doubt: Doubt | None
) -> None:
    assert doubt_of(before, after) == doubt
    assert restart_reason(after, disk_is_short=False) == ""


def test_what_a_store_forgot_at_its_restart_is_set_right_and_then_durable(
    setup: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[str] = []
    monkeypatch.setattr(audit.ingest, "send_next", lambda _, document_id: sent.append(document_id))
    runs_since(setup, time.time() - 100)
    check_store("memory")
    audit_doubts("memory")
    assert broker_of(setup).hashes[DOUBTS] == {}

    item = publish(setup.ledger, "one", "xy")
    chunk = ChunkRecord("x", item.document_id, "", "", np.ones(1, np.float32))
    store = store_of(setup)
    store.batch_upsert_documents("papers", [DocumentRecord(item.document_id, "", "")])
    store.batch_upsert_chunks("papers", [chunk])  # and it has forgotten y
    check_store("memory")
    audit_doubts("memory")
    assert sent == [], "the store has not been restarted"

    started = time.time() + 1
    runs_since(setup, started)
    check_store("memory")
    (doubt,) = broker_of(setup).hashes[DOUBTS].values()
    assert json.loads(doubt)["durable_until"] == pytest.approx(started, abs=0.01)
    audit_doubts("memory")
    assert sent == [item.document_id]
    assert broker_of(setup).hashes[DOUBTS] == {}
    assert broker_of(setup).hashes[DURABLE]["memory"] == pytest.approx(started, abs=0.01)
    assert setup.ledger.inventory.published_since("memory", started) == []


def test_a_collection_that_the_store_has_lost_is_audited_however_old_it_is(setup: Context) -> None:
    publish(setup.ledger, "one", "xy")
    durable = time.time()
    assert store_checks.doubtful(setup, "memory", durable) == []
    ahead = durable + 3600  # the clock was set back since
    assert store_checks.doubtful(setup, "memory", ahead) == ["papers"]
    store_of(setup).drop_collection("papers")
    assert store_checks.doubtful(setup, "memory", durable) == ["papers"]


def test_only_what_an_audit_put_off_is_audited_again_until_the_next_fault(
    setup: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("busy", "gone"):
        schema = CollectionSchema(name, VectorSpec(1))
        setup.ledger.collections.create(schema, store="memory", embedder="", analyzer="")
    audited: list[str] = []

    def put_off(_: Context, name: str) -> int | None:
        audited.append(name)
        return 0 if name == "papers" else None

    monkeypatch.setattr(
        store_checks, "doubtful", lambda *_: [r.name for r, _ in setup.ledger.collections.all()]
    )
    monkeypatch.setattr(store_checks, "audit_and_repair", put_off)
    check_store("memory")
    audit_doubts("memory")
    setup.ledger.collections.delete("gone")
    audit_doubts("memory")
    assert audited == ["busy", "gone", "papers", "busy"]
    runs_since(setup, time.time() + 1)
    check_store("memory")
    audit_doubts("memory")
    assert audited[4:] == ["busy", "papers"]
    monkeypatch.setattr(store_checks, "audit_and_repair", lambda *_: 0)
    audit_doubts("memory")
    assert broker_of(setup).hashes[DOUBTS] == {}


def test_an_audit_that_the_store_does_not_answer_is_repeated(
    setup: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(setup.ledger, "one", "xy")
    check_store("memory")
    monkeypatch.setattr(store_checks, "audit_and_repair", lambda *_: None)
    audit_doubts("memory")
    assert "memory" in broker_of(setup).hashes[DOUBTS]
    assert DURABLE not in broker_of(setup).hashes
