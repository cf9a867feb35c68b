"""An API in the same process over FAQs in memory, for tests of the CLI and of measuring."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Self

from flask.testing import FlaskClient
from genie_parts import adapter_context_of, app_of
from memory_store import MemoryStore

from callslip.errors import CallslipError
from callslip.problems import error_of
from callslip.stores.blobs import Blobs
from callslip.stores.ledger import Ledger


class FaqClient:
    """A client of the API; a POST raises the next of `failures`."""

    def __init__(self, http: FlaskClient) -> None:
        self.http = http
        self.failures: list[CallslipError] = []
        self.posts = 0
        self.connections = 1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return

    def request_json(
        self, method: str, path: str, *, json: Any = None, also: tuple[int, ...] = ()
    ) -> Any:
        if path == "/readyz":
            return {}
        return self.get(path) if method == "GET" else self.post(path, json)

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
def running(tmp_path: Path) -> Iterator[FaqClient]:
    """Run the API over a ledger in a file and a store in memory."""
    with closing(Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")) as ledger:
        ledger.create()
        context, _ = adapter_context_of(ledger, MemoryStore(), Blobs(str(tmp_path / "blobs")))
        yield FaqClient(app_of(context).test_client())
