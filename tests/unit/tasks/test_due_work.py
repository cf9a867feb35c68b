"""The audit and the rebuild of facets are queued once in their hours, and again after an error."""

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import redis
from context_parts import context_of, working
from memory_store import MemoryStore
from pipeline_parts import Tiny
from valkey_parts import valkey

from callslip.config.settings import Settings
from callslip.errors import StoreDown
from callslip.stores.ledger import Ledger
from callslip.stores.records import CollectionSchema, VectorSpec
from callslip.tasks import audit, facets
from callslip.tasks.composition import Context
from callslip.tasks.shared.locks import once_in

NAMES = ("papers", "notes")


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[redis.Redis]:
    (tmp_path / "valkey").mkdir()
    with valkey(tmp_path / "valkey") as client:
        yield client


@pytest.fixture
def context(tmp_path: Path, broker: redis.Redis) -> Iterator[Context]:
    """A worker with two collections."""
    with closing(Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")) as ledger:
        ledger.create()
        for name in NAMES:
            schema = CollectionSchema(name, VectorSpec(4))
            ledger.collections.create(schema, store="memory", embedder="tiny", analyzer="")
        parts = {"ledger": ledger, "broker": broker, "embedder": Tiny()}
        with working(context_of(Settings(data_dir=tmp_path), MemoryStore(), **parts)) as made:
            yield made


@pytest.fixture
def queued(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was queued: the collection of each message, or "orphans"."""
    sent: list[str] = []
    for task in (audit.audit_collection, facets.rebuild_facets_of, audit.audit_orphans):
        monkeypatch.setattr(
            task, "apply_async", lambda args=("orphans",), **_: sent.append(args[0])
        )
    return sent


def all_of(context: Context, fails: list[int]) -> Callable[[], Iterator[Any]]:
    """Reads the collections, as with a live document each, and fails behind so many of them."""
    collections = [(record, 1) for record, _ in context.ledger.collections.all()]

    def read() -> Iterator[Any]:
        left = fails.pop() if fails else len(collections)
        yield from collections[:left]
        if left < len(collections):
            raise StoreDown("the ledger does not answer")

    return read


@pytest.mark.parametrize(
    ("task", "whole"),
    [(audit.audit, ["notes", "orphans", "papers"]), (facets.rebuild_facets, ["notes", "papers"])],
)
def test_an_error_half_way_queues_nothing_and_the_next_look_queues_all(
    context: Context,
    queued: list[str],
    monkeypatch: pytest.MonkeyPatch,
    task: Callable[[], None],
    whole: list[str],
) -> None:
    monkeypatch.setattr(context.ledger.collections, "all", all_of(context, [1, 0]))
    for _ in range(2):
        with pytest.raises(StoreDown):
            task()
        assert queued == []
    task()
    assert sorted(queued) == whole
    task()
    assert sorted(queued) == whole, "the next ones are due in an hour or a day"


def test_a_second_worker_does_nothing_while_the_first_one_queues(broker: redis.Redis) -> None:
    with once_in(broker, "x:done", 1) as first, once_in(broker, "x:done", 1) as second:
        assert (first, second) == (True, False)
    assert 3_500_000 < int(broker.pttl("x:done")) <= 3_600_000  # type: ignore[arg-type]
    with once_in(broker, "x:done", 1) as again, once_in(broker, "y:done", 0) as never:
        assert (again, never) == (False, False)
    assert not broker.exists("y:done")
