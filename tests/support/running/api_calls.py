"""The HTTP API as a test uses it."""

import time
import uuid
from collections.abc import Iterable
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any

import httpx
from stack import Stack

LONGEST_WAIT = 120.0


class Api:
    """HTTP to a running stack, in a collection of this test's own."""

    def __init__(self, stack: Stack) -> None:
        none = CookieJar(DefaultCookiePolicy(allowed_domains=()))  # as a program has
        self.http = httpx.Client(base_url=stack.url, timeout=60, trust_env=False, cookies=none)
        self.collection = f"test-{uuid.uuid4().hex[:12]}"
        created = self.http.post("/v1/collections", json={"name": self.collection})
        assert created.status_code == 201, created.text

    def __enter__(self) -> "Api":
        return self

    def __exit__(self, *_: object) -> None:
        self.http.close()

    def send(self, **body: Any) -> httpx.Response:
        """Submit JSON text."""
        return self.http.post(f"/v1/collections/{self.collection}/documents", json=body)

    def upload(self, filename: str, content: bytes, **fields: str) -> httpx.Response:
        """Submit a file."""
        return self.http.post(
            f"/v1/collections/{self.collection}/documents",
            files={"file": (filename, content)},
            data=fields,
        )

    def settled(self, document_id: str) -> dict[str, Any]:
        """The document once it is live or failed."""
        until = time.monotonic() + LONGEST_WAIT
        while time.monotonic() < until:
            found: dict[str, Any] = self.http.get(f"/v1/documents/{document_id}").json()
            if found["state"] in ("live", "failed"):
                return found
            time.sleep(0.1)
        raise AssertionError(f"never settled: {found}")

    def live(self, **body: Any) -> str:
        """Submit JSON text and wait until it is live; the document's id."""
        answer = self.send(**body)
        assert answer.status_code == 202, answer.text
        document_id: str = answer.json()["document_id"]
        found = self.settled(document_id)
        assert found["state"] == "live", found
        return document_id

    def all_live(self, bodies: Iterable[dict[str, Any]]) -> list[str]:
        """Submit several at once and wait until all are live; their ids, in this order."""
        answers = [self.send(**body) for body in bodies]
        assert {answer.status_code for answer in answers} <= {202}, answers
        document_ids = [answer.json()["document_id"] for answer in answers]
        settled = [self.settled(document_id) for document_id in document_ids]
        assert {document["state"] for document in settled} <= {"live"}, settled
        return document_ids

    def search(self, query: str, **more: Any) -> httpx.Response:
        """Ask the collection."""
        request = {"collection": self.collection, "query": query} | more
        return self.http.post("/v1/search", json=request)


def assert_problem(answer: httpx.Response, status: int, slug: str) -> dict[str, Any]:
    """A problem+json of this kind, with advice and without a traceback."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    problem: dict[str, Any] = answer.json()
    assert problem["type"] == f"urn:callslip:problem:{slug}"
    assert problem["status"] == status
    assert problem["detail"]
    assert problem["advice"]
    assert "Traceback" not in answer.text
    return problem
