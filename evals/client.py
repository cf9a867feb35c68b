"""The HTTP client of evaluations: JSON in and out, many requests at the same time."""

from pathlib import Path
from types import TracebackType
from typing import Any, Self

from pydantic import SecretStr

from callslip.client import Client, Retries
from callslip.client.requests import path_of
from callslip.errors import SearchTimeout

RETRIES = Retries(most=5, within=600.0, first_wait=2.0, where_refused=False, but=(SearchTimeout,))
"""Retries while the server is busy or connections break."""

SEARCH_TRIES = 6
"""The most tries of a search that times out: the first searches load models."""


class JsonClient:
    """A pool of connections to one server; threads may share it.

    Every call raises the error of the server's response as its class of `callslip.errors`, and
    ServerDown if there is no response. The client repeats a request to a busy server, so calls must
    be idempotent.
    """

    def __init__(
        self,
        url: str,
        connections: int = 4,
        timeout: float = 120.0,
        *,
        key: SecretStr | None = None,
    ) -> None:
        """`timeout` is in seconds, for one request; `key` is the server's api.key."""
        self.connections = connections
        self._client = Client(
            url, key=key, timeout=timeout, retries=RETRIES, connections=connections
        )

    @property
    def url(self) -> str:
        """The server's URL."""
        return self._client.url

    @property
    def client(self) -> Client:
        """The typed client that sends the requests."""
        return self._client

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._client.close()

    def get(self, path: str, **params: str | int | float) -> dict[str, Any]:
        """Send a GET request."""
        return self._request("GET", path, params=params)

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Send a POST request."""
        return self._request("POST", path, json=body)

    def put(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Send a PUT request."""
        return self._request("PUT", path, json=body)

    def search(self, body: dict[str, Any]) -> dict[str, Any]:
        """Search for a question; a timed-out search is repeated, up to SEARCH_TRIES times."""
        for _ in range(SEARCH_TRIES - 1):
            try:
                return self.post("/v1/search", body)
            except SearchTimeout:
                continue
        return self.post("/v1/search", body)

    def upload(self, collection: str, path: Path, name: str, batch: str) -> dict[str, Any]:
        """Submit a file under a name, even if another document has the same bytes."""
        with path.open("rb") as file:
            return self._request(
                "POST",
                path_of("/v1/collections/{collection}/documents", collection=collection),
                files={"file": (path.name, file)},
                data={"name": name, "batch": batch, "allow_duplicate": "true"},
            )

    def delete(self, path: str) -> dict[str, Any]:
        """Send a DELETE request."""
        return self._request("DELETE", path)

    def _request(self, method: str, path: str, **content: Any) -> dict[str, Any]:
        answer: dict[str, Any] | None = self._client.request_json(
            method, path, repeatable=True, **content
        )
        return answer or {}
