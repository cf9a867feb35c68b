"""Requests to a Chroma server of another program: those that read, and no others.

The vendor's client is not used: here no method exists that writes, the addresses are checked, and
whole responses have limits of time and size. The paths are those of Chroma's API version 2.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast
from urllib.parse import quote, urlsplit

import httpx

from callslip.config.settings import MEGABYTE
from callslip.errors import (
    AddressNotAllowed,
    InvalidRequest,
    SourceDown,
    StoreDown,
    StoreNotAllowed,
    TableNotFound,
)
from callslip.http import deadline
from callslip.http.addresses import CheckedTransport, Network
from callslip.http.transport import UNTIL, BoundedTransport, TooLarge
from callslip.http.urls import parse_url
from callslip.stores.ledger import Attachment
from callslip.stores.metrics import Metric
from callslip.stores.servers import breaker
from callslip.stores.servers.absence import believed
from callslip.stores.servers.breaker import Breaker

REQUEST_SECONDS = 60.0
"""The longest time of a request without a deadline."""

MOST_BYTES = 200 * MEGABYTE
"""The largest response: 10,000 rows with long texts."""

Space = Literal["cosine", "ip", "l2"]

METRICS: Mapping[Space, Metric] = {"cosine": "cosine", "ip": "dot", "l2": "l2-squared"}
"""Chroma's spaces as metrics."""

_LONGEST_REASON = 200


@dataclass(frozen=True)
class Remote:
    """A collection as its server describes it.

    `dimension` is None until the first row. `names` has the names of metadata that the server
    lists; older servers list none.
    """

    id: str
    path: str
    dimension: int | None
    space: Space
    names: frozenset[str]


class ChromaServer:
    """A server. Threads share it; make it after the fork.

    Methods raise StoreDown if the server does not answer, StoreNotAllowed if it refuses the key,
    AddressNotAllowed for an address that the settings do not allow (StoreDown unless `named`),
    TableNotFound if the collection does not exist, and InvalidRequest with the server's reason for
    a request that it refuses. The messages have its address only if `named`: those of a search go
    to every reader.
    """

    def __init__(
        self, url: str, networks: Sequence[Network], key: str | None, *, named: bool = True
    ) -> None:
        self.url = url.rstrip("/")
        self._named = named
        self._who = f"Chroma at {self.url}" if named else "The Chroma server of the collection"
        secret = {"Authorization": f"Bearer {key}", "X-Chroma-Token": key} if key else {}
        self._http = httpx.Client(
            transport=BoundedTransport(MOST_BYTES, lambda: CheckedTransport(networks)),
            headers={"User-Agent": "callslip", **secret},
            trust_env=False,
        )
        self._breaker = Breaker(self._who, lambda: self._beat(breaker.PING_SECONDS))
        self._known: dict[tuple[str, str, str], Remote] = {}

    def ping(self) -> None:
        """Raise StoreDown unless the server answers."""
        self._breaker.check()
        self._beat(deadline.share(REQUEST_SECONDS))

    def describe(self, at: Attachment) -> Remote:
        """The collection, requested anew.

        Raises InvalidRequest for a name `.` or `..`, with which the address would be another one.
        """
        names = (at.tenant, at.table_schema, at.table_name)
        for what, name in zip(("tenant", "database", "collection"), names, strict=True):
            if name in (".", ".."):
                raise InvalidRequest(f"the {what} of an attached collection is named '.' or '..'")
        tenant, database, collection = (quote(name, safe="") for name in names)
        path = f"/tenants/{tenant}/databases/{database}/collections"

        def ask() -> Remote:
            return _remote(self._call("GET", f"{path}/{collection}", None, at), path)

        self._known[names] = remote = believed(ask, self.ping)
        return remote

    def read(self, at: Attachment, method: Literal["get", "query"], **body: object) -> Any:
        """The response of a request that reads rows."""
        return self._on(at, lambda it: self._call("POST", f"{it.path}/{it.id}/{method}", body, at))

    def count(self, at: Attachment) -> int:
        """The number of rows."""
        got = self._on(at, lambda it: self._call("GET", f"{it.path}/{it.id}/count", None, at))
        if not isinstance(got, int):
            raise self._another_program()
        return got

    def known(self, at: Attachment) -> Remote:
        """The collection as it was described last."""
        names = (at.tenant, at.table_schema, at.table_name)
        return self._known.get(names) or self.describe(at)

    def close(self) -> None:
        """Close the connections."""
        self._breaker.close()
        self._http.close()

    def _on(self, at: Attachment, act: Any) -> Any:
        """Call `act` with the collection, and once more if another one has its name now."""
        try:
            return act(self.known(at))
        except TableNotFound:
            return act(self.describe(at))

    def _beat(self, seconds: float) -> None:
        body = self._send("GET", "/heartbeat", None, seconds)
        if not isinstance(body, dict) or "nanosecond heartbeat" not in body:
            raise self._another_program()

    def _call(self, method: str, path: str, body: object, at: Attachment) -> Any:
        left = deadline.left()
        seconds = REQUEST_SECONDS if left is None else min(REQUEST_SECONDS, max(0.05, left))
        try:
            return self._breaker.call(lambda: self._send(method, path, body, seconds))
        except _Missing:
            raise TableNotFound(
                f"{self._who} has no collection {at.shown}",
                hint="Check its name, and with --tenant and --database where it is.",
            ) from None

    def _send(self, method: str, path: str, body: object, seconds: float) -> Any:
        try:
            response = self._http.request(
                method,
                f"{self.url}/api/v2{path}",
                json=body,
                timeout=seconds,
                extensions={UNTIL: time.monotonic() + seconds},
            )
        except AddressNotAllowed as error:
            if self._named:
                raise
            raise StoreDown(f"{self._who} has an address that is not allowed.") from error
        except (httpx.HTTPError, SourceDown) as error:
            raise StoreDown(f"{self._who} does not answer ({type(error).__name__}).") from error
        except TooLarge as error:
            raise StoreDown(f"{self._who} answers with too much.") from error
        return self._body(response)

    def _body(self, response: httpx.Response) -> Any:
        try:
            body = response.json()
        except ValueError:
            body = None
        status = response.status_code
        if status in (401, 403):
            raise StoreNotAllowed(
                f"{self._who} refuses the key, or asks for one.",
                hint="Set chroma.attached_keys (CALLSLIP_CHROMA__ATTACHED_KEYS) to URL=KEY.",
            )
        if status == httpx.codes.NOT_FOUND and _names_an_error(body):
            raise _Missing
        if status in (400, 413, 422) and _names_an_error(body):
            reason = str(body.get("message") or body["error"])[:_LONGEST_REASON]
            raise InvalidRequest(f"{self._who} refuses the request: {reason}")
        if response.is_server_error or status == httpx.codes.TOO_MANY_REQUESTS:
            raise StoreDown(f"{self._who} answers {status}.")
        if not response.is_success or body is None:
            raise self._another_program()
        return body

    def _another_program(self) -> StoreDown:
        return StoreDown(
            f"{self._who} answers as another program.",
            hint="The address is that of `chroma run`, such as http://127.0.0.1:8000; version 1.0"
            " or newer.",
        )


