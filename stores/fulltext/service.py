"""Keyword indexes of a service on another machine (`callslip run keyword`), over HTTP."""

import json
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, closing, suppress
from typing import Any

import httpx

from callslip.config.settings import KeywordSettings
from callslip.errors import (
    CallslipError,
    CollectionNotFound,
    InvalidFilter,
    KeyRefused,
    KeywordsDown,
    SettingsError,
    StoreReadOnly,
)
from callslip.http import deadline
from callslip.problems import error_of
from callslip.stores.batching import slices
from callslip.stores.fulltext import wire
from callslip.stores.fulltext.contract import (
    LOCK_SECONDS,
    Check,
    Entry,
    KeywordIndexes,
    Keywords,
    Missing,
)
from callslip.stores.properties.filters import Where
from callslip.stores.properties.terms import PropertyTerm
from callslip.stores.records import RetrieverHit, Scalar
from callslip.stores.servers import breaker
from callslip.stores.servers.breaker import Breaker

SERVICE = "The service of the keyword index"

PING_SECONDS = 5.0
"""The time limit of a ping that is no breaker's."""

LONGEST_SHARE = 2.5
"""The time limit in seconds of a call with a deadline, of which it may take half of the time left:
the vector retriever must still be able to answer alone."""

COMPACT_TIMES = 10
"""A compaction may take this many times as long as another call."""

RESERVED_SECONDS, RESERVED_PAUSE = 60.0, 0.05
"""How long a reservation lasts that is not renewed, and the pause before the next attempt."""

IDLE_SECONDS = 5.0
"""Seconds for which an idle connection is reused; the service closes it much later."""

BYTES_PER_CALL, IDS_PER_CALL = 4_000_000, 50_000

_REFUSED = (InvalidFilter, StoreReadOnly)
"""Errors of the index itself, which the service names by their slug."""


class KeywordService(KeywordIndexes):
    """The client of one process, shared by its threads. Create it after the fork, like the store.

    A call without a response makes further calls fail at once until the service answers a ping.
    """

    def __init__(self, settings: KeywordSettings) -> None:
        """`settings` have the address and the key."""
        assert settings.url is not None  # noqa: S101 - for mypy
        assert settings.key is not None  # noqa: S101 - for mypy
        self._settings = settings
        self._url = settings.url.rstrip("/")
        self._headers = {
            "Authorization": f"Bearer {settings.key.get_secret_value()}",
            "Content-Type": "application/json",
        }
        self._lock = threading.Lock()
        self._http: httpx.Client | None = None
        self._closed = False
        self._breaker = Breaker(SERVICE, self._answers, KeywordsDown)

    def of(self, name: str, collection: str, missing: Missing) -> Keywords:
        return ServedIndex(self, name, missing)

    def ping(self, seconds: float | None = None) -> None:
        """Raise KeywordsDown unless the service answers within `seconds`, and takes the key.

        By default at once if the breaker is open, and within the share of the deadline.
        """
        if seconds is None:
            self._breaker.check()
            seconds = deadline.share(PING_SECONDS)
        self._send("GET", wire.READY, b"", seconds)

    def _answers(self) -> None:
        with suppress(WrongKey):
            if not self._closed:
                self.ping(breaker.PING_SECONDS)

    def probe(self) -> None:
        index, mark = self.of(wire.PROBE, wire.PROBE, _no_probe), uuid.uuid4().hex
        index.create()
        index.upsert([Entry(wire.PROBE, mark, {})])
        hits = index.search(mark, 1, None)
        if [hit.chunk_id for hit in hits] != [wire.PROBE]:
            raise KeywordsDown(f"{SERVICE} does not find what was written.")

    def close(self) -> None:
        self._breaker.close()
        with self._lock:
            self._closed = True
            if self._http is not None:
                self._http.close()
                self._http = None

    def call(self, name: str, call: str, arguments: object, missing: Missing) -> Any:
        """The result of a call, of the protocol in `wire`. Raises what `Keywords` raises."""
        self._breaker.check()
        seconds = self._settings.timeout_seconds * (COMPACT_TIMES if call == "compact" else 1)
        if deadline.left() is not None:
            seconds = deadline.share(LONGEST_SHARE)
        path, body = wire.PATH.format(name=name, call=call), wire.dump(arguments)
        try:
            return self._breaker.call(lambda: self._send("POST", path, body, seconds))
        except CollectionNotFound:
            raise missing() from None

    def _send(self, method: str, path: str, body: bytes, seconds: float) -> Any:
        limits = httpx.Timeout(seconds, connect=min(seconds, PING_SECONDS))

        def exchange() -> httpx.Response:
            return self._client().request(
                method, self._url + path, content=body, headers=self._headers, timeout=limits
            )

        try:
            try:
                response = exchange()
            except (httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError):
                response = exchange()  # an idle connection to a service that was restarted
        except httpx.HTTPError as error:
            raise KeywordsDown(f"{SERVICE} does not answer ({type(error).__name__}).") from error
        if response.status_code == httpx.codes.NO_CONTENT:
            return None
        try:
            value = json.loads(response.content)
            if response.status_code == httpx.codes.OK:
                return value[wire.RESULT]
            fault = error_of(value)
        except (ValueError, KeyError, TypeError, AttributeError):
            raise KeywordsDown(f"Something else answers at keyword.url: {self._url}") from None
        if isinstance(fault, (CollectionNotFound, *_REFUSED)):
            raise fault
        if isinstance(fault, KeyRefused):
            raise WrongKey(
                f"{SERVICE} at {self._url} refuses keyword.key.",
                hint="Set the same secret for the service and its clients.",
            )
        raise KeywordsDown(f"{SERVICE} answers: {fault.detail}", hint=fault.advice)

    def _client(self) -> httpx.Client:
        with self._lock:
            if self._closed:
                raise KeywordsDown(f"The connection to {SERVICE} is closed.")
            if self._http is None:
                self._http = httpx.Client(
                    limits=httpx.Limits(max_connections=None, keepalive_expiry=IDLE_SECONDS),
                    verify=self._url.startswith("https:"),
                    trust_env=False,
                )
            return self._http


