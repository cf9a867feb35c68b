"""The connection to a Chroma server, opened at the first use. Raises Callslip's errors."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar
from urllib.parse import urlsplit

import chromadb
import httpx
from chromadb.api import ClientAPI
from chromadb.api.models.Collection import Collection
from chromadb.config import Settings
from chromadb.errors import ChromaError, InternalError, NotFoundError

from callslip.errors import NotFound, SettingsError, StoreDown, StoreReadOnly

PING_SECONDS = 5.0
REQUEST_SECONDS = 60.0
"""The time limit of a request. The client's default is to wait forever."""

_PAGE = 500

_UNWRITTEN = "Nothing found on disk"
_PAUSES = (0.02, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2)

_READ_ONLY = ("readonly", "read-only", "disk is full", "No space left")

T = TypeVar("T")


class Connection:
    """The client of one process, shared by its threads. Create it after the fork, like the store.

    Callslip uses Chroma only over HTTP: two processes with one embedded client lose vectors
    without an error.
    """

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise SettingsError(f"chroma.url is no address such as http://127.0.0.1:8000: {url!r}")
        self._url = url.rstrip("/")
        self._ssl = parts.scheme == "https"
        self._host = parts.hostname
        self._port = parts.port or (443 if self._ssl else 80)
        self._lock = threading.Lock()
        self._client: ClientAPI | None = None
        self._handles: dict[str, Collection] = {}

    def ping(self) -> None:
        """Raise StoreDown unless the server answers."""
        with answering():
            # Without TLS, to read the certificates would take most of the time of a ping.
            httpx.get(
                f"{self._url}/api/v2/heartbeat", timeout=PING_SECONDS, verify=self._ssl
            ).raise_for_status()

    def client(self) -> ClientAPI:
        """The connected client."""
        with self._lock:
            if self._client is None:
                self.ping()  # the client's constructor would wait forever
                with answering():
                    self._client = chromadb.HttpClient(
                        self._host,
                        self._port,
                        ssl=self._ssl,
                        settings=Settings(anonymized_telemetry=False),
                    )
                for session in _sessions(self._client):
                    session.timeout = httpx.Timeout(REQUEST_SECONDS, connect=PING_SECONDS)
            return self._client

    def on(self, name: str, missing: NotFound, act: Callable[[Collection], T]) -> T:
        """Call `act` with a Chroma collection, whose handle is cached.

        A handle becomes stale if another process drops the collection and creates it again: then
        the handle is looked up once more. Raises `missing` if the collection does not exist.
        """
        for _ in range(2):
            try:
                with answering():
                    return self._patiently(name, act)
            except NotFoundError:
                self._handles.clear()
        raise missing

    def _patiently(self, name: str, act: Callable[[Collection], T]) -> T:
        """Repeat the call if the server looked for a vector graph that it had not written yet.

        The first readers of a new collection see this error during a write. Every call that
        Callslip makes may be repeated.
        """
        for pause in _PAUSES:
            try:
                return act(self._handle(name))
            except InternalError as error:
                if _UNWRITTEN not in str(error):
                    raise
                time.sleep(pause)
        return act(self._handle(name))

    def _handle(self, name: str) -> Collection:
        handle = self._handles.get(name)
        if handle is None:
            handle = self.client().get_collection(name, embedding_function=None)
            self._handles[name] = handle
        return handle

    def names(self) -> list[str]:
        """The names of all Chroma collections."""
        names_: list[str] = []
        with answering():
            while page := self.client().list_collections(limit=_PAGE, offset=len(names_)):
                names_ += [each.name for each in page]
        return names_

    def forget(self, name: str) -> None:
        """Discard the cached handle of a Chroma collection."""
        self._handles.pop(name, None)

    def drop(self, name: str) -> None:
        """Remove a Chroma collection. Idempotent."""
        self.forget(name)
        try:
            with answering():
                self.client().delete_collection(name)
        except NotFoundError:
            return

    def close(self) -> None:
        """Close the sockets; the client's own `close` leaves them open."""
        with self._lock:
            if self._client is not None:
                for session in _sessions(self._client):
                    session.close()
                self._client = None
                self._handles.clear()


@contextmanager
def answering() -> Iterator[None]:
    """Raise StoreDown if the server is unreachable, fails or is not Chroma.

    Raises StoreReadOnly if the server cannot write. NotFoundError and other ChromaErrors pass
    unchanged.
    """
    try:
        yield
    except httpx.HTTPError as error:
        raise StoreDown(f"Chroma does not answer ({type(error).__name__}).") from error
    except InternalError as error:
        if any(sign in str(error) for sign in _READ_ONLY):
            raise StoreReadOnly("Chroma takes nothing: its disk is full or read-only.") from error
        raise StoreDown("Chroma answered with an internal error; its log says more.") from error
    except (NotFoundError, ChromaError):
        raise
    except Exception as error:
        # The client raises a bare Exception for an answer that is not Chroma's, such as a proxy's.
        if type(error) is Exception:
            raise StoreDown("Something that is not Chroma answered at chroma.url.") from error
        raise


def _sessions(client: ClientAPI) -> Iterator[httpx.Client]:
    """The HTTP sessions inside the client, which has no public setting for time limits."""
    inners: tuple[Any, Any] = (client, client._admin_client)  # type: ignore[attr-defined]
    for inner in inners:
        yield inner._server._session
