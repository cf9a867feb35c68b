"""The connection to a CrateDB cluster over HTTP. Raises Callslip's errors."""

import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import urllib3
from crate.client.exceptions import ConnectionError as NoConnection
from crate.client.exceptions import Error
from crate.client.http import Client

from callslip.errors import (
    InternalError,
    InvalidFilter,
    InvalidRequest,
    SettingsError,
    StoreDown,
    StoreNotAllowed,
    StoreReadOnly,
)
from callslip.stores.servers import breaker
from callslip.stores.servers.breaker import Breaker
from callslip.stores.servers.garbled import is_garbled
from callslip.stores.setup import check_version

CONNECT_SECONDS = 3.0
"""The time limit for opening a connection; the client tries ten more times."""

PING_SECONDS = 5.0

_PING = ("rows", "SELECT 1")

_THREADS = 16
"""The number of connections that stay open, for as many threads."""

_MISSING = ("RelationUnknown", "SchemaUnknownException")
_DOWN = re.compile(
    "Shard|Node|Master|Transport|CircuitBreaking|Rejected|Killed|Unavailable|Timeout|TaskMissing"
    "|AlreadyClosed|VersionConflict|UnhandledServer"
)
"""A part of the name of each transient error: a server starts, stops or is short of memory."""

# The client logs whole requests, with texts of documents, at DEBUG, and the address at WARNING, as
# urllib3 does ten times for each request or ping to a server that is away.
for name in ("crate.client.http", "urllib3.connectionpool"):
    logging.getLogger(name).setLevel(logging.ERROR)


class RelationMissing(Exception):
    """A table or its schema does not exist."""


class ColumnMissing(Exception):
    """A column does not exist: the cached columns of the table are out of date."""


class ColumnsChanged(Exception):
    """Columns cannot be added: the table has them already, or has no room for them."""


@dataclass(frozen=True)
class Sql:
    """A statement, or a part of one, with the values of its placeholders in their order."""

    text: str
    args: tuple[object, ...] = ()


class _OneServer(Client):  # type: ignore[misc]  # the client is not typed
    """The vendor's client without its list of servers, in which it marks the only server as dead.

    With an explicit server, the client also does not forever repeat a request that a proxy resets.
    """

    def _request(self, method: str, path: str, server: str | None = None, **kwargs: Any) -> Any:
        return super()._request(method, path, server=server or self._active_servers[0], **kwargs)


class Connection:
    """A pool of connections for the threads of this process; none is open before the first use."""

    def __init__(self, url: str, user: str, password: str | None, timeout: float) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise SettingsError(f"crate.url is no address such as http://127.0.0.1:4200: {url!r}")

        def client(timeout: object, **more: Any) -> _OneServer:
            login = {"username": user, "password": password}
            return _OneServer([self._url], timeout=timeout, compress=False, **login, **more)

        self._url, self._supported = url.rstrip("/"), False
        connect = min(CONNECT_SECONDS, timeout)
        limits = urllib3.Timeout(connect=connect, read=timeout)
        self._client = client(limits, pool_size=_THREADS)
        self._pinger = client(min(PING_SECONDS, timeout))
        self._watcher = client(breaker.PING_SECONDS)
        self._breaker = Breaker("CrateDB", partial(_answer, self._watcher, *_PING))

    def ping(self) -> None:
        """Raise StoreDown unless the server answers."""
        self._breaker.check()
        self._check_version(self._pinger)
        _answer(self._pinger, *_PING)

    def _check_version(self, client: _OneServer) -> None:
        """Raise StoreTooOld if the server is older than the supported versions."""
        if not self._supported:
            with _answering():
                _, _, version = client.server_infos(self._url)
            try:
                check_version("CrateDB", str(version))
            except ValueError:
                raise _not_crate() from None
            self._supported = True

    def run(self, sql: Sql) -> list[list[Any]]:
        """Run one statement and return its rows."""
        rows: list[list[Any]] = self._answer("rows", sql.text, list(sql.args) or None)
        return rows

    def run_many(self, text: str, rows: Sequence[Sequence[object]]) -> dict[int, str]:
        """Run one statement for each row; return the reason for each refused row, by its position.

        The server reports refused rows only in its response, with reasons for only the first ten.
        """
        refused: dict[int, str] = {}
        for position, result in enumerate(self._answer("results", text, None, list(rows))):
            if result["rowcount"] < 0:
                refused[position] = _reason(result)
        return refused

    def _answer(self, part: str, *arguments: object) -> Any:
        def answered() -> Any:
            self._check_version(self._client)
            return _answer(self._client, part, *arguments)

        return self._breaker.call(answered)

    def close(self) -> None:
        """Close the sockets."""
        self._breaker.close()
        for client in (self._client, self._pinger, self._watcher):
            client.close()


@contextmanager
def _answering() -> Iterator[None]:
    """Turn the client's errors into Callslip's."""
    try:
        yield
    except Error as error:
        raise _translated(error) from error
    except Exception as error:
        if is_garbled(error):
            raise _not_crate() from error
        raise


def _answer(client: _OneServer, part: str, *arguments: object) -> Any:
    """The part of the server's answer to a statement; its form is checked."""
    with _answering():
        answer = client.sql(*arguments)
    if not isinstance(answer, dict) or not isinstance(answer.get(part), list):
        raise _not_crate()
    return answer[part]


def _reason(result: Mapping[str, Any]) -> str:
    message = str((result.get("error") or {}).get("message", ""))
    name = _name(message)
    if _DOWN.search(name) or name == "ClusterBlockException":
        raise _named(name, message)
    return f"CrateDB refused it ({name or 'no reason given'})"


def _name(message: str) -> str:
    match = re.match(r"\w+(?=\[)", message)
    return match[0] if match else ""


def _translated(error: Error) -> Exception:
    """Callslip's error for a client's error. The text is omitted, because it may quote a value."""
    message = str(getattr(error, "message", error))
    if isinstance(error, NoConnection):
        cause = type(error.__cause__).__name__ if error.__cause__ else "unavailable"
        return StoreDown(f"CrateDB does not answer ({cause}).")
    name = _name(message)
    if name:
        return _named(name, message)
    if message.startswith("401 ") or "authentication failed" in message:
        return StoreDown("CrateDB does not let us in.", hint="Check crate.user and crate.password.")
    return _not_crate()


def _not_crate() -> StoreDown:
    return StoreDown("Something that is not CrateDB answered at crate.url.")


def _named(name: str, message: str) -> Exception:
    if name in _MISSING:
        return RelationMissing()
    if name == "ColumnUnknownException":
        return ColumnMissing()
    if "already has a column named" in message or "Limit of total columns" in message:
        return ColumnsChanged()
    if _DOWN.search(name) or "SERVICE_UNAVAILABLE" in message:
        return StoreDown(f"CrateDB cannot answer now ({name}).")
    if name in ("ClusterBlockException", "OperationOnInaccessibleRelationException"):
        return StoreReadOnly("CrateDB takes nothing: the table or the cluster is blocked.")
    if name == "MissingPrivilegeException":
        return StoreNotAllowed("crate.user lacks a privilege in CrateDB.")
    if name == "TooComplexToDeterminizeException":
        return InvalidFilter("A pattern is too long for CrateDB.", hint="Use fewer `*`.")
    if name == "TooManyClauses":
        return InvalidRequest("The query or its filter has too many parts for CrateDB.")
    return InternalError(f"CrateDB refused a statement ({name}).")
