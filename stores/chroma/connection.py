"""The connection to a Chroma server, opened at the first use. Raises Callslip's errors."""

import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar
from urllib.parse import quote, urlsplit

import httpx
from chromadb.api import ClientAPI
from chromadb.api.client import Client
from chromadb.api.models.Collection import Collection
from chromadb.auth import UserIdentity
from chromadb.config import DEFAULT_DATABASE, DEFAULT_TENANT, Settings
from chromadb.errors import ChromaError, InternalError, NotFoundError

from callslip.errors import NotFound, SettingsError, StoreDown, StoreReadOnly
from callslip.http import deadline
from callslip.stores.servers import breaker
from callslip.stores.servers.absence import believed
from callslip.stores.servers.breaker import Breaker
from callslip.stores.servers.garbled import is_garbled
from callslip.stores.setup import check_version

PING_SECONDS = 5.0
REQUEST_SECONDS = 60.0
"""The time limit of a request. The client's default is to wait forever."""

LONGEST_SHARE = 2.5
"""The time limit in seconds of a request with a deadline, of which it may take half of the time
left: the keyword retriever must still be able to answer alone.
"""
PROBE_SECONDS = 5.0
"""The time limit of each request of a probe; the server answers within milliseconds."""

PROBE = "callslip-probe"
"""The Chroma collection, and the row in it, that a probe writes."""

_PAGE = 500

_UNWRITTEN = "Nothing found on disk"
_PAUSES = (0.02, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2)

_READ_ONLY = ("readonly", "read-only", "disk is full", "No space left")

T = TypeVar("T")

Missing = Callable[[], NotFound]
"""Makes the error for a Chroma collection that does not exist."""


