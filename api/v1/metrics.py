"""/metrics"""

import shutil
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import NamedTuple

import psutil
from flask import Response
from flask_openapi3 import APIBlueprint, Tag
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.registry import Collector

from callslip import __version__
from callslip.api.http.context import current
from callslip.errors import BrokerDown, StartError, StoreDown
from callslip.tasks.queues import ALL
from callslip.tasks.shared import metering
from callslip.tasks.shared.broker import backlog
from callslip.workers.presence import consumers
from callslip.workers.supervision import runfile

blueprint = APIBlueprint("metrics", __name__, abp_tags=[Tag(name="health")])

_DESCRIBED = {
    "description": "text of Prometheus; docs/operations.md has every name",
    "content": {"text/plain": {"schema": {"type": "string"}}},
}


class Family(NamedTuple):
    """A metric that the processes count: its name, its description and its labels."""

    name: str
    text: str
    labels: tuple[str, ...] = ()


COUNTERS = {
    metering.REQUESTS: Family("callslip_requests", "HTTP requests.", ("route", "method", "status")),
    metering.ERRORS: Family(
        "callslip_errors",
        "Requests, searches and answers that ended in an error.",
        ("what", "reason"),
    ),
    metering.TASKS: Family("callslip_tasks", "Tasks that ended.", ("queue", "outcome")),
    metering.STEPS: Family(
        "callslip_steps", "Attempts of ingestion steps.", ("step", "outcome", "reason")
    ),
    metering.DOCUMENTS: Family(
        "callslip_documents_ended", "Versions that are live or failed.", ("outcome", "reason")
    ),
    metering.STORE_CALLS: Family(
        "callslip_store_calls", "Calls of a store.", ("store", "operation", "outcome")
    ),
    metering.DELIVERIES: Family(
        "callslip_webhook_deliveries", "Attempts to deliver an event.", ("outcome",)
    ),
    metering.SEARCHES: Family("callslip_searches", "Searches by how they ended.", ("outcome",)),
    metering.ANSWERS: Family(
        "callslip_answers", "Questions to the agent by how they ended.", ("outcome",)
    ),
    metering.HITS: Family(
        "callslip_cache_hits", "Searches that a cache spared some work.", ("cache",)
    ),
    metering.MISSES: Family(
        "callslip_cache_misses", "Searches without a hit in the cache.", ("cache",)
    ),
    metering.TRACES_DROPPED: Family(
        "callslip_traces_dropped", "Searches that the ledger was too slow to record."
    ),
    metering.MODEL_CALLS: Family(
        "callslip_model_calls", "Calls of the language model for answers.", ("outcome",)
    ),
    metering.MODEL_TOKENS: Family(
        "callslip_model_tokens", "Tokens that these calls cost.", ("direction",)
    ),
}
"""Counters by the name that the processes give them."""

TIMES = {
    metering.REQUEST_TIME: Family(
        "callslip_request_duration_seconds", "A request until its response is sent.", ("route",)
    ),
    metering.QUEUE_TIME: Family(
        "callslip_queue_wait_seconds", "A message from its sending to its task.", ("queue",)
    ),
    metering.STEP_TIME: Family(
        "callslip_step_duration_seconds", "An attempt of an ingestion step.", ("step",)
    ),
    metering.DOCUMENT_TIME: Family(
        "callslip_document_duration_seconds", "A version from its submission to its end."
    ),
    metering.STORE_TIME: Family(
        "callslip_store_duration_seconds", "A call of a store.", ("store", "operation")
    ),
    metering.SEARCH_TIME: Family("callslip_search_duration_seconds", "A search, in the worker."),
    metering.STAGE: Family(
        "callslip_search_stage_duration_seconds", "A stage of a search.", ("stage",)
    ),
    metering.ANSWER_TIME: Family(
        "callslip_answer_duration_seconds", "An answer of the agent, in the worker."
    ),
}
"""Histograms of times by the name that the processes give them."""


@blueprint.get("/metrics", responses={200: _DESCRIBED})
def metrics() -> Response:
    """Metrics of the whole installation, in the format of Prometheus."""
    return Response(generate_latest(Numbers()), content_type=CONTENT_TYPE_PLAIN_0_0_4)


