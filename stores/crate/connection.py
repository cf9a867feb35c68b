"""One connection to a CrateDB cluster over HTTP, with errors in our words."""

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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

CONNECT_SECONDS = 3.0
"""How long a connection may take to open; the client tries ten more times."""

PING_SECONDS = 5.0

_THREADS = 16
"""Connections that are kept open for as many threads."""

_MISSING = ("RelationUnknown", "SchemaUnknownException")
_DOWN = re.compile(
    "Shard|Node|Master|Transport|CircuitBreaking|Rejected|Killed|Unavailable|Timeout|TaskMissing"
    "|AlreadyClosed|VersionConflict|UnhandledServer"
)
"""In the names of errors that pass: a server that starts, stops or is short of memory."""

# It writes whole requests, and so texts of documents, at DEBUG, and the address at WARNING.
logging.getLogger("crate.client.http").setLevel(logging.ERROR)


class RelationMissing(Exception):
    """A table, or the schema that it lies in, does not exist."""


class ColumnMissing(Exception):
    """A column is not there, so what was known of the table is out of date."""


class ColumnsChanged(Exception):
    """Columns cannot be added: the table has them by now, or has no room for them."""


@dataclass(frozen=True)
class Sql:
    """A statement, or a part of one, with the values of its placeholders in their order."""

    text: str
    args: tuple[object, ...] = ()


class _OneServer(Client):  # type: ignore[misc]  # the client is not typed
    """The vendor's client without its list of servers, on which it marks the only one dead.

    With a server named, it also does not repeat for ever what a proxy resets.
    """

    def _request(self, method: str, path: str, server: str | None = None, **kwargs: Any) -> Any:
        return super()._request(method, path, server=server or self._active_servers[0], **kwargs)


class Connection:
    """A pool of connections for the threads of this process; none is open before the first use."""

    def __init__(self, url: str, user: str, password: str | None, timeout: float) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise SettingsError(f"crate.url is no address such as http://127.0.0.1:4200: {url!r}")
        self._client = _OneServer(
            [url.rstrip("/")],
            timeout=urllib3.Timeout(connect=min(CONNECT_SECONDS, timeout), read=timeout),
            username=user,
            password=password,
            pool_size=_THREADS,
            compress=False,
        )
        self._pinger = _OneServer(
            [url.rstrip("/")],
            timeout=min(PING_SECONDS, timeout),
            username=user,
            password=password,
            compress=False,
        )

    def ping(self) -> None:
        """Raise StoreDown unless the server answers."""
        try:
            self._pinger.sql("SELECT 1")
        except Error as error:
            raise _translated(error) from error

    def run(self, sql: Sql) -> list[list[Any]]:
        """Run one statement and give its rows."""
        try:
            answer = self._client.sql(sql.text, list(sql.args) or None)
        except Error as error:
            raise _translated(error) from error
        return list(answer.get("rows", []))

    def run_many(self, text: str, rows: Sequence[Sequence[object]]) -> dict[int, str]:
        """Run one statement for each row; the reason for each, by its place, that was refused.

        The server says so in its answer alone, and names the reasons of the first ten only.
        """
        try:
            answer = self._client.sql(text, None, list(rows))
        except Error as error:
            raise _translated(error) from error
        refused: dict[int, str] = {}
        for place, result in enumerate(answer["results"]):
            if result["rowcount"] < 0:
                refused[place] = _reason(result)
        return refused

    def close(self) -> None:
        """Close the sockets."""
        self._client.close()
        self._pinger.close()


def _reason(result: Mapping[str, Any]) -> str:
    message = str((result.get("error") or {}).get("message", ""))
    name = _name(message)
    if _DOWN.search(name) or name == "ClusterBlockException":
        raise _named(name, message)
    return f"CrateDB refused it ({name or 'no reason given'})"


def _name(message: str) -> str:
    found = re.match(r"\w+(?=\[)", message)
    return found[0] if found else ""


def _translated(error: Error) -> Exception:
    """Our error for the vendor's; its text is not passed on, since it may quote a value."""
    message = str(getattr(error, "message", error))
    if isinstance(error, NoConnection):
        cause = type(error.__cause__).__name__ if error.__cause__ else "unavailable"
        return StoreDown(f"CrateDB does not answer ({cause}).")
    name = _name(message)
    if name:
        return _named(name, message)
    if message.startswith("401 ") or "authentication failed" in message:
        return StoreDown("CrateDB does not let us in.", hint="Check crate.user and crate.password.")
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
