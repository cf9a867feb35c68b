"""An embeddings server with OpenAI's protocol, which is quick, and fails for poison documents."""

import hashlib
import json
import os
import signal
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler

import psutil
from documents import MARKS
from loopback import LoopbackServer

DIMENSION = 16


class EmbeddingServer(LoopbackServer):
    """Gives each text a vector of its hash.

    For the text of a poison document it kills the process that asks, or never answers.
    """

    def __init__(self) -> None:
        super().__init__(_Handler)
        self.killed = 0
        self.counting = threading.Lock()

    @property
    def environ(self) -> dict[str, str]:
        """The settings of a stack that uses it."""
        return {
            "CALLSLIP_EMBEDDER__KIND": "openai",
            "CALLSLIP_EMBEDDER__BASE_URL": f"http://127.0.0.1:{self.server_port}/v1",
            "CALLSLIP_EMBEDDER__MODEL": "hashes",
            "CALLSLIP_EMBEDDER__DIMENSION": str(DIMENSION),
        }


class _Handler(BaseHTTPRequestHandler):
    server: EmbeddingServer
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        texts = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["input"]
        if any(MARKS["kills"] in text for text in texts):
            self._kill_client()
            self.close_connection = True
            return
        if any(MARKS["hangs"] in text for text in texts):
            self.server.ending.wait(60)
            self.close_connection = True
            return
        data = [{"index": n, "embedding": _vector(text)} for n, text in enumerate(texts)]
        body = json.dumps({"object": "list", "data": data, "model": "hashes"}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _kill_client(self) -> None:
        """Kill the process at the other end of this connection.

        A connection of another process to another server may have the same port at its end.
        """
        ends = self.client_address, self.request.getsockname()
        for connection in psutil.net_connections("tcp4"):
            if (connection.laddr, connection.raddr) == ends and connection.pid is not None:
                with suppress(ProcessLookupError):
                    os.kill(connection.pid, signal.SIGKILL)
                with self.server.counting:
                    self.server.killed += 1

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def _vector(text: str) -> list[float]:
    return [byte - 127.5 for byte in hashlib.sha256(text.encode()).digest()[:DIMENSION]]