def check_key(settings: KeywordSettings) -> None:
    """Raise SettingsError if the service answers that `keyword.key` is another one.

    A service that does not answer may be started later.
    """
    if settings.url is None:
        return
    with closing(KeywordService(settings)) as service:
        try:
            service.ping(PING_SECONDS)
        except WrongKey as error:
            raise SettingsError(error.detail, hint=error.advice) from None
        except KeywordsDown:
            return


class WrongKey(KeywordsDown):
    """The service does not take the key; a person has to set it."""


def _no_probe() -> KeywordsDown:
    return KeywordsDown(f"{SERVICE} has lost what was written.")


class ServedIndex(Keywords):
    """One index of the service."""

    def __init__(self, service: KeywordService, name: str, missing: Missing) -> None:
        self._service, self._name, self._missing = service, name, missing

    def _call(self, call: str, **arguments: object) -> Any:
        return self._service.call(self._name, call, arguments, self._missing)

    def create(self) -> None:
        self._call("create")

    def drop(self) -> None:
        self._call("drop")

    def upsert(self, entries: Sequence[Entry]) -> None:
        """Write the entries in calls of at most BYTES_PER_CALL, each of which is one commit."""
        for some in slices(entries, count=IDS_PER_CALL, size=BYTES_PER_CALL, size_of=_size):
            self._call("upsert", entries=wire.entries_json(some))

    def delete(self, chunk_ids: Iterable[str]) -> None:
        for some in slices(chunk_ids, count=IDS_PER_CALL, size=BYTES_PER_CALL, size_of=len):
            self._call("delete", ids=some)

    def compact(self) -> None:
        self._call("compact")

    def undisturbed(self) -> AbstractContextManager[Check]:
        return _Reservation(self._call)

    def search(self, terms: str, limit: int, where: Where | None) -> list[RetrieverHit]:
        hits = self._call("search", terms=terms, limit=limit, where=wire.where_json(where))
        return [RetrieverHit(chunk_id, score) for chunk_id, score in hits]

    def ids(self, where: Where | None) -> list[str]:
        return list(self._call("ids", where=wire.where_json(where)))

    def ids_among(self, chunk_ids: Sequence[str], where: Where) -> set[str]:
        return set(self._call("ids_among", ids=list(chunk_ids), where=wire.where_json(where)))

    def ids_having(self, item: PropertyTerm) -> list[str]:
        return list(self._call("ids_having", item=list(item)))

    def terms(self, chunk_ids: Sequence[str]) -> dict[str, str]:
        return dict(self._call("terms", ids=list(chunk_ids)))

    def copies(self, chunk_ids: Sequence[str]) -> dict[str, str]:
        return dict(self._call("copies", ids=list(chunk_ids)))

    def properties(self, chunk_ids: Sequence[str]) -> dict[str, dict[str, Any]]:
        return dict(self._call("properties", ids=list(chunk_ids)))

    def values(self, name: str) -> list[str]:
        return list(self._call("values", name=name))

    def count(self, where: Where | None) -> int:
        return int(self._call("count", where=wire.where_json(where)))

    def groups(self, prop: str, where: Where | None) -> list[tuple[Scalar, int]]:
        groups = self._call("groups", prop=prop, where=wire.where_json(where))
        return [(value, count) for value, count in groups]


def _size(entry: Entry) -> int:
    return len(entry.terms) + len(entry.copy)


class _Reservation:
    """A reservation of an index, which a thread renews until the block ends."""

    def __init__(self, call: Callable[..., Any]) -> None:
        self._call, self._holder = call, uuid.uuid4().hex
        self._until, self._lost = 0.0, False
        self._ended = threading.Event()
        self._renewer = threading.Thread(target=self._renew, name="reservation", daemon=True)

    def __enter__(self) -> Check:
        latest = time.monotonic() + LOCK_SECONDS
        while not self._reserve(again=False):
            if time.monotonic() > latest:
                raise KeywordsDown("Another process compacts or deletes for too long.")
            time.sleep(RESERVED_PAUSE)
        self._renewer.start()
        return self._check

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._ended.set()
        self._renewer.join()
        try:
            if kind is None and (self._lost or time.monotonic() > self._until):
                self._check()
        finally:
            with suppress(CallslipError):  # then it ends by itself
                self._call("release", holder=self._holder)

    def _check(self) -> None:
        """Raise KeywordsDown unless the index is reserved for RESERVED_SECONDS from now on."""
        if self._lost or not self._reserve(again=True):
            self._lost = True
            raise KeywordsDown("Another process may have compacted or deleted meanwhile.")

    def _renew(self) -> None:
        while not self._ended.wait(RESERVED_SECONDS / 3):
            with suppress(CallslipError):  # the next attempt may succeed, or `_check` fails
                if not self._reserve(again=True):
                    self._lost = True
                    return

    def _reserve(self, *, again: bool) -> bool:
        until = time.monotonic() + RESERVED_SECONDS
        reserved = self._call("reserve", holder=self._holder, seconds=RESERVED_SECONDS, again=again)
        if reserved:
            self._until = until
        return bool(reserved)
