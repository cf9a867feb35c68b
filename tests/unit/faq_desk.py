"""A desk in the same process that keeps FAQ, for the command line and for measuring."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Self

import pytest
from flask.testing import FlaskClient
from genie_parts import floor_of
from memory_store import MemoryStore

from api import collections, faq
from api.app import create_app
from callslip.errors import CallslipError
from callslip.problems import error_of
from compat.faq import places
from config import get_settings
from stores.blobs import Blobs
from stores.ledger import Ledger


class Desk:
    """A client of the desk that may be told to fail."""

    def __init__(self, http: FlaskClient) -> None:
        self.http = http
        self.failures: list[CallslipError] = []
        self.posts = 0
        self.connections = 1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return

    def readiness(self) -> dict[str, Any]:
        return {}

    def get(self, path: str) -> Any:
        return self._answer(self.http.get(path))

    def post(self, path: str, body: dict[str, Any]) -> Any:
        self.posts += 1
        if self.failures:
            raise self.failures.pop(0)
        return self._answer(self.http.post(path, json=body))

    def delete(self, path: str) -> Any:
        return self._answer(self.http.delete(path))

    def _answer(self, response: Any) -> Any:
        if response.status_code >= 400:
            raise error_of(response.json)
        return response.json


@contextmanager
def running(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    """Over a ledger and a store in memory."""
    with closing(Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")) as ledger:
        ledger.create()
        floor, _ = floor_of(ledger, MemoryStore(), Blobs(str(tmp_path / "blobs")))
        settings = get_settings().model_copy(update={"store": floor.store_of("").kind})
        monkeypatch.setattr(places, "get_settings", lambda: settings)
        monkeypatch.setattr(faq, "desk_floor", lambda: floor)
        monkeypatch.setattr(collections, "ledger", lambda: ledger)
        monkeypatch.setattr(collections.maintenance, "send_drop", lambda _: None)
        yield Desk(create_app().test_client())
