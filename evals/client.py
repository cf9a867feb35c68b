"""The desk over HTTP, as measuring needs it: JSON in and out, many requests at the same time."""

import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx
from pydantic import SecretStr

from callslip.errors import (
    CallslipError,
    DeskDown,
    PermanentError,
    SearchTimeout,
    TransientError,
)
from callslip.problems import error_of

TRIES = 6
"""Of one request while the desk is busy or breaks off; waits of 1, 2, 4 … s lie between them."""

SEARCH_TRIES = 6
"""Of one search that comes too late: the first ones load models, and speed is not measured so."""

KEEPALIVE_SECONDS = 1.0
"""An idle connection is given up sooner than gunicorn closes it, after 2 s by default."""


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
        limits = httpx.Limits(
            max_connections=connections,
            max_keepalive_connections=connections,
            keepalive_expiry=KEEPALIVE_SECONDS,
        )
        self.url = url.rstrip("/")
        self.connections = connections
        self._http = httpx.Client(
            base_url=self.url,
            limits=limits,
            timeout=timeout,
            trust_env=False,
            headers={"Authorization": f"Bearer {key.get_secret_value()}"} if key else {},
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._http.close()

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
        return self._asked(
            "POST",
            f"/v1/collections/{collection}/documents",
            files={"file": (path.name, path.read_bytes())},
            data={"name": name, "batch": batch, "allow_duplicate": "true"},
        )

    def delete(self, path: str) -> dict[str, Any]:
        """Remove something."""
        return self._asked("DELETE", path)

    def _asked(self, method: str, path: str, **content: Any) -> dict[str, Any]:
        for wait in (2.0**n for n in range(TRIES - 1)):
            try:
                return self._ask(method, path, **content)
            except SearchTimeout:
                raise
            except TransientError as error:
                if isinstance(error.__cause__, httpx.ConnectError):
                    raise
                time.sleep(max(wait, error.retry_after))
        return self._ask(method, path, **content)

    def _ask(self, method: str, path: str, **content: Any) -> dict[str, Any]:
        try:
            response = self._http.request(method, path, **content)
        except httpx.TransportError as error:
            raise DeskDown(f"no answer from {self.url}: {type(error).__name__}") from error
        if response.is_error:
            raise _error(response)
        if not response.content:
            return {}
        answer: dict[str, Any] = response.json()
        return answer


def _error(response: httpx.Response) -> CallslipError:
    try:
        return error_of(response.json())
    except (ValueError, KeyError, TypeError):
        return PermanentError(f"{response.request.url.path} answered {response.status_code}")
