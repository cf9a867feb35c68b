"""A fake of CrateDB's HTTP interface, for machines without the server: `fake_crate.py PORT FILE`.

It knows the SQL that the store says and refuses the rest; what it knows it means as CrateDB 6.4
does, and the contract suite holds it to that. The file is its journal: what was acknowledged is
there again after a start.
"""

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from fake_crate_parse import Refused
from fake_crate_run import Cluster

_INFO = {"ok": True, "status": 200, "name": "fake", "version": {"number": "6.4.3"}}


class Server:
    """One cluster, one statement at a time, and its journal."""

    def __init__(self, journal: Path) -> None:
        self._cluster = Cluster()
        self._lock = threading.Lock()
        for line in journal.read_text().splitlines() if journal.exists() else ():
            self._answer(json.loads(line))
        self._journal = journal.open("a")

    def answer(self, request: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        with self._lock:
            status, answer = self._answer(request)
            if status == 200 and not request["stmt"].startswith(("SELECT", "WITH", "SHOW")):
                self._journal.write(json.dumps(request) + "\n")
                self._journal.flush()
            return status, answer

    def _answer(self, request: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        statement, many = request["stmt"], request.get("bulk_args")
        try:
            if many is not None:
                return 200, {"cols": [], "results": self._cluster.run_many(statement, many)}
            rows, count = self._cluster.run(statement, request.get("args") or [])
            columns = self._cluster.columns(statement)
            return 200, {"cols": columns, "rows": rows, "rowcount": count}
        except Refused as error:
            return error.status, {"error": {"message": str(error), "code": error.code}}


class Handler(BaseHTTPRequestHandler):
    """`POST /_sql` and `GET /`."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1  # headers and body in one packet: two wait 40 ms for each other
    server_of_all: Server

    def do_GET(self) -> None:
        self._send(200, _INFO)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self._send(*self.server_of_all.answer(json.loads(body)))

    def _send(self, status: int, answer: dict[str, Any]) -> None:
        body = json.dumps(answer, default=lambda vector: vector.tolist()).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Keep quiet."""


def main() -> None:
    """Serve until killed; the first line of output is the port."""
    Handler.server_of_all = Server(Path(sys.argv[2]))
    server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
    server.daemon_threads = True
    sys.stdout.write(f"{server.server_port}\n")
    sys.stdout.flush()
    server.serve_forever()


if __name__ == "__main__":
    main()
