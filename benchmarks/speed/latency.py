"""Search latency at the server compared with the sum of its parts, measured in turns in one run."""

import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

from benchmarks.fresh_texts import FreshTexts
from callslip.evals.client import JsonClient
from callslip.retrieval.candidates.resources import Resources
from callslip.retrieval.messages import SearchRequest
from callslip.retrieval.run import search

WARM_UP = 10

WAITING = 8
"""The number of queued documents during the measurement of searches under ingestion."""

POLL_SECONDS = 0.1


@dataclass
class Latency:
    """Milliseconds of each search at the server, and of each stage in this process.

    `parts` has the sum of the stages of each search; a stage that not every search has is shorter.
    """

    situation: str
    client: list[float] = field(default_factory=list)
    parts: list[float] = field(default_factory=list)
    stages: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    def add(self, client: float, stages: Mapping[str, float]) -> None:
        """Add a search."""
        self.client.append(client)
        self.parts.append(sum(stages.values()))
        for stage, milliseconds in stages.items():
            self.stages[stage].append(milliseconds)


def percentiles(milliseconds: Sequence[float]) -> tuple[float, float, float]:
    """Return the 50th, 95th and 99th percentile."""
    p50, p95, p99 = np.percentile(milliseconds, (50, 95, 99))
    return float(p50), float(p95), float(p99)


def measure(
    client: JsonClient,
    engine: Resources,
    texts: FreshTexts,
    collection: str,
    situation: str,
    seconds: float,
) -> Latency:
    """Search for `seconds`; run each new query once at the server and once in this process."""
    result = Latency(situation)
    for _ in range(WARM_UP):
        _search(client, engine, collection, texts.query())
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        result.add(*_search(client, engine, collection, texts.query()))
    return result


def _search(
    client: JsonClient, engine: Resources, collection: str, query: str
) -> tuple[float, dict[str, float]]:
    """Return the milliseconds at the server, and of each stage in this process."""
    question = {"collection": collection, "query": query, "top": 10}
    started = time.perf_counter()
    client.post("/v1/search", question)
    took = (time.perf_counter() - started) * 1000
    return took, search(engine, SearchRequest.model_validate(question)).timings


@contextmanager
def ingesting(
    client: JsonClient, texts: FreshTexts, collection: str, tokens: int
) -> Iterator[None]:
    """Ensure that documents of `tokens` tokens always wait for ingestion within the block."""
    path = f"/v1/collections/{collection}/documents"
    stop = threading.Event()

    def feed() -> None:
        while not stop.wait(POLL_SECONDS):
            queued = client.get(path, limit=1)["states"].get("queued", 0)
            for _ in range(WAITING - queued):
                client.post(path, {"text": texts.document(tokens)})

    with ThreadPoolExecutor(1) as pool:
        feeder = pool.submit(feed)
        try:
            yield
        finally:
            stop.set()
        feeder.result()  # raises the error that ended the thread early
