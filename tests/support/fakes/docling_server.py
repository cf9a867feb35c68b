"""A layout server: docling-serve's protocol on a real socket, scripted documents and faults."""

import email
import email.policy
import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = tuple[int, bytes]


def item(
    number: int, text: str, label: str = "text", page: int = 1, **more: object
) -> dict[str, Any]:
    """A text of a document, 20 points high, below the ones before it on its page of 800 points."""
    top = 800 - 40 * (number + 1)
    box = {"l": 50.0, "t": top, "r": 500.0, "b": top - 20, "coord_origin": "BOTTOMLEFT"}
    place = {"page_no": page, "bbox": box, "charspan": [0, len(text)]}
    own = {"self_ref": f"#/texts/{number}", "label": label, "text": text, "orig": text}
    return {**own, "content_layer": "body", "children": [], "prov": [place], **more}


def table(*rows: tuple[str, ...], page: int = 1) -> dict[str, Any]:
    """A table whose first row has the names of the columns."""
    cells = [
        {
            "text": text,
            "start_row_offset_idx": y,
            "start_col_offset_idx": x,
            "column_header": y == 0,
        }
        for y, row in enumerate(rows)
        for x, text in enumerate(row)
    ]
    box = {"l": 50.0, "t": 300.0, "r": 500.0, "b": 200.0, "coord_origin": "BOTTOMLEFT"}
    data = {"num_rows": len(rows), "num_cols": len(rows[0]), "table_cells": cells}
    place = {"page_no": page, "bbox": box, "charspan": [0, 0]}
    return {"self_ref": "#/tables/0", "label": "table", "prov": [place], "data": data}


def docling_document(
    texts: list[dict[str, Any]], tables: list[dict[str, Any]] | None = None, **more: object
) -> dict[str, Any]:
    """A document of these texts, then these tables, on pages of 600 by 800 points."""
    tables = tables or []
    numbers = {place["page_no"] for each in [*texts, *tables] for place in each.get("prov", ())}
    pointers = [f"#/texts/{n}" for n in range(len(texts))]
    pointers += [f"#/tables/{n}" for n in range(len(tables))]
    size = {"width": 600.0, "height": 800.0}
    return {
        "schema_name": "DoclingDocument",
        "version": "1.8.0",
        "name": "document",
        "body": {"self_ref": "#/body", "children": [{"$ref": each} for each in pointers]},
        "groups": [],
        "texts": texts,
        "pictures": [],
        "tables": tables,
        "pages": {str(number): {"size": size, "page_no": number} for number in numbers},
        **more,
    }


class DoclingServer:
    """Answers with `document` after `polls` requests for the state of its task.

    `faults` are answers by the end of the path, instead of the usual ones. `key` is required.
    """

    def __init__(self) -> None:
        self.document: dict[str, Any] = docling_document([item(0, "Read by models.")])
        self.polls = 1
        self.state, self.status = "success", "success"
        self.key: str | None = None
        self.faults: dict[str, Callable[[], Answer]] = {}
        self.files: list[tuple[str, str, bytes]] = []
        """Name, media type and content of each file that was sent."""
        self.options: dict[str, str] = {}
        self.requests: list[str] = []
        self._left = 0
        fake = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self._reply(fake.answer(self.path, dict(self.headers.items()), b""))

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                self._reply(fake.answer(self.path, dict(self.headers.items()), body))

            def _reply(self, answer: Answer) -> None:
                status, content = answer
                self.send_response(status)
                self.send_header("Content-Length", str(len(content)))
                self.send_header("Content-Type", "application/json")
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._server.block_on_close = False
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def answer(self, path: str, headers: dict[str, str], body: bytes) -> Answer:
        """Answer a request."""
        self.requests.append(path)
        if self.key is not None and headers.get("X-Api-Key") != self.key:
            return 401, b'{"detail": "Unauthorized"}'
        fault = next((fault for end, fault in self.faults.items() if end in path), None)
        if fault is not None:
            return fault()
        if path == "/health":
            return _json(200, {"status": "ok"})
        if path == "/v1/convert/file/async":
            self._receive(headers["Content-Type"], body)
            self._left = self.polls
            return _json(200, self._task("pending"))
        if path.startswith("/v1/status/poll/task-1?wait="):
            self._left -= 1
            return _json(200, self._task("started" if self._left > 0 else self.state))
        if path == "/v1/result/task-1":
            document = {"filename": "document", "json_content": self.document, "md_content": None}
            return _json(200, {"document": document, "status": self.status, "errors": []})
        return 404, b'{"detail": "Not Found"}'

    def _task(self, state: str) -> dict[str, Any]:
        return {"task_id": "task-1", "task_type": "convert", "task_status": state}

    def _receive(self, kind: str, body: bytes) -> None:
        head = f"Content-Type: {kind}\r\n\r\n".encode()
        for part in email.message_from_bytes(head + body, policy=email.policy.HTTP).iter_parts():
            name = part.get_param("name", header="content-disposition")
            content = part.get_payload(decode=True)
            assert isinstance(content, bytes)
            if name == "files":
                self.files.append((part.get_filename() or "", part.get_content_type(), content))
            else:
                self.options[str(name)] = content.decode()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _json(status: int, content: dict[str, Any]) -> Answer:
    return status, json.dumps(content).encode()
