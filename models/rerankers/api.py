"""A reranker on a server with the `/rerank` protocol of Cohere or text-embeddings-inference."""

import json
from collections.abc import Sequence
from typing import Any

import httpx

from callslip.config.sections.ranking import RerankSettings
from callslip.errors import RerankerDown, SettingsError
from callslip.http.transport import BoundedTransport, TooLarge, direct
from callslip.http.urls import parse_url
from callslip.models.e5.tokens import well_formed
from callslip.models.rerankers.contract import Deadline, blanks_last
from callslip.per_process import PerProcess

BATCH_PASSAGES = {"cohere": 1000, "tei": 32}
"""The most passages of one request: the default limits of the servers."""

MOST_BYTES = 16_000_000
"""The most bytes of a response, which may repeat the passages."""

THREADS = 4
"""Simultaneous requests, each in a thread.

A further request waits for a thread until its deadline, and is then dropped without being sent.
"""

_LARGEST = 1e30
"""The largest valid magnitude of a score.

The comparison also refuses NaN and infinity, which Python's JSON parser accepts.
"""

_BUSY = (408, 409, 425, 429)


class RerankApi:
    """A `Reranker` that calls the server at `rerank.url` and never retries by itself.

    Connects when first used, once per process, and ignores a proxy in the environment. Errors never
    repeat the server's message, because it may quote the passages.
    """

    def __init__(self, settings: RerankSettings) -> None:
        """Raises SettingsError for an invalid URL."""
        try:
            url = parse_url(settings.url or "")
        except httpx.InvalidURL:
            url = httpx.URL("")
        if url.scheme not in ("http", "https") or not url.host:
            raise SettingsError("rerank.url is no http or https address")
        self._url, self._settings = url, settings
        self._at = str(url.copy_with(userinfo=b"", query=None))
        self.name = f"api/{settings.model or url.host}"
        self._http = PerProcess(lambda: _client(settings))

    def scores(self, query: str, passages: Sequence[str], deadline_seconds: float) -> list[float]:
        """Return scores according to the contract, on the server's own scale."""
        deadline = Deadline(deadline_seconds)

        def read(readable: list[str]) -> list[float]:
            collected: list[float] = []
            size = BATCH_PASSAGES[self._settings.protocol]
            for start in range(0, len(readable), size):
                deadline.check(start, len(readable))
                collected += self._ask(query, readable[start : start + size], deadline)
            return collected

        return blanks_last(passages, read)

    def _ask(self, query: str, passages: Sequence[str], deadline: Deadline) -> list[float]:
        content = self._request(query, [well_formed(passage) for passage in passages])
        try:
            status, body = self._send(content, deadline)
        except httpx.TimeoutException:
            raise deadline.passed(f"at {self._at} did not answer") from None
        except (httpx.HTTPError, OSError) as error:
            what = f"the reranker at {self._at} does not answer: {type(error).__name__}"
            raise RerankerDown(what) from None
        self._check(status)
        try:
            return _read(body, len(passages))
        except ValueError as error:
            raise RerankerDown(f"the reranker at {self._at} answered {error}") from None

    def _request(self, query: str, passages: list[str]) -> bytes:
        question = well_formed(query)
        if self._settings.protocol == "tei":
            payload: dict[str, Any] = {"query": question, "texts": passages, "truncate": True}
        else:
            payload = {"query": question, "documents": passages, "top_n": len(passages)}
            if self._settings.model:
                payload["model"] = self._settings.model
        return json.dumps(payload).encode()

    def _send(self, content: bytes, deadline: Deadline) -> tuple[int, bytes]:
        """Return status and body; the body is empty if the response is too long."""
        timeout = httpx.Timeout(max(deadline.left, 0.001))
        try:
            response = self._http.get().post(self._url, content=content, timeout=timeout)
        except TooLarge as error:
            return error.status, b""
        return response.status_code, response.content

    def _check(self, status: int) -> None:
        message = f"the reranker at {self._at} answered status {status}"
        if status >= 500 or status in _BUSY:
            raise RerankerDown(message)
        if status >= 300:
            raise SettingsError(
                message,
                hint="Check rerank.url, rerank.api_key, rerank.model and rerank.protocol; a server"
                " may also take fewer passages than rerank.top.",
            )


def _client(settings: RerankSettings) -> httpx.Client:
    headers = {"Content-Type": "application/json"}
    if settings.api_key is not None:
        headers["Authorization"] = f"Bearer {settings.api_key.get_secret_value()}"
    transport = BoundedTransport(MOST_BYTES, direct, at_once=THREADS)
    return httpx.Client(headers=headers, transport=transport, trust_env=False)


def _read(body: bytes, count: int) -> list[float]:
    """Return the scores in the order of the passages.

    Raises ValueError, which names the fault without a quotation.
    """
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        raise ValueError("what is no JSON") from None
    results = answer.get("results") if isinstance(answer, dict) else answer
    if not isinstance(results, list):
        raise ValueError("no list of results")
    by_index: dict[int, float] = {}
    for result in results:
        if not isinstance(result, dict):
            raise ValueError("a result that is no object")
        index = result.get("index")
        score = result.get("relevance_score", result.get("score"))
        if type(index) is not int or not 0 <= index < count or index in by_index:
            raise ValueError("an index that no passage has, or one twice")
        if not isinstance(score, int | float) or not abs(score) <= _LARGEST:
            raise ValueError("a score that is no finite number")
        by_index[index] = float(score)
    if len(by_index) < count:
        raise ValueError(f"{len(by_index)} scores for {count} passages")
    return [by_index[i] for i in range(count)]