class Connection:
    """The client of one process, shared by its threads. Create it after the fork, like the store.

    Callslip uses Chroma only over HTTP: two processes with one embedded client lose vectors
    without an error.
    """

    def __init__(self, url: str, tenant: str | None = None) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise SettingsError(f"chroma.url is no address such as http://127.0.0.1:8000: {url!r}")
        self._url = url.rstrip("/")
        self._tenant = tenant or DEFAULT_TENANT
        self._ssl = parts.scheme == "https"
        self._host = parts.hostname
        self._port = parts.port or (443 if self._ssl else 80)
        self._lock = threading.Lock()
        self._client: ClientAPI | None = None
        self._handles: dict[str, Collection] = {}
        self._breaker = Breaker("Chroma", lambda: self.ping(breaker.PING_SECONDS))

    def ping(self, seconds: float | None = None) -> None:
        """Raise StoreDown unless the server answers within `seconds`.

        By default at once if the breaker is open, and within the share of the deadline.
        """
        if seconds is None:
            self._breaker.check()
            seconds = deadline.share(PING_SECONDS)
        with answering():
            # Without TLS, to read the certificates would take most of the time of a ping.
            httpx.get(
                f"{self._url}/api/v2/heartbeat", timeout=seconds, verify=self._ssl
            ).raise_for_status()

    def probe(self) -> None:
        """Write a row into a Chroma collection of its own and read it back.

        Raises StoreDown, or StoreReadOnly if the server cannot write. The requests have shorter
        time limits than those of the client.
        """
        mark = uuid.uuid4().hex
        at = f"{self._url}/api/v2/tenants/{quote(self._tenant, safe='')}"
        at += f"/databases/{DEFAULT_DATABASE}/collections"
        with answering(), httpx.Client(timeout=PROBE_SECONDS, verify=self._ssl) as http:

            def post(url: str, **body: object) -> Any:
                response = http.post(url, json=body)
                if any(sign in response.text for sign in _READ_ONLY):
                    raise read_only()
                return response.raise_for_status().json()

            at += f"/{post(at, name=PROBE, get_or_create=True)['id']}"
            post(f"{at}/upsert", ids=[PROBE], embeddings=[[1.0]], documents=[mark])
            if post(f"{at}/get", ids=[PROBE], include=["documents"])["documents"] != [mark]:
                raise StoreDown("Chroma gives back another row than was written.")

    def client(self) -> ClientAPI:
        """The connected client."""
        with self._lock:
            if self._client is None:
                self.ping()  # the constructor would wait longer
                self._check_version()
                try:
                    client = _Client(
                        tenant=self._tenant,
                        settings=Settings(
                            _env_file=None,  # type: ignore[call-arg]  # no .env of the folder
                            anonymized_telemetry=False,
                            chroma_api_impl="chromadb.api.fastapi.FastAPI",
                            chroma_server_host=self._host,
                            chroma_server_http_port=self._port,
                            chroma_server_ssl_enabled=self._ssl,
                        ),
                    )
                except NotFoundError as error:
                    raise StoreDown("Chroma has no tenant of the name in chroma.tenant.") from error
                except Exception as error:  # such as ValueError, if the server is away
                    raise StoreDown(f"Chroma does not answer ({type(error).__name__}).") from error
                for session in _sessions(client):
                    session.event_hooks["request"].append(self._bound)
                self._client = client
            return self._client

    def _check_version(self) -> None:
        """Raise StoreTooOld if the server is older than the supported versions."""
        with answering():
            seconds = deadline.share(PING_SECONDS)
            answer = httpx.get(f"{self._url}/api/v2/version", timeout=seconds, verify=self._ssl)
            version = answer.raise_for_status().json()
        try:
            check_version("Chroma", str(version))
        except ValueError:
            raise _another_program() from None

    def _bound(self, request: httpx.Request) -> None:
        """Refuse a request at once if the server is down; limit its time by the deadline."""
        self._breaker.check()
        if deadline.left() is not None:
            request.extensions["timeout"] = httpx.Timeout(deadline.share(LONGEST_SHARE)).as_dict()

    def on(self, name: str, missing: Missing, act: Callable[[Collection], T]) -> T:
        """Call `act` with a Chroma collection, whose handle is cached.

        A handle becomes stale if another process drops the collection and creates it again: then
        the handle is looked up once more. Raises the error of `missing` if there is no collection.
        """

        def ask() -> T:
            for _ in range(2):
                try:
                    with self.answering():
                        return self._patiently(name, act)
                except NotFoundError:
                    self._handles.clear()
            raise missing()

        return believed(lambda: self._breaker.call(ask), self.ping)

    def about(self, name: str, missing: Missing) -> Mapping[str, Any]:
        """The metadata of a Chroma collection, without a request if its handle is cached.

        Raises what `on` raises, also if the server is known to be down.
        """
        handle = self._handles.get(name)
        if handle is None:
            return self.on(name, missing, lambda at: at.metadata)
        self._breaker.check()
        return handle.metadata

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
        with self.answering():
            while page := self.client().list_collections(limit=_PAGE, offset=len(names_)):
                names_ += [each.name for each in page]
        return names_

    def rows_per_call(self) -> int:
        """The server's limit on the rows of a request."""
        with self.answering():
            limit: object = self.client().get_max_batch_size()
            if not isinstance(limit, int) or limit < 1:  # the client reads a missing one as -1
                raise _another_program()
            return limit

    @contextmanager
    def answering(self) -> Iterator[None]:
        """Raise what the function `answering` does, for calls of the client.

        The client keeps the server's answer about its limits forever, also one that is not the
        server's. After a failure the client requests the limits again.
        """
        try:
            with answering():
                yield
        except StoreDown:
            if client := self._client:
                client._server.pre_flight_checks = None  # type: ignore[attr-defined]
            raise

    def forget(self, name: str) -> None:
        """Discard the cached handle of a Chroma collection."""
        self._handles.pop(name, None)

    def drop(self, name: str) -> None:
        """Remove a Chroma collection. Idempotent."""
        self.forget(name)
        try:
            with self.answering():
                self.client().delete_collection(name)
        except NotFoundError:
            self.ping()

    def close(self) -> None:
        """Close the sockets; the client's own `close` leaves them open."""
        self._breaker.close()
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
            raise read_only() from error
        raise StoreDown("Chroma answered with an internal error; its log says more.") from error
    except (NotFoundError, ChromaError):
        raise
    except Exception as error:
        # The client raises a bare Exception for an answer that is not Chroma's, such as a proxy's.
        if type(error) is Exception or is_garbled(error):
            raise _another_program() from error
        raise


def _another_program() -> StoreDown:
    return StoreDown("Something that is not Chroma answered at chroma.url.")


def read_only() -> StoreReadOnly:
    """The error for a server that cannot write."""
    return StoreReadOnly("Chroma takes nothing: its disk is full or read-only.")


class _Client(Client):
    """The vendor's client with time limits, which it needs before its first requests.

    The constructor sends these requests by both methods; the client has no setting for limits.
    """

    def get_user_identity(self) -> UserIdentity:
        with _limited(self):
            return super().get_user_identity()

    def _validate_tenant_database(self, tenant: str, database: str) -> None:
        with _limited(self):
            super()._validate_tenant_database(tenant, database)


@contextmanager
def _limited(client: ClientAPI) -> Iterator[None]:
    """Limit the time of the client's requests; close its sessions if the first ones fail.

    The caller of the constructor never has a client that failed, so nobody else closes them.
    """
    for session in _sessions(client):
        session.timeout = httpx.Timeout(REQUEST_SECONDS, connect=PING_SECONDS)
    try:
        yield
    except Exception:
        for session in _sessions(client):
            session.close()
        raise


def _sessions(client: ClientAPI) -> Iterator[httpx.Client]:
    """The HTTP sessions inside the client, which closes none; the second one is made later."""
    inners: tuple[Any, Any] = (client, getattr(client, "_admin_client", None))
    for inner in filter(None, inners):
        yield inner._server._session
