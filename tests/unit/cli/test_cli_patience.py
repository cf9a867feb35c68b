"""Commands that wait for a worker end where none takes up what they ask for."""

from types import SimpleNamespace
from typing import Any

import pytest

from callslip.cli.commands.collections import facets
from callslip.cli.commands.documents import edit, sources
from callslip.cli.shared import patience, upload
from callslip.cli.shared.patience import Turn
from callslip.client.models import FacetsAsked
from callslip.errors import PermissionMissing, ServerDown
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


class Waiting:
    """A client of a collection whose documents are in these states."""

    def __init__(self, *states: str, more: bool = False) -> None:
        self.states, self.more = list(states), more

    def list_documents(self, collection: str, *, tenant: str | None, limit: int) -> SimpleNamespace:
        assert (collection, tenant, limit) == ("main", None, patience.MOST_COUNTED)
        if not self.states:
            raise PermissionMissing("the key lacks the permission read")
        documents = [SimpleNamespace(state=state) for state in self.states]
        return SimpleNamespace(documents=documents, next_before=1.0 if self.more else None)


@pytest.mark.parametrize(
    ("client", "line"),
    [
        (Waiting("waiting", "working", "waiting", "live", "failed"), "with 2 other documents of"),
        (Waiting("waiting", "waiting", more=True), "with at least 1 other document of"),
        (Waiting("waiting", "live"), ""),
        (Waiting(), ""),
    ],
)
@pytest.mark.usefixtures("clock")
def test_a_command_says_with_how_many_others_its_document_waits(
    client: Any, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    turn = Turn(client, "main", "", shown=True)
    for _ in range(9):
        turn.tell(own=1)
    others = f" {line} 'main'" if line else ""
    assert capsys.readouterr().err == f"Waits{others} for a free worker.\n"
    client.states = ["waiting"] * 12
    for _ in range(9):
        turn.tell(own=1)
    assert "with 11 other documents" in capsys.readouterr().err.replace("at least ", "")


@pytest.mark.usefixtures("clock")
def test_a_command_with_json_does_not_say_it(capsys: pytest.CaptureFixture[str]) -> None:
    client: Any = Waiting("waiting", "waiting")
    Turn(client, "main", "", shown=False).tell(own=1)
    assert capsys.readouterr().err == ""


def test_an_edit_says_what_it_waits_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    states = ["waiting", "waiting", "live"]

    class Client(Waiting):
        def get_document(self, _: str) -> dict[str, Any]:
            return {"version": 2, "state": states.pop(0), "error": None}

    monkeypatch.setattr(patience, "QUIET_SECONDS", 0.0)
    monkeypatch.setattr(edit, "POLL_SECONDS", 0.0)
    monkeypatch.setattr(edit, "plain", lambda message: message)
    client: Any = Client("waiting", "waiting")
    edit._followed(client, "d1", 2, Turn(client, "main", "", shown=True))
    assert capsys.readouterr().err == "Waits with 1 other document of 'main' for a free worker.\n"


@pytest.mark.parametrize(
    ("states", "own"), [({"waiting": 3}, [3]), ({"waiting": 3, "live": 1}, []), ({}, [])]
)
def test_an_ingestion_says_what_it_waits_for_before_its_first_file_begins(
    states: dict[str, int], own: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = {"submitted": 4, "states": states, "left": 3}
    monkeypatch.setattr(upload, "get_batch", lambda *_: batch)
    monkeypatch.setattr(upload, "pace", lambda _: "")
    told: list[int] = []
    turn: Any = SimpleNamespace(tell=lambda own: told.append(own))
    client: Any = None
    with upload._Progress(client, upload.Report(), files=4, show=False, turn=turn) as progress:
        progress.look()
    assert told == own
