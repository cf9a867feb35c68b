"""A server on a loopback port that answers the MCP server in the shapes of the real one."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from flask import Flask, Response, request
from werkzeug.serving import make_server

from callslip.api.http.problems import problem
from callslip.errors import (
    BacklogFull,
    CallslipError,
    DocumentNotFound,
    KeyRefused,
    PermissionMissing,
    TraceNotFound,
)

STEPS = ("extract", "sectionize", "chunk", "enrich", "embed", "upsert")

HIT = {
    "rank": 1,
    "score": 0.75,
    "chunk_id": "c1",
    "document_id": "d1",
    "title": "Leave",
    "filename": "leave.md",
    "section": "1",
    "heading": "Parents",
    "text": "출산 휴가는 90일이다.",
    "span": {"start": 3, "end": 16},
    "lang": "ko",
    "properties": {"valid_from": "2024-01-01", "entities": ["휴가"]},
    "legs": {"vector": None, "keyword": {"rank": 1, "score": 7.5}},
    "level": 2,
    "parent_id": None,
    "parent_of": None,
    "vector": None,
}

VALIDITY = {"at": "2026-01-01T00:00:00Z", "source": "default", "words": None}

CITATION = {
    "number": 1,
    "chunk_id": "c1",
    "document_id": "d1",
    "version": 1,
    "title": "Leave",
    "filename": "leave.md",
    "section": "1",
    "heading": "Parents",
    "quote": "Leave lasts 90 days.",
    "span": {"start": 3, "end": 23},
    "passage": {"start": 3, "end": 60},
    "valid_from": None,
    "valid_to": None,
    "url": "/page/d1",
}

ANSWER = {
    "trace_id": "t2",
    "collection": "papers",
    "thread_id": None,
    "question": "how long?",
    "understood": "how long is leave?",
    "answered": True,
    "text": "Leave lasts 90 days. [1] It is paid. [1]",
    "sentences": [
        {"text": "Leave lasts 90 days.", "citations": [1]},
        {"text": "It is paid.", "citations": [1]},
    ],
    "citations": [CITATION],
    "nearest": [],
    "written_by": "extracts",
    "model_left_out": None,
    "verdict": {"approved": True, "reason": "supported", "action": None, "confidence": 0.9},
    "attempts": [],
    "as_of": VALIDITY,
    "partial": False,
    "usage": {"calls": 0, "input_tokens": 0, "output_tokens": 0},
    "timings": {},
}


class McpBackend:
    """What was asked is kept in `asked` as (path, Authorization, body)."""

    def __init__(self) -> None:
        self.url = ""
        self.key: str | None = None
        self.requests: list[tuple[str, str | None, Any]] = []
        self.files: dict[str, bytes] = {}
        self.text = "".join(chr(ord("가") + n % 1000) for n in range(45_000))
        self.polls_until_live = 3
        self.fails = False
        self.readable = True
        self.makes_collections = True
        self.owner = {"collection": "papers", "tenant": ""}
        self.meeting = threading.Barrier(2)
        self._polls = 0

    def app(self) -> Flask:
        """Its routes."""
        app = Flask("notes")
        app.before_request(self._note)
        app.register_error_handler(CallslipError, problem)
        for method, path, view in (
            ("POST", "/v1/search", self._search),
            ("POST", "/v1/answer", lambda: ANSWER),
            ("POST", "/v1/collections", self._collection),
            ("POST", "/v1/collections/<name>/documents", self._submit),
            ("GET", "/v1/documents/<document_id>", self._document),
            ("GET", "/v1/documents/<document_id>/text", self._text),
            ("POST", "/v1/feedback", self._feedback),
            ("GET", "/debug/trace/<trace_id>", self._trace),
        ):
            app.add_url_rule(path, endpoint=path, view_func=view, methods=[method])
        return app

    def bodies(self, path: str) -> list[Any]:
        """What was sent to a path."""
        return [body for at, _, body in self.requests if at == path]

    def _note(self) -> Response | None:
        header = request.headers.get("Authorization")
        self.requests.append((request.path, header, request.get_json(silent=True)))
        if self.key is not None and header != f"Bearer {self.key}":
            return problem(
                KeyRefused("the server does not know this key, or it is revoked or expired")
            )
        return None

    def _search(self) -> Any:
        query = request.get_json()["query"]
        if query == "together":
            self.meeting.wait(10)
        if query == "busy":
            raise BacklogFull("too much waits")
        hits = [] if query == "odd" else [HIT]
        more = {} if query == "odd" else {"as_of": VALIDITY}
        return {"trace_id": "t1", "hits": hits, "cut": False, "partial": False, **more}

    def _collection(self) -> Any:
        if not self.makes_collections:
            raise PermissionMissing("the caller is limited to tenants, and this concerns all")
        return {}

    def _submit(self, name: str) -> Any:
        if "file" in request.files:
            self.files[request.form["name"]] = request.files["file"].read()
        self._polls = 0
        return {"outcome": "accepted", "document_id": "d1", "version": 1, "task_id": "x"}

    def _document(self, document_id: str) -> Any:
        if document_id != "d1" or not self.readable:
            raise DocumentNotFound(f"document {document_id!r} does not exist")
        self._polls += 1
        live = self._polls >= self.polls_until_live
        done = len(STEPS) if live else min(self._polls * 2, len(STEPS) - 1)
        error = {"type": "x", "title": "No text", "detail": "it is blank", "advice": "Write more."}
        return {
            "document_id": document_id,
            **self.owner,
            "name": "leave.md",
            "title": "Leave",
            "version": 1,
            "state": ("failed" if self.fails else "live") if live else "working",
            "properties": {},
            "steps": [
                {"step": step, "state": "done" if n < done else "pending"}
                for n, step in enumerate(STEPS)
            ],
            "error": error if self.fails and live else None,
        }

    def _text(self, document_id: str) -> Any:
        if not self.text:
            raise DocumentNotFound("no extracted text")
        start, end = request.args["start"], request.args["end"]
        start, end = min(int(start), len(self.text)), min(int(end), len(self.text))
        return {
            "document_id": document_id,
            "start": start,
            "end": max(start, end),
            "length": len(self.text),
            "text": self.text[start:end],
        }

    def _feedback(self) -> Any:
        body = request.get_json()
        chunk_ids = body.get("chunk_ids", ["c1"])
        return {"feedback_id": "f1", "chunk_ids": chunk_ids, "counted": chunk_ids, "user": "mcp"}

    def _trace(self, trace_id: str) -> Any:
        if trace_id not in ("t1", "t2"):
            raise TraceNotFound("no such search")
        return {"trace": self.owner, "outcomes": []}


@contextmanager
def running_backend() -> Iterator[McpBackend]:
    """Serve one on a free port."""
    backend = McpBackend()
    server = make_server("127.0.0.1", 0, backend.app(), threaded=True)
    backend.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield backend
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
