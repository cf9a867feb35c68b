"""/metrics"""

from collections import defaultdict
from collections.abc import Iterable, Iterator

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

from callslip.api.http.context import current
from callslip.errors import BrokerDown, StoreDown
from callslip.tasks import metering
from callslip.tasks.broker import backlog
from callslip.tasks.queues import ALL
from callslip.workers.presence import consumers

blueprint = APIBlueprint("metrics", __name__, abp_tags=[Tag(name="health")])

_DESCRIBED = {
    "description": "text of Prometheus; docs/operations.md has every name",
    "content": {"text/plain": {"schema": {"type": "string"}}},
}


@blueprint.get("/metrics", responses={200: _DESCRIBED})
def metrics() -> Response:
    """Metrics of the whole installation, in the format of Prometheus."""
    return Response(generate_latest(Numbers()), content_type=CONTENT_TYPE_PLAIN_0_0_4)


class Numbers(Collector):
    """The state that the server reads, and the counters of the search workers.

    If the broker or the ledger does not answer, its `callslip_up` is 0 and its metrics are left
    out.
    """

    def collect(self) -> Iterator[Metric]:
        """Collect every family of metrics at this moment."""
        up = GaugeMetricFamily("callslip_up", "1 where it answers.", labels=["part"])
        for part, families in (("ledger", self._ledger), ("broker", self._broker)):
            try:
                yield from list(families())
                up.add_metric([part], 1)
            except (BrokerDown, StoreDown):
                up.add_metric([part], 0)
        yield up

    def _ledger(self) -> Iterator[Metric]:
        documents = GaugeMetricFamily(
            "callslip_documents", "By the state of their newest version.", labels=["state"]
        )
        for state, count in current().ledger.documents.states().items():
            documents.add_metric([state], count)
        yield documents

    def _broker(self) -> Iterator[Metric]:
        waiting = GaugeMetricFamily(
            "callslip_queue_messages", "Messages that wait in a queue.", labels=["queue"]
        )
        workers = GaugeMetricFamily(
            "callslip_queue_workers", "Workers that read a queue.", labels=["queue"]
        )
        readers = consumers(current().broker)
        for queue in ALL:
            waiting.add_metric([queue], backlog(current().broker, queue))
            workers.add_metric([queue], readers[queue])
        yield from (waiting, workers)
        yield from families(metering.counted(current().broker))


def families(counted: Iterable[tuple[tuple[str, ...], int]]) -> list[Metric]:
    """The counters of the search workers; unknown names are left out."""
    counters = {
        metering.SEARCHES: CounterMetricFamily(
            "callslip_searches", "Searches by how they ended.", labels=["outcome"]
        ),
        metering.ANSWERS: CounterMetricFamily(
            "callslip_answers", "Questions to the agent by how they ended.", labels=["outcome"]
        ),
        metering.HITS: CounterMetricFamily(
            "callslip_cache_hits", "Searches that a cache spared some work.", labels=["cache"]
        ),
        metering.MISSES: CounterMetricFamily(
            "callslip_cache_misses", "Searches without a hit in the cache.", labels=["cache"]
        ),
        metering.TRACES_DROPPED: CounterMetricFamily(
            "callslip_traces_dropped", "Searches that the ledger was too slow to record.", labels=[]
        ),
        metering.MODEL_CALLS: CounterMetricFamily(
            "callslip_model_calls", "Calls of the language model for answers.", labels=["outcome"]
        ),
        metering.MODEL_TOKENS: CounterMetricFamily(
            "callslip_model_tokens", "Tokens that these calls cost.", labels=["direction"]
        ),
    }
    times: dict[str, dict[str, dict[str, int]]] = defaultdict(lambda: defaultdict(dict))
    for (name, *labels), count in counted:
        if name in counters:
            counters[name].add_metric(labels, count)
        elif name in (metering.SEARCH_TIME, metering.STAGE, metering.ANSWER_TIME):
            *of, bucket = labels
            times[name]["".join(of)][bucket] = count
    whole = HistogramMetricFamily(
        "callslip_search_duration_seconds", "A search, in the worker.", labels=[]
    )
    answers = HistogramMetricFamily(
        "callslip_answer_duration_seconds", "An answer of the agent, in the worker.", labels=[]
    )
    stages = HistogramMetricFamily(
        "callslip_search_stage_duration_seconds", "A stage of a search.", labels=["stage"]
    )
    for counts in times[metering.SEARCH_TIME].values():
        whole.add_metric([], *_buckets(counts))
    for counts in times[metering.ANSWER_TIME].values():
        answers.add_metric([], *_buckets(counts))
    for stage, counts in sorted(times[metering.STAGE].items()):
        stages.add_metric([stage], *_buckets(counts))
    return [*counters.values(), whole, stages, answers]


def _buckets(counts: dict[str, int]) -> tuple[list[tuple[str, float]], float]:
    """For each bound, the number of values up to it; and the sum of all in seconds."""
    buckets, total = [], 0
    for bucket in metering.BUCKETS:
        total += counts.get(bucket, 0)
        buckets.append((bucket, float(total)))
    return buckets, counts.get(metering.MICROSECONDS, 0) / 1e6
