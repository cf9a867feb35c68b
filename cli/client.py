"""The desk for the command line: paths and dicts, over `callslip.client`."""

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import httpx
from pydantic import SecretStr

from callslip import client as over_http
from callslip.client.wire import LINES, path_of
from callslip.errors import CollectionNotFound


class Client:
    """One method per thing the command line asks; errors are those of callslip.errors.

    Nothing is asked twice: a person, or what stands above, sees what is wrong at once. Threads may
    share it.
    """

    def __init__(
        self,
        url: str,
        timeout: float = 120.0,
        *,
        key: SecretStr | None = None,
        http: httpx.Client | None = None,
    ) -> None:
        """`key` is the desk's api.key."""
        self._desk = over_http.Client(
            url, key=key, timeout=timeout, retries=over_http.NO_RETRIES, http=http
        )

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self._desk.close()

    @property
    def url(self) -> str:
        """Where the desk is."""
        return self._desk.url

    def with_key(self, key: str | None) -> "Client":
        """The same connections, with another key or none."""
        other = copy.copy(self)
        other._desk = self._desk.with_key(key)
        return other

    def get(self, path: str, **params: Any) -> dict[str, Any]:
        """GET a JSON answer."""
        return self._json("GET", path, params={k: v for k, v in params.items() if v is not None})

    def create_collection(self, name: str, **wanted: Any) -> dict[str, Any]:
        """Make a collection, or find it as it is; what is None is left to the desk."""
        given = {key: value for key, value in wanted.items() if value is not None}
        return self.post("/v1/collections", {"name": name, **given})

    def set_options(self, collection: str, options: dict[str, Any]) -> dict[str, Any]:
        """Change the options of a collection, which is made where it is missing."""
        path = path_of("/v1/collections/{collection}/options", collection=collection)
        try:
            return self._json("PUT", path, json=options)
        except CollectionNotFound:
            made: dict[str, Any] = self.create_collection(collection, options=options)["options"]
            return made

    def make_batch(self, expected: int, batch_id: str | None = None) -> str:
        """Make a batch, or say how many documents it has; its id."""
        given = {"expected": expected} | ({"batch_id": batch_id} if batch_id else {})
        return str(self.post("/v1/batches", given)["batch_id"])

    def create_tenant(self, collection: str, tenant: str) -> dict[str, Any]:
        """Make a tenant, or find it as it is."""
        path = path_of("/v1/collections/{collection}/tenants", collection=collection)
        return self.post(path, {"tenant": tenant})

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
            path_of("/v1/collections/{collection}/documents", collection=collection),
            files={"file": (filename, file, "application/octet-stream")},
            data=fields,
        )

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """POST JSON for a JSON answer."""
        return self._json("POST", path, json=body)

    def lines(self, path: str, **params: Any) -> Iterator[str]:
        """GET lines of text as they come."""
        return self._desk.request_lines(path, params=params)

    def events(self, path: str, body: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
        """POST JSON for server-sent events as they come: kind and data.

        `error` among them is raised.
        """
        for event in self._desk.request_events("POST", path, json=body):
            yield event.kind, event.json()

    def delete(self, path: str, **params: Any) -> dict[str, Any]:
        """DELETE for a JSON answer."""
        return self._json("DELETE", path, params={k: v for k, v in params.items() if v})

    def send_lines(self, path: str, lines: list[str], **params: Any) -> dict[str, Any]:
        """POST lines of JSON for a JSON answer."""
        content = "".join(lines).encode()
        return self._json("POST", path, content=content, content_type=LINES, params=params)

    def search(self, request: dict[str, Any]) -> dict[str, Any]:
        """Ask a question."""
        return self.post("/v1/search", request)

    def readiness(self) -> dict[str, Any]:
        """What is ready and what is not; both are answers."""
        return self._json("GET", "/readyz", also=(503,))

    def documents(self, collection: str, *, parent: str | None = None) -> Iterator[dict[str, Any]]:
        """Every document of a collection, or that came within one of them, newest first."""
        path = path_of("/v1/collections/{collection}/documents", collection=collection)
        before = None
        while True:
            page = self.get(path, limit=500, before=before, parent=parent)
            yield from page["documents"]
            before = page["next_before"]
            if before is None:
                return

    def _json(self, method: str, path: str, **sent: Any) -> dict[str, Any]:
        answer: dict[str, Any] = self._desk.request_json(method, path, **sent)
        return answer
