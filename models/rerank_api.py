"""A reranker behind a server that speaks Cohere's `/rerank`, or text-embeddings-inference's."""

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx

from callslip.errors import RerankerDown, SettingsError
from config.ranking import RerankSettings
from models.per_process import PerProcess
from models.reranker import Deadline, blanks_last
from models.tokens import well_formed

BATCH_PASSAGES = {"cohere": 1000, "tei": 32}
"""Of one request: the most that the servers take unless they are told otherwise."""

MOST_BYTES = 16_000_000
"""Of an answer, which may repeat the passages."""

THREADS = 4
"""Requests in the air. One that is given up ends by its own timeout; so a server that hangs holds
these threads and no more, and what comes meanwhile is given up without being sent."""

_LARGEST = 1e30
"""A score beyond is none; NaN and infinity, which JSON of Python may hold, are not below it."""

_BUSY = (408, 409, 425, 429)


class RerankApi:
    """A `Reranker` that calls the server at `rerank.url`. It never tries again by itself.

    Connects when first used, once per process, and never by way of a proxy from the environment.
    What the server says is never repeated: it may quote the passages.
    """

    def __init__(self, settings: RerankSettings) -> None:
        """Raises SettingsError for a URL that is none."""
        try:
            url = httpx.URL(settings.url or "")
        except httpx.InvalidURL:
            url = httpx.URL("")
        if url.scheme not in ("http", "https") or not url.host:
            raise SettingsError("rerank.url is no http or https address")
        self._url, self._settings = url, settings
        self._at = str(url.copy_with(userinfo=b"", query=None))
        self.name = f"api/{settings.model or url.host}"
        self._connection = PerProcess(lambda: _Connection(settings))

    def scores(self, query: str, passages: Sequence[str], deadline_seconds: float) -> list[float]:
        """As the contract says, on the server's own scale."""
        deadline = Deadline(deadline_seconds)

        def read(kept: list[str]) -> list[float]:
            found: list[float] = []
            size = BATCH_PASSAGES[self._settings.protocol]
            for start in range(0, len(kept), size):
                deadline.check(start, len(kept))
                found += self._ask(query, kept[start : start + size], deadline)
            return found

        return blanks_last(passages, read)

    def _ask(self, query: str, passages: Sequence[str], deadline: Deadline) -> list[float]:
        connection = self._connection.get()
        content = self._request(query, [well_formed(passage) for passage in passages])
        future = connection.threads.submit(self._send, connection.http, content, deadline)
        try:
            status, body = future.result(deadline.left)
        except (TimeoutError, httpx.TimeoutException):
            future.cancel()
            raise deadline.passed(f"at {self._at} did not answer") from None
        except httpx.HTTPError as error:
            what = f"the reranker at {self._at} does not answer: {type(error).__name__}"
            raise RerankerDown(what) from None
        self._check(status)
        try:
            return _read(body, len(passages))
        except ValueError as error:
            raise RerankerDown(f"the reranker at {self._at} answered {error}") from None

    def _request(self, query: str, passages: list[str]) -> bytes:
        asked = well_formed(query)
        if self._settings.protocol == "tei":
            payload: dict[str, Any] = {"query": asked, "texts": passages, "truncate": True}
        else:
            payload = {"query": asked, "documents": passages, "top_n": len(passages)}
            if self._settings.model:
                payload["model"] = self._settings.model
        return json.dumps(payload).encode()

    def _send(self, http: httpx.Client, content: bytes, deadline: Deadline) -> tuple[int, bytes]:
        """Status and body, which ends early when it is too long; TimeoutError when that is late."""
        body = b""
        timeout = httpx.Timeout(max(deadline.left, 0.001))
        with http.stream("POST", self._url, content=content, timeout=timeout) as response:
            for block in response.iter_bytes():
                body += block
                if not deadline.left:
                    raise TimeoutError
                if len(body) > MOST_BYTES:
                    break
            return response.status_code, body

    def _check(self, status: int) -> None:
        said = f"the reranker at {self._at} answered status {status}"
        if status >= 500 or status in _BUSY:
            raise RerankerDown(said)
        if status >= 300:
            raise SettingsError(
                said,
                hint="Check rerank.url, rerank.api_key, rerank.model and rerank.protocol; a server"
                " may also take fewer passages than rerank.top.",
            )


class _Connection:
    def __init__(self, settings: RerankSettings) -> None:
        headers = {"Content-Type": "application/json"}
        if settings.api_key is not None:
            headers["Authorization"] = f"Bearer {settings.api_key.get_secret_value()}"
        self.http = httpx.Client(headers=headers, trust_env=False)
        self.threads = ThreadPoolExecutor(THREADS, thread_name_prefix="rerank")


def _read(body: bytes, count: int) -> list[float]:
    """The scores in the order of the passages; ValueError says what is wrong, without quoting."""
    try:
        said = json.loads(body)
    except (ValueError, RecursionError):
        raise ValueError("what is no JSON") from None
    results = said.get("results") if isinstance(said, dict) else said
    if not isinstance(results, list):
        raise ValueError("no list of results")
    found: dict[int, float] = {}
    for result in results:
        if not isinstance(result, dict):
            raise ValueError("a result that is no object")
        index = result.get("index")
        score = result.get("relevance_score", result.get("score"))
        if type(index) is not int or not 0 <= index < count or index in found:
            raise ValueError("an index that no passage has, or one twice")
        if not isinstance(score, int | float) or not abs(score) <= _LARGEST:
            raise ValueError("a score that is no finite number")
        found[index] = float(score)
    if len(found) < count:
        raise ValueError(f"{len(found)} scores for {count} passages")
    return [found[i] for i in range(count)]
