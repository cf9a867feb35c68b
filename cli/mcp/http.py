"""The MCP server over streamable HTTP.

A request must carry the server's key, which is also sent to the API. The Host and Origin checks
refuse web pages of other names, as another site could rebind its own name to this address.
"""

import json
import socket
from collections.abc import Callable, Sequence

import uvicorn
from mcp.server.mcpserver import MCPServer
from mcp.server.transport_security import TransportSecuritySettings
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from callslip.config.settings import LOOPBACK
from callslip.errors import KeyRefused, StartError
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


class KeyCheck:
    """Responds with 401 to any request without the key."""

    def __init__(self, inner: ASGIApp, key: str) -> None:
        self._inner, self._key = inner, key

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request, or the start and stop of the server."""
        if scope["type"] == "http":
            key = bearer(Headers(scope=scope).get("authorization"))
            if not fits(key, self._key):
                await _refuse(send)
                return
        await self._inner(scope, receive, send)


async def _refuse(send: Send) -> None:
    body = json.dumps({"error": KeyRefused.slug, "error_description": KeyRefused.hint}).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"www-authenticate", b'Bearer realm="Callslip"'),
    ]
    await send({"type": "http.response.start", "status": KeyRefused.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
