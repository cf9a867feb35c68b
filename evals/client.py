"""The desk over HTTP, as measuring needs it: JSON in and out, many requests at the same time."""

from pathlib import Path
from types import TracebackType
from typing import Any, Self

from pydantic import SecretStr

from callslip.client import Client, Retries
from callslip.client.wire import path_of
from callslip.errors import SearchTimeout

RETRIES = Retries(most=5, within=600.0, first_wait=2.0, where_refused=False, but=(SearchTimeout,))
"""While the desk is busy or breaks off."""

SEARCH_TRIES = 6
"""Of one search that comes too late: the first ones load models, and speed is not measured so."""


class Desk:
    """Connections to one desk, kept open; threads may share it.

    Every call raises the error that the desk answered, by its class of `callslip.errors`, and
    DeskDown when there is no answer. A busy desk is asked again, so calls must be harmless twice.
    """

    def __init__(
        self,
        url: str,
        connections: int = 4,
        timeout: float = 120.0,
        *,
        key: SecretStr | None = None,
    ) -> None:
        """`timeout` is in seconds, for one request; `key` is the desk's api.key."""
        self.connections = connections
        self._desk = Client(url, key=key, timeout=timeout, retries=RETRIES, connections=connections)

    @property
    def url(self) -> str:
        """Where the desk is."""
        return self._desk.url

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._desk.close()

    def get(self, path: str, **params: str | int | float) -> dict[str, Any]:
        """Ask for what is there."""
        return self._asked("GET", path, params=params)

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Send something, or ask a question."""
        return self._asked("POST", path, json=body)

    def put(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Set what is there."""
        return self._asked("PUT", path, json=body)

    def search(self, body: dict[str, Any]) -> dict[str, Any]:
        """Ask a question; one that comes too late is asked again, up to SEARCH_TRIES times."""
        for _ in range(SEARCH_TRIES - 1):
            try:
                return self.post("/v1/search", body)
            except SearchTimeout:
                continue
        return self.post("/v1/search", body)

    def upload(self, collection: str, path: Path, name: str, batch: str) -> dict[str, Any]:
        """Submit a file under a name, even where another name holds the same bytes."""
        with path.open("rb") as file:
            return self._asked(
                "POST",
                path_of("/v1/collections/{collection}/documents", collection=collection),
                files={"file": (path.name, file)},
                data={"name": name, "batch": batch, "allow_duplicate": "true"},
            )

    def delete(self, path: str) -> dict[str, Any]:
        """Remove something."""
        return self._asked("DELETE", path)

    def _asked(self, method: str, path: str, **content: Any) -> dict[str, Any]:
        answer: dict[str, Any] | None = self._desk.request_json(
            method, path, repeatable=True, **content
        )
        return answer or {}
