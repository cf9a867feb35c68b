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

from callslip.errors import BrokerDown, StoreDown
from tasks import metering
from tasks.process import backlog, ledger
from tasks.queues import ALL
from workers.presence import consumers

blueprint = APIBlueprint("metrics", __name__, abp_tags=[Tag(name="health")])

_DESCRIBED = {
    "description": "text of Prometheus; docs/operations.md has every name",
    "content": {"text/plain": {"schema": {"type": "string"}}},
}


@blueprint.get("/metrics", responses={200: _DESCRIBED})
def metrics() -> Response:
    """Numbers of the whole installation, as Prometheus reads them."""
    return Response(generate_latest(Numbers()), content_type=CONTENT_TYPE_PLAIN_0_0_4)


class Numbers(Collector):
    """What the desk can see, and what the search workers have counted.

    Of a broker or a ledger that does not answer `callslip_up` is 0, and its numbers are left out.
    """

    def collect(self) -> Iterator[Metric]:
        """Every family of numbers, asked now."""
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
        for state, count in ledger().documents.states().items():
            documents.add_metric([state], count)
        yield documents

    def _broker(self) -> Iterator[Metric]:
        waiting = GaugeMetricFamily(
            "callslip_queue_messages", "Messages that wait in a queue.", labels=["queue"]
        )
        workers = GaugeMetricFamily(
            "callslip_queue_workers", "Workers that read a queue.", labels=["queue"]
        )
        readers = consumers()
        for queue in ALL:
            waiting.add_metric([queue], backlog(queue))
            workers.add_metric([queue], readers[queue])
        yield from (waiting, workers)
        yield from families(metering.counted())


def families(counted: Iterable[tuple[tuple[str, ...], int]]) -> list[Metric]:
    """What the search workers have counted; names that are not known here are left out."""
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
            "callslip_cache_misses", "Searches that asked a cache in vain.", labels=["cache"]
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
    for found in times[metering.SEARCH_TIME].values():
        whole.add_metric([], *_buckets(found))
    for found in times[metering.ANSWER_TIME].values():
        answers.add_metric([], *_buckets(found))
    for stage, found in sorted(times[metering.STAGE].items()):
        stages.add_metric([stage], *_buckets(found))
    return [*counters.values(), whole, stages, answers]


def _buckets(found: dict[str, int]) -> tuple[list[tuple[str, float]], float]:
    """How many took as long as each bound or less, and the sum of all in seconds."""
    buckets, total = [], 0
    for bucket in metering.BUCKETS:
        total += found.get(bucket, 0)
        buckets.append((bucket, float(total)))
    return buckets, found.get(metering.MICROSECONDS, 0) / 1e6
