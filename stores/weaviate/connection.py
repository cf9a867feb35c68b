"""The connection to a Weaviate server, opened at the first use. Raises Callslip's errors."""

import logging
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar
from urllib.parse import urlsplit

import grpc
import httpx
import weaviate
from weaviate.classes.init import AdditionalConfig, Auth, GrpcConfig, Timeout
from weaviate.collections import Collection
from weaviate.exceptions import (
    AuthenticationFailedError,
    InsufficientPermissionsError,
    UnexpectedStatusCodeException,
    WeaviateConnectionError,
    WeaviateGRPCUnavailableError,
    WeaviateStartUpError,
    WeaviateTimeoutError,
)
from weaviate.proto.v1 import health_weaviate_pb2, weaviate_pb2_grpc

from callslip.errors import SettingsError, StoreDown, StoreReadOnly, StoreTooOld
from callslip.stores.servers import breaker
from callslip.stores.servers.breaker import Breaker
from callslip.stores.servers.garbled import is_garbled
from callslip.stores.setup import check_version

PING_SECONDS = 5.0

GRPC_PORT = 50051

_HEALTH = "/grpc.health.v1.Health/Check"

_CHANNEL: Mapping[str, int] = {
    "grpc.enable_http_proxy": 0,  # as over HTTP
    "grpc.initial_reconnect_backoff_ms": 100,
    "grpc.max_reconnect_backoff_ms": 1000,  # by default, a reconnect can take two minutes
    "grpc.use_local_subchannel_pool": 1,  # else a new channel uses the lost socket of another one
}

_AWAY = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)
_REFUSED = (grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED)

_REFUSED_VERSION = re.compile(r"version (\S+) is not supported")
"""In the client's error for a server that is too old for the client itself."""

T = TypeVar("T")

At = Collection[Any, Any]
"""The client's handle of a class or of one tenant in a class."""


class TooLarge(Exception):
    """A message is larger than the server or the client accepts."""


class Connection:
    """The client of one process, shared by its threads. Create it after the fork, like the store.

    All calls go to the configured server; the first call requests the server's version over HTTP.
    """

    def __init__(
        self, url: str, grpc_url: str | None, api_key: str | None, timeout_seconds: float
    ) -> None:
        self._http = _address("weaviate.url", url, 443)
        self._grpc = (self._http[0], GRPC_PORT, self._http[2])
        if grpc_url:
            self._grpc = _address("weaviate.grpc_url", grpc_url, 443)
        self._api_key = api_key
        self._seconds = timeout_seconds
        self._lock = threading.Lock()
        self._client: weaviate.WeaviateClient | None = None
        self._handles: dict[tuple[str, str], At] = {}
        self._breaker = Breaker("Weaviate", lambda: self._ping_http(breaker.PING_SECONDS))

    def ping(self) -> None:
        """Raise StoreDown unless the server answers over HTTP and gRPC."""
        self._breaker.check()
        self._ping_http(PING_SECONDS)
        client = self.client()
        try:
            with answering():
                call = client._connection._grpc_channel.unary_unary(  # type: ignore[union-attr]
                    _HEALTH,
                    request_serializer=health_weaviate_pb2.WeaviateHealthCheckRequest.SerializeToString,
                    response_deserializer=health_weaviate_pb2.WeaviateHealthCheckResponse.FromString,
                )
                call(health_weaviate_pb2.WeaviateHealthCheckRequest(), timeout=PING_SECONDS)
        except StoreDown:
            self._discard(client)
            raise

    def call(self, act: Callable[[], T]) -> T:
        """The result of `act`, which sends requests. Raises what `answering` does."""

        def answered() -> T:
            with answering():
                return act()

        return self._breaker.call(answered)

    def client(self) -> weaviate.WeaviateClient:
        """The connected client."""
        with self._lock:
            if self._client is None:
                # The client's own first call waits as long as any.
                self._ping_http(min(PING_SECONDS, self._seconds))
                self._client = self._connect()
            return self._client

    def at(self, class_: str, tenant: str = "") -> At:
        """The handle of a class or of one tenant in a class. Sends no request."""
        handle = self._handles.get((class_, tenant))
        if handle is None:
            handle = self.client().collections.use(class_)
            handle = handle.with_tenant(tenant) if tenant else handle
            self._handles[class_, tenant] = handle
        return handle

    def close(self) -> None:
        """Close the sockets."""
        self._breaker.close()
        with self._lock:
            if self._client is not None:
                self._client.close()
                self._client = None
                self._handles.clear()

    def _discard(self, client: weaviate.WeaviateClient) -> None:
        """Connect anew at the next call: nothing came in time, so the connection may be lost.

        A channel of gRPC that lost its connection without a word would use it for many minutes.
        """
        with self._lock:
            if self._client is client:
                self._client = None
                self._handles.clear()
                client.close()

    def _ping_http(self, seconds: float) -> None:
        host, port, secure = self._http
        url = f"http{'s' if secure else ''}://{host}:{port}/v1/.well-known/ready"
        with answering():
            # Reading certificates takes 16 ms, so a ping without TLS reads none.
            httpx.get(url, timeout=seconds, trust_env=False, verify=secure).raise_for_status()

    def _connect(self) -> weaviate.WeaviateClient:
        # The client logs every object that a server refuses, with its text.
        logging.getLogger("weaviate-client").setLevel(logging.CRITICAL)
        seconds = self._seconds
        try:
            client = weaviate.connect_to_custom(
                http_host=self._http[0],
                http_port=self._http[1],
                http_secure=self._http[2],
                grpc_host=self._grpc[0],
                grpc_port=self._grpc[1],
                grpc_secure=self._grpc[2],
                auth_credentials=Auth.api_key(self._api_key) if self._api_key else None,
                additional_config=AdditionalConfig(
                    timeout=Timeout(init=PING_SECONDS, query=seconds, insert=seconds),
                    grpc_config=GrpcConfig(channel_options=list(_CHANNEL.items())),
                ),
                skip_init_checks=True,
            )
        except (AuthenticationFailedError, InsufficientPermissionsError) as error:
            raise _key_refused() from error
        except Exception as error:  # whatever it raises, the server may answer a little later
            if refused := _REFUSED_VERSION.search(str(error)):
                check_version("Weaviate", refused[1])
            raise StoreDown(f"Weaviate does not answer ({type(error).__name__}).") from error
        connection = client._connection
        try:
            check_version("Weaviate", connection.server_version)
        except StoreTooOld:
            client.close()
            raise
        connection._grpc_stub = weaviate_pb2_grpc.WeaviateStub(  # type: ignore[no-untyped-call]
            grpc.intercept_channel(
                connection._grpc_channel, _Promptly(lambda: self._discard(client))
            )
        )
        return client


