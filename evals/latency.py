"""Search latency at the desk against the sum of its parts, measured in turn in the same run."""

import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

from evals.client import Desk
from evals.fresh_texts import FreshTexts
from retrieval.engine import Engine
from retrieval.messages import SearchRequest

WARM_UP = 10

WAITING = 8
"""Documents kept waiting or in work while searches are measured under ingestion."""

POLL_SECONDS = 0.1


@dataclass
class Latency:
    """Milliseconds of each search: at the desk, and of each stage of the engine in this process."""

    situation: str
    desk: list[float] = field(default_factory=list)
    stages: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    @property
    def parts(self) -> list[float]:
        """The sum of the stages, per search."""
        return [sum(each) for each in zip(*self.stages.values(), strict=True)]


def percentiles(milliseconds: Sequence[float]) -> tuple[float, float, float]:
    """The 50th, 95th and 99th."""
    p50, p95, p99 = np.percentile(milliseconds, (50, 95, 99))
    return float(p50), float(p95), float(p99)


def measure(
    desk: Desk, engine: Engine, texts: FreshTexts, collection: str, situation: str, seconds: float
) -> Latency:
    """Search one after the other for so long, each new query once at the desk and once here."""
    found = Latency(situation)
    for _ in range(WARM_UP):
        _search(desk, engine, collection, texts.query())
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        took, stages = _search(desk, engine, collection, texts.query())
        found.desk.append(took)
        for stage, milliseconds in stages.items():
            found.stages[stage].append(milliseconds)
    return found


def _search(
    desk: Desk, engine: Engine, collection: str, query: str
) -> tuple[float, dict[str, float]]:
    """Milliseconds at the desk, and of each stage here."""
    question = {"collection": collection, "query": query, "top": 10}
    started = time.perf_counter()
    desk.post("/v1/search", question)
    took = (time.perf_counter() - started) * 1000
    return took, engine.search(SearchRequest.model_validate(question)).timings


@contextmanager
def ingesting(desk: Desk, texts: FreshTexts, collection: str, tokens: int) -> Iterator[None]:
    """Inside, there are always documents of so many tokens waiting to be ingested."""
    path = f"/v1/collections/{collection}/documents"
    stop = threading.Event()

    def feed() -> None:
        while not stop.wait(POLL_SECONDS):
            queued = desk.get(path, limit=1)["states"].get("queued", 0)
            for _ in range(WAITING - queued):
                desk.post(path, {"text": texts.document(tokens)})

    with ThreadPoolExecutor(1) as pool:
        feeder = pool.submit(feed)
        try:
            yield
        finally:
            stop.set()
        feeder.result()  # raises what ended it early
