"""The desk over HTTP, for the command line."""

import copy
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import quote

import httpx
from pydantic import SecretStr

from callslip.errors import (
    CallslipError,
    CollectionNotFound,
    DeskDown,
    InvalidRequest,
    PermanentError,
)
from callslip.problems import error_of


class Client:
    """One method per thing the command line asks; errors are those of callslip.errors.

    Threads may share it.
    """

    def __init__(self, url: str, timeout: float = 120.0, *, key: SecretStr | None = None) -> None:
        """`key` is the desk's api.key."""
        self.url = url.rstrip("/")
        self._http = httpx.Client(base_url=self.url, timeout=timeout, trust_env=False)
        self._key = key.get_secret_value() if key else None

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def with_key(self, key: str | None) -> "Client":
        """The same connections, with another key or none."""
        other = copy.copy(self)
        other._key = key
        return other

    def get(self, path: str, **params: Any) -> dict[str, Any]:
        """GET a JSON answer."""
        return self._json("GET", path, params={k: v for k, v in params.items() if v is not None})

    def create_collection(self, name: str, **wanted: Any) -> dict[str, Any]:
        """Make a collection, or find it as it is; what is None is left to the desk."""
        given = {key: value for key, value in wanted.items() if value is not None}
        return self._json("POST", "/v1/collections", json={"name": name, **given})

    def set_options(self, collection: str, options: dict[str, Any]) -> dict[str, Any]:
        """Change the options of a collection, which is made where it is missing."""
        path = f"/v1/collections/{quote(collection, safe='')}/options"
        try:
            return self._json("PUT", path, json=options)
        except CollectionNotFound:
            made: dict[str, Any] = self.create_collection(collection, options=options)["options"]
            return made

    def make_batch(self, expected: int, batch_id: str | None = None) -> str:
        """Make a batch, or say how many documents it has; its id."""
        given = {"expected": expected} | ({"batch_id": batch_id} if batch_id else {})
        return str(self._json("POST", "/v1/batches", json=given)["batch_id"])

    def create_tenant(self, collection: str, tenant: str) -> dict[str, Any]:
        """Make a tenant, or find it as it is."""
        path = f"/v1/collections/{quote(collection, safe='')}/tenants"
        return self._json("POST", path, json={"tenant": tenant})

    def upload(
        self, collection: str, path: Path, name: str, tenant: str = "", **fields: str
    ) -> dict[str, Any]:
        """Submit a file under a name; `fields` are further ones of the form."""
        with path.open("rb") as file:
            return self.send(collection, file, path.name, name=name, tenant=tenant, **fields)

    def send(self, collection: str, file: BinaryIO, filename: str, **fields: str) -> dict[str, Any]:
        """Submit an open file."""
        return self._json(
            "POST",
            f"/v1/collections/{quote(collection, safe='')}/documents",
            files={"file": (filename, file, "application/octet-stream")},
            data=fields,
        )

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """POST JSON for a JSON answer."""
        return self._json("POST", path, json=body)

    def lines(self, path: str, **params: Any) -> Iterator[str]:
        """GET lines of text as they come."""
        with (
            self._reaching(path),
            self._http.stream("GET", path, params=params, auth=self._signed) as response,
        ):
            if response.is_error:
                response.read()
                raise _error(response)
            yield from response.iter_lines()

    def events(self, path: str, body: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
        """POST JSON for server-sent events as they come: kind and data.

        `error` among them is raised.
        """
        with (
            self._reaching(path),
            self._http.stream(
                "POST",
                path,
                json=body,
                headers={"Accept": "text/event-stream"},
                auth=self._signed,
            ) as response,
        ):
            if response.is_error:
                response.read()
                raise _error(response)
            kind = "message"
            for line in response.iter_lines():
                if line.startswith("event:"):
                    kind = line.removeprefix("event:").strip()
                elif line.startswith("data:"):
                    data = json.loads(line.removeprefix("data:"))
                    if kind == "error":
                        raise error_of(data)
                    yield kind, data

    def delete(self, path: str, **params: Any) -> dict[str, Any]:
        """DELETE for a JSON answer."""
        return self._json("DELETE", path, params={k: v for k, v in params.items() if v})

    def send_lines(self, path: str, lines: list[str], **params: Any) -> dict[str, Any]:
        """POST lines of JSON for a JSON answer."""
        headers = {"Content-Type": "application/x-ndjson"}
        content = "".join(lines).encode()
        return self._json("POST", path, content=content, headers=headers, params=params)

    def search(self, request: dict[str, Any]) -> dict[str, Any]:
        """Ask a question."""
        return self._json("POST", "/v1/search", json=request)

    def readiness(self) -> dict[str, Any]:
        """What is ready and what is not; both are answers."""
        with self._reaching("/readyz"):
            response = self._http.get("/readyz")
        if response.status_code not in (200, 503):
            raise _error(response)
        found: dict[str, Any] = response.json()
        return found

    def documents(self, collection: str, *, parent: str | None = None) -> Iterator[dict[str, Any]]:
        """Every document of a collection, or that came within one of them, newest first."""
        path, before = f"/v1/collections/{quote(collection, safe='')}/documents", None
        while True:
            page = self.get(path, limit=500, before=before, parent=parent)
            yield from page["documents"]
            before = page["next_before"]
            if before is None:
                return

    def _json(self, method: str, path: str, **kwargs: Any) -> dict[str, Any]:
        with self._reaching(path):
            response = self._http.request(method, path, auth=self._signed, **kwargs)
        if response.is_error:
            raise _error(response)
        answer: dict[str, Any] = response.json()
        return answer

    def _signed(self, request: httpx.Request) -> httpx.Request:
        if self._key is not None:
            request.headers["Authorization"] = f"Bearer {self._key}"
        return request

    @contextmanager
    def _reaching(self, path: str) -> Iterator[None]:
        """InvalidRequest where the path leads elsewhere: httpx takes `.` and `..` out of it."""
        if {".", ".."} & set(path.split("/")):
            raise InvalidRequest(f"a name in {path!r} is '.' or '..'", hint="Send another name.")
        try:
            yield
        except httpx.TransportError as error:
            raise DeskDown(f"no answer from {self.url}: {type(error).__name__}") from error


def _error(response: httpx.Response) -> CallslipError:
    """The error that a problem+json answer describes."""
    try:
        error = error_of(response.json())
        error.retry_after = float(response.headers.get("Retry-After", error.retry_after))
        return error
    except (ValueError, KeyError, TypeError):
        return PermanentError(f"{response.request.url} answered {response.status_code}")