class _Promptly(grpc.UnaryUnaryClientInterceptor):  # type: ignore[misc]  # grpc is not typed
    """Raises StoreDown at once: the client would sleep for a minute between attempts."""

    def __init__(self, on_silence: Callable[[], None]) -> None:
        """`on_silence` is called when no answer came in time."""
        self._on_silence = on_silence

    def intercept_unary_unary(
        self, continuation: Callable[..., Any], details: object, request: object
    ) -> Any:
        call = continuation(details, request)
        code = call.code()
        if code == grpc.StatusCode.DEADLINE_EXCEEDED:
            self._on_silence()
        if code in _AWAY:
            raise StoreDown(f"Weaviate does not answer ({code.name}).")
        if code in _REFUSED:
            raise _key_refused()
        if code == grpc.StatusCode.RESOURCE_EXHAUSTED:
            raise TooLarge
        return call


@contextmanager
def answering() -> Iterator[None]:
    """Raise StoreDown if the server is unreachable or fails.

    Raises StoreReadOnly if the server cannot write, and SettingsError if it refuses the API key.
    Other errors of the client pass unchanged.
    """
    try:
        yield
    except (httpx.HTTPError, grpc.RpcError) as error:
        raise StoreDown(f"Weaviate does not answer ({type(error).__name__}).") from error
    except (
        WeaviateConnectionError,
        WeaviateGRPCUnavailableError,
        WeaviateStartUpError,
        WeaviateTimeoutError,
    ) as error:
        raise StoreDown(f"Weaviate does not answer ({type(error).__name__}).") from error
    except (AuthenticationFailedError, InsufficientPermissionsError) as error:
        raise _key_refused() from error
    except UnexpectedStatusCodeException as error:
        if is_read_only(str(error)):
            raise read_only() from error
        if error.status_code in (401, 403):
            raise _key_refused() from error
        if error.status_code >= 500:
            raise StoreDown(
                f"Weaviate answered with the status {error.status_code}; its log says more."
            ) from error
        raise
    except Exception as error:
        if is_garbled(error):
            raise StoreDown("Something that is not Weaviate answered at weaviate.url.") from error
        raise


def is_read_only(message: str) -> bool:
    """Tell whether the server's message means that it cannot write."""
    return "read-only" in message or "READONLY" in message


def read_only() -> StoreReadOnly:
    """The error for a server that cannot write."""
    return StoreReadOnly("Weaviate takes nothing: its disk is full or its shard is read-only.")


def _key_refused() -> SettingsError:
    return SettingsError("Weaviate refuses weaviate.api_key, or wants one.")


def _address(setting: str, url: str, port: int) -> tuple[str, int, bool]:
    """Host, port and whether the connection is encrypted. `port` is the default if it is."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https", "grpc", "grpcs") or not parts.hostname:
        raise SettingsError(f"{setting} is no address such as http://127.0.0.1:8080: {url!r}")
    secure = parts.scheme in ("https", "grpcs")
    return parts.hostname, parts.port or (port if secure else 80), secure
