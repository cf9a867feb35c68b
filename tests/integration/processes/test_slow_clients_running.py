"""Slow clients of a running server, in the four modes of slowhttptest."""

import socket
import time
from contextlib import ExitStack, suppress

import httpx
from long_forms import ALL
from stack import Stack

from callslip.config.settings import Settings

COUNT = 1500 if ALL else 100
"""Connections of each mode; the server has 24 threads in two processes."""

SECONDS = 15.0 if ALL else 1.0
"""How long they go on."""

MODES = {
    "slow headers": "GET /healthz HTTP/1.1\r\nHost: {host}\r\nX-1: ",
    "slow bodies": "POST /v1/search HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
    'Content-Length: 100000\r\n\r\n{{"query": "',
    "slow readers": "GET /openapi.json HTTP/1.1\r\nHost: {host}\r\n\r\n",
    "ranges": "GET /static/page.js HTTP/1.1\r\nHost: {host}\r\nRange: bytes=0-"
    f"{''.join(f',5-{end}' for end in range(6, 1200))}\r\n\r\n",
}


def test_the_server_answers_at_once_whatever_slow_clients_do(stack: Stack) -> None:
    url = httpx.URL(stack.url)
    address = (url.host, url.port or 80)
    worst = 0.0
    with ExitStack() as opened, httpx.Client(base_url=url, trust_env=False, timeout=10) as probes:
        clients = []
        for start in MODES.values():
            for _ in range(COUNT):
                client = opened.enter_context(socket.socket())
                client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 12)
                client.connect(address)
                client.sendall(start.format(host=url.netloc.decode()).encode())
                clients.append(client)
        until = time.monotonic() + SECONDS
        while time.monotonic() < until:
            for client in clients[: 2 * COUNT]:
                with suppress(OSError):  # the server has closed it
                    client.send(b"a")
            before = time.monotonic()
            probe = probes.get("/healthz", headers={"Connection": "close"})
            worst = max(worst, time.monotonic() - before)
            assert probe.status_code == 200
            time.sleep(0.05)
    api = Settings().api
    assert worst < min(api.header_seconds, api.stall_seconds) / 2, (
        "a probe waited for a slow client"
    )