class Numbers(Collector):
    """The state that the server reads, and the counters of all processes.

    If the broker or the ledger does not answer, its `callslip_up` is 0 and its metrics are left
    out.
    """

    def collect(self) -> Iterator[Metric]:
        """Collect every family of metrics at this moment."""
        up = _gauge("callslip_up", "1 where it answers.", "part")
        for part, families in (("ledger", self._ledger), ("broker", self._broker)):
            try:
                yield from list(families())
                up.add_metric([part], 1)
            except (BrokerDown, StoreDown):
                up.add_metric([part], 0)
        yield up
        yield from self._machine()
        yield from self._versions()

    def _ledger(self) -> Iterator[Metric]:
        ledger = current().ledger
        documents = _gauge(
            "callslip_documents",
            "By the state of their newest version; those that the caller may read.",
            "state",
        )
        for state, count in ledger.documents.states().items():
            documents.add_metric([state], count)
        oldest = ledger.fair_queue.oldest()
        age = _gauge("callslip_backlog_age_seconds", "Since the oldest queued document came.")
        age.add_metric([], 0.0 if oldest is None else max(0.0, time.time() - oldest))
        deliveries = _gauge("callslip_webhook_backlog", "Deliveries of events, by state.", "state")
        for state, count in ledger.webhooks.states().items():
            deliveries.add_metric([state], count)
        yield from (documents, age, deliveries)

    def _broker(self) -> Iterator[Metric]:
        waiting = _gauge("callslip_queue_messages", "Messages that wait in a queue.", "queue")
        workers = _gauge("callslip_queue_workers", "Workers that read a queue.", "queue")
        readers = consumers(current().broker)
        for queue in ALL:
            waiting.add_metric([queue], backlog(current().broker, queue))
            workers.add_metric([queue], readers[queue])
        size = _gauge(
            "callslip_upsert_batch_size",
            "Chunks per upsert, as the last process that wrote has tuned it.",
            "store",
        )
        for (name, *labels), value in metering.levels(current().broker):
            if name == metering.BATCH_SIZE:
                size.add_metric(labels, value)
        yield from (waiting, workers, size)
        yield from families(metering.counted(current().broker))

    def _machine(self) -> Iterator[Metric]:
        """The disk of the data folder, and the memory of the parts of `callslip up`."""
        data_dir = current().settings.data_dir
        free = _gauge("callslip_disk_free_bytes", "Free space where the data folder is.")
        size = _gauge("callslip_disk_size_bytes", "Size of the disk of the data folder.")
        memory = _gauge("callslip_memory_bytes", "Resident memory of a part's processes.", "part")
        with suppress(OSError):  # the folder is on another machine
            usage = shutil.disk_usage(data_dir)
            free.add_metric([], usage.free)
            size.add_metric([], usage.total)
        try:
            run = runfile.read(data_dir)
        except (OSError, StartError):
            run = None
        for part, process in run.parts.items() if run else ():
            memory.add_metric([part], _resident(process.pid))
        yield from (free, size, memory)

    def _versions(self) -> Iterator[Metric]:
        settings = current().settings
        build = _gauge("callslip_build_info", "1; the labels say what runs.", "version", "store")
        build.add_metric([__version__, settings.store], 1)
        model = _gauge("callslip_model_info", "1; the models in use.", "use", "model")
        embedder = settings.embedder
        model.add_metric(["embedder", embedder.model or embedder.kind], 1)
        for name, further in settings.embedders.items():
            model.add_metric([f"embedders.{name}", further.model or further.kind], 1)
        if settings.llm.base_url is not None:
            model.add_metric(["answers", settings.llm.model or ""], 1)
        if settings.rerank.provider != "none":
            model.add_metric(["reranker", settings.rerank.provider], 1)
        yield from (build, model)


def families(counted: Iterable[tuple[tuple[str, ...], int]]) -> list[Metric]:
    """The counters and times of all processes; unknown names are left out."""
    counters = {
        key: CounterMetricFamily(family.name, family.text, labels=family.labels)
        for key, family in COUNTERS.items()
    }
    histograms = {
        key: HistogramMetricFamily(family.name, family.text, labels=family.labels)
        for key, family in TIMES.items()
    }
    times: dict[tuple[str, ...], dict[str, int]] = defaultdict(dict)
    for (name, *labels), count in counted:
        if name in COUNTERS and len(labels) == len(COUNTERS[name].labels):
            counters[name].add_metric(labels, count)
        elif name in TIMES and len(labels) == len(TIMES[name].labels) + 1:
            *of, bucket = labels
            times[name, *of][bucket] = count
    for (name, *of), counts in sorted(times.items()):
        histograms[name].add_metric(of, *_buckets(counts))
    return [*counters.values(), *histograms.values()]


def _gauge(name: str, text: str, *labels: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, text, labels=labels)


def _resident(leader: int) -> int:
    """The resident memory of a process and its children, in bytes."""
    total = 0
    try:
        process = psutil.Process(leader)
        members = [process, *process.children(recursive=True)]
    except psutil.Error:
        return 0
    for member in members:
        with suppress(psutil.Error):  # it ended meanwhile
            total += member.memory_info().rss
    return total


def _buckets(counts: dict[str, int]) -> tuple[list[tuple[str, float]], float]:
    """For each bound, the number of values up to it; and the sum of all in seconds."""
    buckets, total = [], 0
    for bucket in metering.BUCKETS:
        total += counts.get(bucket, 0)
        buckets.append((bucket, float(total)))
    return buckets, counts.get(metering.MICROSECONDS, 0) / 1e6
