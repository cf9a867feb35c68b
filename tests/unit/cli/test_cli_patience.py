"""Commands that wait for a worker end where none takes up what they ask for."""

from types import SimpleNamespace
from typing import Any

import pytest

from callslip.cli.commands.collections import facets
from callslip.cli.commands.documents import sources
from callslip.cli.shared import patience
from callslip.client.models import FacetsAsked
from callslip.errors import ServerDown
from callslip.stores.ledger import SourceRecord


@pytest.fixture(autouse=True)
def _no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "POLL_SECONDS", 0.0)
    monkeypatch.setattr(facets, "POLL_SECONDS", 0.0)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time in seconds, ten more at each look."""
    now = [0.0]

    def look() -> float:
        now[0] += 10.0
        return now[0]

    monkeypatch.setattr(patience, "time", SimpleNamespace(monotonic=look))
    return now


def source(**more: Any) -> SourceRecord:
    """A source that was never looked at and is due."""
    values = {
        **{"source_id": "s", "collection": "main", "tenant": "", "name": "law", "url": "file:///x"},
        **{"properties": {}, "every_seconds": None, "delete_missing": False, "created_at": 0.0},
        **{"due_at": 0.0, "run": 0, "began_at": None, "ended_at": None, "counts": {}},
        "failure": None,
    }
    return SourceRecord(**{**values, **more})


class Ledger:
    """A ledger whose source is in each of these states in turn, and then in the last one."""

    def __init__(self, *states: SourceRecord) -> None:
        self.states, self.sources = list(states), self

    def find(self, *_: str, tenant: str) -> SourceRecord:
        return self.states.pop(0) if len(self.states) > 1 else self.states[0]

    def seen(self, _: SourceRecord) -> int:
        return 1


def test_a_source_that_no_worker_takes_up_is_an_error(
    clock: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    ledger: Any = Ledger(source())
    with pytest.raises(ServerDown, match="no ingest worker has begun within") as raised:
        sources._ended(ledger, source(), quiet=True)
    assert clock[0] > patience.LONGEST_SECONDS
    assert "callslip source list" in raised.value.advice
    assert capsys.readouterr().err.count("is Callslip running?") == 1


@pytest.mark.usefixtures("clock")
def test_a_source_that_a_worker_looks_at_is_followed_to_its_end() -> None:
    running, ended = source(began_at=1.0), source(due_at=None, ended_at=2.0)
    waiting = [source()] * 8
    ledger: Any = Ledger(*waiting, *[running] * 50, *waiting, ended)
    assert sources._ended(ledger, source(), quiet=True) == ended


@pytest.mark.usefixtures("clock")
def test_facets_that_no_worker_takes_up_are_an_error() -> None:
    class Client:
        def list_facets(self, *_: str, **__: Any) -> dict[str, Any]:
            return {"facets": []}

    client: Any = Client()
    rebuild = FacetsAsked(run="r", facets=["kind"])
    with pytest.raises(ServerDown, match="no maintenance worker has begun within"):
        facets._rebuilt(client, "main", None, rebuild, quiet=True)
