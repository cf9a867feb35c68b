"""What the search workers count, added up in the broker, where every desk can read it.

A worker counts in memory; a thread adds what is new to a hash of the broker once a second. A broker
that does not answer costs no search anything: what could not be added waits for the next time. Only
when its answer is lost after it has added, the same is added twice.
"""

import atexit
import logging
import threading
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Mapping

import redis

from agent.budget import Outcome
from callslip.errors import BrokerDown
from models.completion import Usage
from models.per_process import PerProcess
from retrieval.caches import Counted
from tasks.process import broker

log = logging.getLogger(__name__)

KEY = "metrics"
"""The broker's hash: name and labels, joined by SEPARATOR, to a whole number."""

SEPARATOR = "|"

EVERY_SECONDS = 1.0

LAST_SECONDS = 2.0
"""For what is left when the process ends."""

BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds in seconds of what a time is counted in."""

BUCKETS = (*map(str, BOUNDS), "+Inf")
"""The same as Prometheus writes them, with the one that is open."""

SEARCHES, SEARCH_TIME, STAGE = "searches", "search", "stage"
ANSWERS, ANSWER_TIME = "answers", "answer"
HITS, MISSES = "cache_hits", "cache_misses"
TRACES_DROPPED = "traces_dropped"
MODEL_CALLS, MODEL_TOKENS = "model_calls", "model_tokens"
MICROSECONDS = "us"
"""In the place of a bucket: the sum, in whole numbers, as everything here."""


class Meter:
    """The numbers of this process. Threads may share it."""

    def __init__(
        self, send: Callable[[Mapping[str, int]], None], *, every_seconds: float = EVERY_SECONDS
    ) -> None:
        """`send` adds numbers to those of all processes, or raises BrokerDown."""
        self._send = send
        self._every_seconds = every_seconds
        self._totals: Counter[str] = Counter()
        self._sent: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="meter", daemon=True)
        self._thread.start()

    def add(self, *names: str) -> None:
        """Count each of them once."""
        with self._lock:
            self._totals.update(names)

    def sum(self, counts: Mapping[str, int]) -> None:
        """Count each of them so often."""
        with self._lock:
            self._totals.update(counts)

    def took(self, what: str, seconds: float) -> None:
        """Count a time, of SEARCH_TIME or of a stage (`named(STAGE, …)`)."""
        bucket = BUCKETS[bisect_left(BOUNDS, seconds)]
        with self._lock:
            self._totals[named(what, bucket)] += 1
            self._totals[named(what, MICROSECONDS)] += round(seconds * 1e6)

    def caches(self, caches: Mapping[str, Counted]) -> None:
        """Take over what the caches of this process have counted since it began."""
        with self._lock:
            for name, cache in caches.items():
                self._totals[named(HITS, name)] = cache.hits
                self._totals[named(MISSES, name)] = cache.misses

    def close(self, seconds: float = LAST_SECONDS) -> None:
        """Send what is left, for so long at most."""
        self._ended.set()
        self._thread.join(seconds)

    def _run(self) -> None:
        told = False
        while True:
            ended = self._ended.wait(self._every_seconds)
            try:
                self._flush()
                told = False
            except BrokerDown as error:
                if not told:
                    log.warning("metrics wait: %s", error.detail)
                told = True
            if ended:
                return

    def _flush(self) -> None:
        with self._lock:
            totals = self._totals.copy()
        new = totals - self._sent
        if new:
            self._send(new)
            self._sent = totals


def named(*parts: str) -> str:
    """A name with its labels, as the broker keeps it."""
    return SEPARATOR.join(parts)


def send(counts: Mapping[str, int]) -> None:
    """Add these numbers to those of all processes, all or none; BrokerDown."""
    try:
        pipeline = broker().pipeline(transaction=True)
        for name, count in counts.items():
            pipeline.hincrby(KEY, name, count)
        pipeline.execute()
    except redis.RedisError as error:
        raise BrokerDown(f"the broker does not answer: {type(error).__name__}") from error


def counted() -> Iterator[tuple[tuple[str, ...], int]]:
    """All numbers of all processes: name and labels, and how many; BrokerDown."""
    try:
        found = broker().hgetall(KEY)
    except redis.RedisError as error:
        raise BrokerDown(f"the broker does not answer: {type(error).__name__}") from error
    for name, count in found.items():
        text = name if isinstance(name, str) else name.decode()
        yield tuple(text.split(SEPARATOR)), int(count)


def model_called(outcome: Outcome, usage: Usage) -> None:
    """Count a call of the language model and what it cost (`agent.budget.Told`)."""
    meter().sum(
        {
            named(MODEL_CALLS, outcome): 1,
            named(MODEL_TOKENS, "input"): usage.input_tokens,
            named(MODEL_TOKENS, "output"): usage.output_tokens,
        }
    )


def _make_meter() -> Meter:
    made = Meter(send)
    atexit.register(made.close)
    return made


meter = PerProcess(_make_meter).get
