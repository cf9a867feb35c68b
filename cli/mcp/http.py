"""The MCP server over streamable HTTP.

A request must carry the server's key, which is also sent to the API. The Host and Origin checks
refuse web pages of other names, as another site could rebind its own name to this address.
"""

import json
import socket
from collections.abc import Callable, Sequence

import uvicorn
from cachetools import TTLCache
from mcp.server.mcpserver import MCPServer
from mcp.server.transport_security import TransportSecuritySettings
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from callslip.config.settings import LOOPBACK
from callslip.errors import CallslipError, KeyRefused, StartError, TooManyRequests
from callslip.http.addresses import network_of
from callslip.keys import bearer, fits

PATH = "/mcp"

LARGEST_BODY = 16 << 20
"""Bytes: the longest text of a call, if each letter is a Korean one in the longest JSON form."""

STOP_SECONDS = 3


def app(server: MCPServer, names: Sequence[str], key: str | None) -> ASGIApp:
    """Make the ASGI app; it accepts these host names, and those of LOOPBACK, on any port."""
    hosts = [f"[{name}]" if ":" in name else name for name in (*LOOPBACK, *names)]
    security = TransportSecuritySettings(
        allowed_hosts=[*hosts, *(f"{host}:*" for host in hosts)],
        allowed_origins=[f"http://{host}{port}" for host in hosts for port in ("", ":*")],
    )
    inner = server.streamable_http_app(
        streamable_http_path=PATH,
        stateless_http=True,
        max_request_body_size=LARGEST_BODY,
        transport_security=security,
    )
    return inner if key is None else KeyCheck(inner, key)


def serve(
    server: MCPServer,
    host: str,
    port: int,
    names: Sequence[str],
    key: str | None,
    echo: Callable[[str], None],
) -> None:
    """Serve until SIGINT or SIGTERM; raise StartError if the address is in use."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, port), family=family)
    except OSError as error:
        raise StartError(
            f"The MCP server cannot listen on port {port} of {host}: {error.strerror}.",
            hint="Give another with --port; 0 takes a free one.",
        ) from error
    at = f"[{host}]" if ":" in host else host
    echo(f"MCP server: http://{at}:{listening.getsockname()[1]}{PATH}")
    config = uvicorn.Config(
        app(server, (host, *names), key),
        log_config=None,
        access_log=False,
        ws="none",
        timeout_graceful_shutdown=STOP_SECONDS,
    )
    with listening:
        uvicorn.Server(config).run(sockets=[listening])


FREE, FORGOTTEN_SECONDS = 5, 900.0
"""Wrong keys of an address after which its keys are not compared, and how long that lasts."""


class KeyCheck:
    """Responds with 401 to any request without the key, and with 429 after many wrong ones."""

    def __init__(self, inner: ASGIApp, key: str) -> None:
        self._inner, self._key = inner, key
        self._wrong: TTLCache[str, int] = TTLCache(10_000, FORGOTTEN_SECONDS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request, or the start and stop of the server."""
        if scope["type"] == "http":
            key = bearer(Headers(scope=scope).get("authorization"))
            address = network_of(scope["client"][0]) if scope.get("client") else ""
            wrong = self._wrong.get(address, 0)
            if wrong >= FREE:
                await _refuse(send, TooManyRequests)
                return
            if not fits(key, self._key):
                if key is not None:
                    self._wrong[address] = wrong + 1
                await _refuse(send, KeyRefused)
                return
        await self._inner(scope, receive, send)


async def _refuse(send: Send, error: type[CallslipError]) -> None:
    body = json.dumps({"error": error.slug, "error_description": error.hint}).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"www-authenticate", b'Bearer realm="Callslip"'),
        (b"retry-after", str(int(FORGOTTEN_SECONDS)).encode()),
    ][: 3 if error is KeyRefused else 4]
    await send({"type": "http.response.start", "status": error.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
