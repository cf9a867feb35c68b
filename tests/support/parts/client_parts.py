"""A server of the Python client that answers as it is told to."""

import io
from collections.abc import Callable
from typing import Any

import httpx

from callslip.client import Client, Retries
from callslip.errors import CallslipError

SOON = Retries(first_wait=0.001, longest_wait=0.002)

HIT = {
    "rank": 1,
    "score": 0.5,
    "chunk_id": "c",
    "document_id": "d",
    "title": "Leave",
    "filename": "leave.md",
    "section": "1",
    "heading": "Leave",
    "text": "Fourteen months.",
    "span": {"start": 0, "end": 16},
    "lang": "en",
    "properties": {},
    "legs": {"vector": None, "keyword": {"rank": 1, "score": 2.0}},
    "level": 2,
    "parent_id": None,
    "parent_of": None,
    "vector": None,
}
FOUND = {
    "trace_id": "t",
    "collection": "main",
    "query": "leave",
    "hits": [HIT],
    "alpha": 0.4,
    "fusion": "calibrated",
    "as_of": {"at": None, "source": "default", "words": None},
    "cut": False,
    "candidates": 1,
    "partial": False,
    "left_out": {},
    "timings": {},
}
SUBMITTED = {
    "outcome": "accepted",
    "document_id": "d",
    "version": 1,
    "task_id": "d.1",
    "status_url": "/v1/documents/d",
    "task_url": "/v1/tasks/d.1",
}
BATCH = {
    "batch_id": "b",
    "created_at": 0.0,
    "started_at": None,
    "expected": 1,
    "submitted": 1,
    "unchanged": 0,
    "states": {},
    "left": 0,
    "seconds": None,
    "documents_per_minute": None,
    "chunks_per_minute": None,
    "seconds_left": None,
    "failures": [],
}

Answering = Callable[[httpx.Request], httpx.Response]


def client_of(
    *answers: httpx.Response | Exception | Answering, **given: Any
) -> tuple[Client, list[Any]]:
    """A client of a server that answers so, one after the other, the last again and again."""
    requests: list[httpx.Request] = []

    def handle(request: httpx.Request) -> httpx.Response:
        request.read()
        requests.append(request)
        answer = answers[min(len(requests), len(answers)) - 1]
        if isinstance(answer, Exception):
            raise answer
        if callable(answer):
            return answer(request)
        return httpx.Response(answer.status_code, headers=answer.headers, content=answer.content)

    http = httpx.Client(transport=httpx.MockTransport(handle))
    return Client("http://server", http=http, **{"retries": SOON} | given), requests


def problem(error: type[CallslipError], **headers: str) -> httpx.Response:
    output = {
        "type": f"urn:callslip:problem:{error.slug}",
        "title": "Title",
        "status": error.status,
        "detail": "what is wrong",
        "advice": "what to do",
    }
    return httpx.Response(error.status, json=output, headers=headers)


def found(**more: Any) -> httpx.Response:
    return httpx.Response(200, json=FOUND | more)


LOST = [
    httpx.ReadTimeout("late"),
    httpx.RemoteProtocolError("broke off"),
    httpx.ConnectError("refused"),
]


class Pipe(io.BytesIO):
    def seekable(self) -> bool:
        return False


NODE = '{"node":"planner","attempt":0,"milliseconds":1,"facts":{}}'


def stream(text: str) -> httpx.Response:
    return httpx.Response(200, text=text, headers={"Content-Type": "text/event-stream"})


def document(state: str, **more: Any) -> httpx.Response:
    output = {
        **{"document_id": "d", "collection": "main", "tenant": "", "name": "a.txt"},
        **{"parent": None, "title": "a", "filename": "a.txt", "size": 1, "sha256": "0"},
        **{"version": 1, "live_version": None, "state": state, "created_at": 0},
        **{"submitted_at": 0, "finished_at": None, "properties": {}, "steps": []},
        **{"error": None, "receipt": None},
    }
    return httpx.Response(200, json=output | more)