class _Missing(Exception):
    """The server has no such collection."""


def check_address(url: str) -> str:
    """The address without a slash at the end; raise InvalidRequest for any other URL."""
    try:
        parts, host = urlsplit(url), parse_url(url).host
        fine = parts.scheme in ("http", "https") and bool(host) and parts.port != 0
    except (ValueError, httpx.InvalidURL) as error:
        raise InvalidRequest(f"the url of a Chroma server is no address: {error}") from None
    if not fine or "@" in parts.netloc or parts.query or parts.fragment:
        raise InvalidRequest(
            "the url of a Chroma server is an address with http:// or https:// and a host, without"
            " a user, such as http://127.0.0.1:8000",
            hint="A key is in the setting chroma.attached_keys.",
        )
    return url.rstrip("/")


def _names_an_error(body: Any) -> bool:
    return isinstance(body, dict) and "error" in body


def _remote(body: Any, path: str) -> Remote:
    """Read a description; raise StoreDown if it is not Chroma's."""
    try:
        configuration = body.get("configuration_json") or {}
        index = configuration.get("hnsw") or configuration.get("spann") or {}
        space = index.get("space") or (body.get("metadata") or {}).get("hnsw:space") or "l2"
        keys = (body.get("schema") or {}).get("keys") or {}
        dimension = body["dimension"]
        names = frozenset(key for key in keys if not key.startswith("#"))
        if space not in METRICS or not isinstance(dimension, int | None):
            raise ValueError
        return Remote(quote(body["id"], safe=""), path, dimension, cast(Space, space), names)
    except (AttributeError, KeyError, TypeError, ValueError):
        raise StoreDown("Chroma describes the collection in an unknown form.") from None
