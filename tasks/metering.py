"""The workers' counters, added up in the broker, where every server process reads them.

A worker counts in memory; a thread adds the new counts to a hash of the broker once a second. A
broker that does not answer delays no search: the thread adds the counts next time. If the broker
has added the counts and only its reply is lost, the same counts are added twice.
"""

import logging
import threading
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Mapping

import redis

from callslip.agent.budget import Outcome
from callslip.errors import BrokerDown
from callslip.models.language_models.completion import Usage
from callslip.retrieval.caches import Counted

log = logging.getLogger(__name__)

KEY = "metrics"
"""The broker's hash. Its fields are a name and labels, joined by SEPARATOR; its values integers."""

SEPARATOR = "|"

EVERY_SECONDS = 1.0

LAST_SECONDS = 2.0
"""Seconds to send the remaining counts when the process ends."""

BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds, in seconds, of the buckets of a time."""

BUCKETS = (*map(str, BOUNDS), "+Inf")
"""The bounds as Prometheus writes them, with infinity as the last one."""

SEARCHES, SEARCH_TIME, STAGE = "searches", "search", "stage"
ANSWERS, ANSWER_TIME = "answers", "answer"
HITS, MISSES = "cache_hits", "cache_misses"
TRACES_DROPPED = "traces_dropped"
MODEL_CALLS, MODEL_TOKENS = "model_calls", "model_tokens"
MICROSECONDS = "us"
"""Replaces the bucket in a name: the counter is then the sum of the times, in microseconds."""


class Meter:
    """The counters of this process. Threads may share it."""

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
        """Add 1 to the counter of each name."""
        with self._lock:
            self._totals.update(names)

    def sum(self, counts: Mapping[str, int]) -> None:
        """Add a number to the counter of each name."""
        with self._lock:
            self._totals.update(counts)

    def took(self, what: str, seconds: float) -> None:
        """Count a time in seconds, of SEARCH_TIME, ANSWER_TIME or a stage (`named(STAGE, …)`)."""
        bucket = BUCKETS[bisect_left(BOUNDS, seconds)]
        with self._lock:
            self._totals[named(what, bucket)] += 1
            self._totals[named(what, MICROSECONDS)] += round(seconds * 1e6)

    def caches(self, caches: Mapping[str, Counted]) -> None:
        """Set the counters of cache hits and misses, which the caches count since their start."""
        with self._lock:
            for name, cache in caches.items():
                self._totals[named(HITS, name)] = cache.hits
                self._totals[named(MISSES, name)] = cache.misses

    def close(self, seconds: float = LAST_SECONDS) -> None:
        """Send the remaining counts; wait at most `seconds`."""
        self._ended.set()
        self._thread.join(seconds)

    def _run(self) -> None:
        warned = False
        while True:
            ended = self._ended.wait(self._every_seconds)
            try:
                self._flush()
                warned = False
            except BrokerDown as error:
                if not warned:
                    log.warning("metrics wait: %s", error.detail)
                warned = True
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
    """A name with its labels, as a field of the broker's hash."""
    return SEPARATOR.join(parts)


def send(broker: redis.Redis, counts: Mapping[str, int]) -> None:
    """Add these counts to those of all processes in one transaction. Raises BrokerDown."""
    try:
        pipeline = broker.pipeline(transaction=True)
        for name, count in counts.items():
            pipeline.hincrby(KEY, name, count)
        pipeline.execute()
    except redis.RedisError as error:
        raise BrokerDown(f"the broker does not answer: {type(error).__name__}") from error


def counted(broker: redis.Redis) -> Iterator[tuple[tuple[str, ...], int]]:
    """Iterate over the counters of all processes: (name, *labels) and the count.

    Raises BrokerDown if the broker does not answer.
    """
    try:
        counts = broker.hgetall(KEY)
    except redis.RedisError as error:
        raise BrokerDown(f"the broker does not answer: {type(error).__name__}") from error
    for name, count in counts.items():
        text = name if isinstance(name, str) else name.decode()
        yield tuple(text.split(SEPARATOR)), int(count)


def model_called(meter: Meter, outcome: Outcome, usage: Usage) -> None:
    """Count a call of the language model and its tokens (`agent.budget.OnCall`)."""
    meter.sum(
        {
            named(MODEL_CALLS, outcome): 1,
            named(MODEL_TOKENS, "input"): usage.input_tokens,
            named(MODEL_TOKENS, "output"): usage.output_tokens,
        }
    )
