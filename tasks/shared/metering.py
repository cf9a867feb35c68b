"""The counters of all processes, added up in the broker, where every server process reads them.

A process counts in memory; a thread adds the new counts to a hash of the broker once a second. A
broker that does not answer delays no search: the thread adds the counts next time. If the broker
has added the counts and only its reply is lost, the same counts are added twice.
"""

import logging
import threading
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from functools import partial, wraps
from typing import TYPE_CHECKING, Any

import redis

from callslip import trace_context
from callslip.agent.budget import Outcome
from callslip.errors import BrokerDown, CallslipError
from callslip.models.language_models.completion import Usage
from callslip.retrieval.caches import Counted
from callslip.stores.contract import Store
from callslip.tasks.shared.broker import as_broker_down

if TYPE_CHECKING:
    from callslip.models.telemetry import Spans

log = logging.getLogger(__name__)

KEY = "metrics"
"""The broker's hash. Its fields are a name and labels, joined by SEPARATOR; its values integers."""

SEPARATOR = "|"

LEVELS = "metrics:levels"
"""The broker's hash of values that are not added up: each is that of the last process that set it.
"""

EVERY_SECONDS = 1.0

LAST_SECONDS = 2.0
"""Seconds to send the remaining counts when the process ends."""

BOUNDS = (
    *(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0),
    *(30.0, 60.0, 300.0, 1800.0),
)
"""Upper bounds, in seconds, of the buckets of a time."""

BUCKETS = (*map(str, BOUNDS), "+Inf")
"""The bounds as Prometheus writes them, with infinity as the last one."""

SEARCHES, SEARCH_TIME, STAGE = "searches", "search", "stage"
ANSWERS, ANSWER_TIME = "answers", "answer"
HITS, MISSES = "cache_hits", "cache_misses"
TRACES_DROPPED = "traces_dropped"
MODEL_CALLS, MODEL_TOKENS = "model_calls", "model_tokens"
REQUESTS, REQUEST_TIME = "requests", "request"
TASKS, QUEUE_TIME = "tasks", "queue"
STEPS, STEP_TIME = "steps", "step"
DOCUMENTS, DOCUMENT_TIME = "documents_ended", "document"
STORE_CALLS, STORE_TIME = "store_calls", "store"
DELIVERIES = "deliveries"
BATCH_SIZE = "upsert_batch_size"
ERRORS = "errors"
MICROSECONDS = "us"
"""Replaces the bucket in a name: the counter is then the sum of the times, in microseconds."""

OPERATIONS = (
    *("ensure_schema", "drop_collection", "ensure_tenant", "drop_tenant", "tenants"),
    *("batch_upsert_documents", "batch_upsert_chunks", "delete_chunks", "delete_documents"),
    *("nearest", "keyword_query", "native_query", "get_chunks", "copies", "terms", "properties"),
    *("get_documents", "find_ids", "chunk_ids", "chunk_ids_of", "document_ids", "count"),
    *("count_documents", "aggregate_group_by", "maintain", "compact"),
)
"""The operations that call a store's server or read its index."""

OK = "ok"
"""The outcome of a call without an error; else it is the error's name."""


class Meter:
    """The counters of this process. Threads may share it."""

    def __init__(
        self,
        send: Callable[[Mapping[str, int]], None],
        *,
        keep: Callable[[Mapping[str, int]], None] | None = None,
        every_seconds: float = EVERY_SECONDS,
    ) -> None:
        """`send` adds numbers to those of all processes, `keep` replaces them.

        Either raises BrokerDown if the broker does not answer.
        """
        self._send, self._keep = send, keep or drop
        self._every_seconds = every_seconds
        self._totals: Counter[str] = Counter()
        self._sent: Counter[str] = Counter()
        self._levels: dict[str, int] = {}
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

    def level(self, name: str, value: int) -> None:
        """Set a value that is not a sum, such as a size."""
        with self._lock:
            self._levels[name] = value

    def took(self, what: str, seconds: float) -> None:
        """Count a time in seconds, of SEARCH_TIME, a stage (`named(STAGE, …)`) or another time."""
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
            levels = self._levels.copy()
        new = totals - self._sent
        if new:
            self._send(new)
            self._sent = totals
        if levels:
            self._keep(levels)
            with self._lock:
                self._levels = {n: v for n, v in self._levels.items() if levels.get(n) != v}


def named(*parts: str) -> str:
    """A name with its labels, as a field of the broker's hash."""
    return SEPARATOR.join(parts)


def send(broker: redis.Redis, counts: Mapping[str, int]) -> None:
    """Add these counts to those of all processes in one transaction. Raises BrokerDown."""
    with as_broker_down():
        pipeline = broker.pipeline(transaction=True)
        for name, count in counts.items():
            pipeline.hincrby(KEY, name, count)
        pipeline.execute()


def keep(broker: redis.Redis, levels: Mapping[str, int]) -> None:
    """Replace the values of these levels. Raises BrokerDown."""
    with as_broker_down():
        broker.hset(LEVELS, mapping=dict(levels.items()))


def drop(counts: Mapping[str, int]) -> None:
    """Take counts of a process without a broker."""


def counted(broker: redis.Redis) -> Iterator[tuple[tuple[str, ...], int]]:
    """Iterate over the counters of all processes: (name, *labels) and the count.

    Raises BrokerDown if the broker does not answer.
    """
    return _read(broker, KEY)


def levels(broker: redis.Redis) -> Iterator[tuple[tuple[str, ...], int]]:
    """As `counted`, for the values that are not sums."""
    return _read(broker, LEVELS)


def _read(broker: redis.Redis, key: str) -> Iterator[tuple[tuple[str, ...], int]]:
    with as_broker_down():
        counts = broker.hgetall(key)
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


def observed(store: Store, meter: Meter, spans: "Spans | None") -> Store:
    """Let a store report its calls: to the meter, and within a trace as a span."""
    for operation in OPERATIONS:
        call = getattr(store, operation)
        setattr(store, operation, _observed(call, store.kind, operation, meter, spans))
    store.batch_size.on_change = partial(meter.level, named(BATCH_SIZE, store.kind))
    return store


def _observed(
    call: Callable[..., Any], kind: str, operation: str, meter: Meter, spans: "Spans | None"
) -> Callable[..., Any]:
    attributes = {"db.system.name": kind, "db.operation.name": operation}

    @wraps(call)
    def run(*args: Any, **kwargs: Any) -> Any:
        outcome, started = OK, time.perf_counter()
        traced = spans is not None and trace_context.current() is not None
        try:
            with (
                spans.span(f"{kind} {operation}", attributes, "CLIENT")
                if spans is not None and traced
                else nullcontext()
            ):
                return call(*args, **kwargs)
        except Exception as error:
            outcome = error.slug if isinstance(error, CallslipError) else type(error).__name__
            raise
        finally:
            meter.add(named(STORE_CALLS, kind, operation, outcome))
            meter.took(named(STORE_TIME, kind, operation), time.perf_counter() - started)

    return run
