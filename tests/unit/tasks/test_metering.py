"""What search workers count, how it is added up, and how the server tells it."""

import inspect
import threading
import time
from collections import Counter
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import redis
from context_parts import app_over, context_of, working
from memory_store import MemoryStore
from prometheus_client.exposition import generate_latest
from prometheus_client.openmetrics.exposition import generate_latest as in_open_metrics
from prometheus_client.openmetrics.parser import text_string_to_metric_families as strictly
from prometheus_client.parser import text_string_to_metric_families
from valkey_parts import valkey

from callslip.api.v1 import metrics
from callslip.config.settings import Settings
from callslip.errors import BrokerDown, EmptyQuery, StoreDown
from callslip.models.language_models.completion import Usage
from callslip.retrieval.caches import Cache
from callslip.stores.contract import Store
from callslip.tasks import search
from callslip.tasks.shared import metering
from callslip.tasks.shared.metering import HITS, MISSES, SEARCH_TIME, SEARCHES, STAGE, Meter, named

SOON = 0.01


class Sums:
    """All processes' numbers; `down` while it does not answer."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.down = False
        self.calls = 0

    def send(self, counts: Mapping[str, int]) -> None:
        self.calls += 1
        if self.down:
            raise BrokerDown("it does not answer")
        self.counts.update(counts)

    def read(self) -> list[tuple[tuple[str, ...], int]]:
        return [(tuple(name.split("|")), count) for name, count in self.counts.items()]


def output(sums: Sums) -> dict[tuple[str, ...], float]:
    """Every sample of the text: name and the values of its labels."""
    registry: Any = SimpleNamespace(collect=lambda: metrics.families(sums.read()))
    text = generate_latest(registry).decode()
    return {
        (sample.name, *(value for _, value in sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_what_several_workers_count_is_added_up() -> None:
    sums, cache = Sums(), Cache[int](1)
    cache.get("a")
    cache.put("a", 1)
    cache.get("a")
    cache.get("a")
    for _ in range(3):
        meter = Meter(sums.send, every_seconds=SOON)
        meter.add(named(SEARCHES, "answered"))
        meter.caches({"questions": cache})
        time.sleep(5 * SOON)
        meter.add(named(SEARCHES, "answered"), named(SEARCHES, "failed"))
        meter.caches({"questions": cache})
        meter.close()
    assert sums.counts[named(SEARCHES, "answered")] == 6
    assert sums.counts[named(HITS, "questions")] == 6
    assert sums.counts[named(MISSES, "questions")] == 3
    found = output(sums)
    assert found["callslip_searches_total", "answered"] == 6
    assert found["callslip_searches_total", "failed"] == 3
    assert found["callslip_cache_hits_total", "questions"] == 6
    assert found["callslip_cache_misses_total", "questions"] == 3


def test_nothing_is_sent_while_nothing_is_counted() -> None:
    sums = Sums()
    meter = Meter(sums.send, every_seconds=SOON)
    time.sleep(5 * SOON)
    meter.close()
    assert sums.calls == 0


def test_what_a_broker_that_is_away_missed_comes_later_and_is_told_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    sums = Sums()
    sums.down = True
    meter = Meter(sums.send, every_seconds=SOON)
    meter.add("a")
    time.sleep(10 * SOON)
    meter.add("a")
    sums.down = False
    meter.close()
    assert sums.counts == {"a": 2}
    assert sums.calls > 2
    assert caplog.text.count("it does not answer") == 1


def test_counting_and_ending_wait_for_no_slow_broker() -> None:
    go = threading.Event()
    meter = Meter(lambda _: go.wait(10) and None, every_seconds=SOON)
    meter.add("a")
    time.sleep(5 * SOON)
    start = time.perf_counter()
    for _ in range(1000):
        meter.add("a")
        meter.took(SEARCH_TIME, 0.1)
    meter.close(SOON)
    assert time.perf_counter() - start < 1
    go.set()


def test_times_are_told_as_histograms() -> None:
    sums = Sums()
    meter = Meter(sums.send)
    for seconds in (0.001, 0.0011, 0.02, 99.0):
        meter.took(SEARCH_TIME, seconds)
    meter.took(named(STAGE, "legs"), 0.004)
    meter.close()
    found = output(sums)
    name = "callslip_search_duration_seconds"
    buckets = {key[1]: value for key, value in found.items() if key[0] == f"{name}_bucket"}
    assert list(buckets) == list(metering.BUCKETS)
    assert (buckets["0.001"], buckets["0.0025"], buckets["0.025"], buckets["+Inf"]) == (1, 2, 3, 4)
    assert found[(f"{name}_count",)] == 4
    assert found[(f"{name}_sum",)] == pytest.approx(99.0221)
    stage = "callslip_search_stage_duration_seconds"
    assert found[f"{stage}_sum", "legs"] == pytest.approx(0.004)
    assert found[f"{stage}_bucket", "0.005", "legs"] == 1


def test_numbers_of_another_version_are_left_out() -> None:
    sums = Sums()
    sums.counts = Counter({"what|is|this": 3, "stage|legs|7.5": 1, "searches|answered": 1})
    found = output(sums)
    assert found["callslip_searches_total", "answered"] == 1
    assert not any("what" in key[0] for key in found)


def test_a_part_that_does_not_answer_is_told_and_the_rest_is_there() -> None:
    def down(_: object) -> Any:
        raise StoreDown("the ledger does not answer")

    states = SimpleNamespace(
        documents=SimpleNamespace(states=lambda: {"live": 7, "failed": 1}),
        fair_queue=SimpleNamespace(oldest=lambda: None),
        webhooks=SimpleNamespace(states=dict),
    )
    text = numbers(ledger=states, broker=Broken())
    assert 'callslip_documents{state="live"} 7.0' in text
    assert 'callslip_up{part="broker"} 0.0' in text
    assert 'callslip_up{part="ledger"} 1.0' in text
    away = SimpleNamespace(documents=SimpleNamespace(states=partial(down, None)))
    text = numbers(ledger=away, broker=Broken())
    assert 'callslip_up{part="ledger"} 0.0' in text
    assert "callslip_documents" not in text


def test_the_metrics_pass_the_strict_parser_with_any_label() -> None:
    """That of OpenMetrics, which also refuses repeated series and buckets that do not add up."""
    strange = 'a "quoted" \\ and\na second line'
    counted: list[tuple[tuple[str, ...], int]] = [
        ((name, *(strange for _ in family.labels)), 3) for name, family in metrics.COUNTERS.items()
    ]
    for name, family in metrics.TIMES.items():
        labels = tuple(strange for _ in family.labels)
        for bucket in (*metering.BUCKETS, metering.MICROSECONDS):
            counted.append(((name, *labels, bucket), 2))
    of_processes = metrics.families(counted)
    with app_over(broker=Broken()).app_context():
        of_server = list(metrics.Numbers().collect())
    registry: Any = SimpleNamespace(collect=lambda: [*of_server, *of_processes])
    parsed = {family.name: family for family in strictly(in_open_metrics(registry).decode())}
    assert parsed.keys() == {family.name for family in (*of_server, *of_processes)}
    (sample,) = parsed["callslip_cache_hits"].samples
    assert (sample.labels, sample.value) == ({"cache": strange}, 3)


def numbers(**parts: Any) -> str:
    """What the endpoint shows over these parts."""
    with app_over(**parts).app_context():
        return generate_latest(metrics.Numbers()).decode()


class Broken:
    """A client of a broker that is away."""

    def __getattr__(self, name: str) -> Any:
        raise redis.ConnectionError


def test_a_broker_that_is_away_is_named() -> None:
    broker: Any = Broken()
    with pytest.raises(BrokerDown, match="ConnectionError"):
        metering.send(broker, {"a": 1})
    with pytest.raises(BrokerDown, match="ConnectionError"):
        list(metering.counted(broker))
    with pytest.raises(BrokerDown, match="ConnectionError"):
        metering.keep(broker, {"a": 1})


class Pipeline:
    def __getattr__(self, name: str) -> Any:
        return lambda *_: None


def test_each_search_is_counted_by_how_it_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    sums = Sums()
    meter = Meter(sums.send)
    recorded: list[object] = []
    recorder = SimpleNamespace(put=lambda trace: recorded.append(trace) or len(recorded) < 2)
    trace = SimpleNamespace(
        timings={"legs": 4.0, "rank": 1.0}, trace_id="t", hits=(), candidates=0, hotset=False
    )

    def traced(_: object, request: Any) -> Any:
        match request.query:
            case "empty":
                raise EmptyQuery("no letter")
            case "down":
                raise StoreDown("Chroma does not answer")
            case "bug":
                raise ValueError
        partial = request.query == "partial"
        return SimpleNamespace(partial=partial, model_dump_json=lambda: "{}"), trace

    resources = SimpleNamespace(caches={"hotset": Cache[int](1)})
    broker = SimpleNamespace(pipeline=lambda **_: Pipeline())
    monkeypatch.setattr(search, "traced", traced)
    with working(context_of(resources=resources, meter=meter, recorder=recorder, broker=broker)):
        for query in ("well", "partial", "empty", "down", "bug"):
            search.query({"collection": "c", "query": query}, "reply:1", time.time() + 9)
        search.query({"collection": "c", "query": "well"}, "reply:1", time.time() - 1)
    meter.close()
    found = output(sums)
    name = "callslip_searches_total"
    counts = {key[1]: value for key, value in found.items() if key[0] == name}
    assert counts == {"answered": 1, "partial": 1, "refused": 1, "failed": 2, "late": 1}
    assert found[("callslip_search_duration_seconds_count",)] == 5
    assert found["callslip_search_stage_duration_seconds_count", "legs"] == 2
    assert found[("callslip_traces_dropped_total",)] == 1


def test_calls_of_the_language_model_are_told_by_outcome_and_its_tokens_by_direction() -> None:
    sums = Sums()
    meter = Meter(sums.send, every_seconds=SOON)
    for outcome, read, written in (("answered", 30, 4), ("answered", 9, 1), ("down", 0, 0)):
        metering.model_called(meter, outcome, Usage(read, written))  # type: ignore[arg-type]
    meter.close()
    found = output(sums)
    assert found["callslip_model_calls_total", "answered"] == 2
    assert found["callslip_model_calls_total", "down"] == 1
    assert found["callslip_model_tokens_total", "input"] == 39
    assert found["callslip_model_tokens_total", "output"] == 5


def test_a_size_is_told_as_it_is_and_not_added_up() -> None:
    kept: dict[str, int] = {}
    meter = Meter(metering.drop, keep=kept.update, every_seconds=SOON)
    name = named(metering.BATCH_SIZE, "chroma")
    for size in (256, 320, 400):
        meter.level(name, size)
        time.sleep(3 * SOON)
    meter.close()
    assert kept == {name: 400}


def test_every_call_of_a_store_is_counted() -> None:
    """Calls that consist of counted ones, read only memory or look after the connection are not."""
    of_others = {"retrieve", "vector_query", "exact_query", "hybrid_query", "deepest_level"}
    local = {"schema", "forget", "build_where", "check_names", "property_names"}
    connection = {"collections", "ping", "probe", "answers", "close"}
    calls = {name for name, _ in inspect.getmembers(Store, inspect.isfunction) if name[0] != "_"}
    assert calls - of_others - local - connection == set(metering.OPERATIONS)


def test_a_store_tells_the_size_of_its_batches_as_it_changes() -> None:
    kept: dict[str, int] = {}
    meter = Meter(metering.drop, keep=kept.update)
    store = metering.observed(MemoryStore(), meter, None)
    with store.batch_size.measured(store.batch_size.size):
        pass
    meter.close()
    assert kept == {named(metering.BATCH_SIZE, "memory"): 320}


def test_the_size_of_a_batch_is_among_the_metrics(tmp_path: Path) -> None:
    with valkey(tmp_path) as broker:
        metering.keep(broker, {named(metering.BATCH_SIZE, "crate"): 781})
        assert dict(metering.levels(broker))[(metering.BATCH_SIZE, "crate")] == 781
        app = app_over(Settings(data_dir=tmp_path), broker=broker)
        text = app.test_client().get("/metrics").text
    assert 'callslip_upsert_batch_size{store="crate"} 781.0' in text
