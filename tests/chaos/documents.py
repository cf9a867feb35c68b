"""A stream of documents, versions, deletions and searches, and what has to be there at its end."""

import random
import threading
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any, Literal

import httpx

RETRY_SECONDS = 0.3
"""Seconds between two attempts of a request, which a client repeats until it has an answer."""

SEARCH_SECONDS = 0.4
"""Seconds between two searches."""

PASSING = (429, 503, 507)
"""The statuses of a request that may be repeated."""

Poison = Literal["", "kills", "hangs", "corrupt"]

REASONS: dict[Poison, tuple[str, ...]] = {
    "kills": ("worker-lost",),
    "hangs": ("embedder-down",),
    "corrupt": ("broken-file",),
}
"""The reasons for which a document of each kind of poison must fail; others must not."""

MARKS: dict[Poison, str] = {"kills": "zzkillszz", "hangs": "zzhangszz"}
"""Words by which the embedder's server knows a poison document."""


@dataclass
class Expected:
    """What was accepted of one document: its newest text, or that it was deleted."""

    name: str
    text: str
    poison: Poison = ""
    versions: int = 1
    document_id: str = ""
    deleted: bool = False


class Documents:
    """Sends operations in a seeded order; each is repeated until the server has answered it.

    `todo` operations are due: another thread sends them as fast as they are answered.
    """

    def __init__(self, seed: int, collection: str) -> None:
        self.collection = collection
        self.accepted: list[Expected] = []
        self.searches: Counter[str] = Counter()
        self.submitted = 0
        self._random = random.Random(f"documents {seed}")
        self.wrong: list[str] = []
        self._url = ""
        self._http = httpx.Client(timeout=30, trust_env=False)
        self._todo = threading.Semaphore(0)
        self._poison: SimpleQueue[Poison] = SimpleQueue()
        self._sent = self._due = 0
        self._stop = threading.Event()

    def follow(self, url: str) -> None:
        """Send to this address from now on: a stack has another port after each start."""
        self._url = url

    def add(self, operations: int) -> None:
        """Let so many more operations be sent."""
        self._due += operations
        self._todo.release(operations)

    def add_poison(self, poison: Poison) -> None:
        """Let one of the next documents be of this kind."""
        self._poison.put(poison)

    def are_sent(self) -> bool:
        """Whether every operation that is due has been answered."""
        return self._sent == self._due

    @contextmanager
    def running(self) -> Iterator[None]:
        """Inside the block, operations are sent, and searches beside them."""
        threads = [threading.Thread(target=self._send), threading.Thread(target=self._search)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._stop.set()
            self._todo.release()
            for thread in threads:
                thread.join()
            self._http.close()

    def _send(self) -> None:
        while True:
            self._todo.acquire()
            if self._stop.is_set():
                return
            self._operate()
            self._sent += 1

    def _operate(self) -> None:
        roll = self._random.random()
        changeable = [e for e in self.accepted if not e.deleted and not e.poison]
        if roll < 0.3 and changeable:
            expected = self._random.choice(changeable)
            if roll < 0.08:
                self._delete(expected)
            else:
                expected.text, expected.versions = self._text(), expected.versions + 1
                self._submit(expected)
            return
        poison = self._poison.get_nowait() if self._poison.qsize() else ""
        number, mark = len(self.accepted), MARKS.get(poison, "")
        expected = Expected(f"{number:04}.txt", f"{mark} {self._text()}".strip() + "\n", poison)
        if poison == "corrupt":
            expected.name = f"{number:04}.pdf"
        self._submit(expected)
        self.accepted.append(expected)

    def _text(self) -> str:
        """A text of its own, of one to three paragraphs."""
        mark = uuid.UUID(int=self._random.getrandbits(128)).hex[:12]
        return "\n\n".join(
            f"Paragraph {number} of {mark} says that whoever files case {mark}-{number} before the"
            f" office closes receives a receipt with the number {self._random.randrange(10**6)}."
            for number in range(self._random.randint(1, 3))
        )

    def _submit(self, expected: Expected) -> None:
        path = f"/v1/collections/{self.collection}/documents"
        if expected.poison == "corrupt":
            content = b"%PDF-1.7\n" + self._random.randbytes(2000)
            files = {"file": (expected.name, content, "application/pdf")}
            answer = self._until_answered("POST", path, files=files)
        else:
            body = {"name": expected.name, "text": expected.text}
            answer = self._until_answered("POST", path, json=body)
        if not answer:
            return
        assert expected.document_id in ("", answer["document_id"]), "a name got a second document"
        expected.document_id = answer["document_id"]
        self.submitted += 1

    def _delete(self, expected: Expected) -> None:
        self._until_answered("DELETE", f"/v1/documents/{expected.document_id}")
        expected.deleted = True

    def _until_answered(self, method: str, path: str, **body: Any) -> dict[str, str]:
        """Repeat a request until it is accepted; the answer, or nothing at the stream's end."""
        while not self._stop.is_set():
            answer = self._request(method, path, **body)
            if answer is not None and answer.status_code in (200, 202):
                result: dict[str, str] = answer.json()
                return result
            if answer is not None and answer.status_code not in PASSING:
                self.wrong.append(f"{method} {path}: {answer.status_code} {answer.text[:300]}")
            self._stop.wait(RETRY_SECONDS)
        return {}

    def _search(self) -> None:
        while not self._stop.wait(SEARCH_SECONDS):
            query = {
                "collection": self.collection,
                "query": f"a receipt {time.monotonic_ns()}",
            }
            answer = self._request("POST", "/v1/search", json=query)
            if answer is None:
                self.searches["no connection"] += 1
                continue
            partial = answer.status_code == 200 and answer.json()["partial"]
            self.searches[f"{answer.status_code}{' partial' if partial else ''}"] += 1

    def _request(self, method: str, path: str, **body: Any) -> httpx.Response | None:
        """The answer; None without one."""
        try:
            return self._http.request(method, self._url + path, **body)
        except httpx.TransportError:
            return None
