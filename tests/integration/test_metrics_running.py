"""/metrics of a running stack: what the search worker counts reaches the desk."""

import time
from collections.abc import Callable

import httpx
from desk import Desk
from prometheus_client.parser import text_string_to_metric_families
from stack import Stack


def numbers(http: httpx.Client) -> dict[tuple[str, ...], float]:
    answer = http.get("/metrics")
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


def until(http: httpx.Client, fits: Callable[[dict[tuple[str, ...], float]], bool]) -> bool:
    ends = time.monotonic() + 10
    while time.monotonic() < ends:
        if fits(numbers(http)):
            return True
        time.sleep(0.2)
    return False


def test_searches_and_what_caches_spare_are_counted(stack: Stack) -> None:
    with Desk(stack) as desk:
        desk.live(text="The desk opens at nine.", name="hours")
        before = numbers(desk.http)
        for _ in range(3):
            assert desk.search("when does the desk open?").status_code == 200
        hits = ("callslip_cache_hits_total", "questions")
        answered = ("callslip_searches_total", "answered")
        assert until(
            desk.http,
            lambda now: (
                now.get(answered, 0) - before.get(answered, 0) == 3
                and now.get(hits, 0) - before.get(hits, 0) == 2
            ),
        )
        found = numbers(desk.http)
        assert found["callslip_documents", "live"] >= 1
        assert found["callslip_queue_workers", "search"] == 1
        assert found["callslip_queue_messages", "search"] == 0
        assert found["callslip_up", "broker"] == found["callslip_up", "ledger"] == 1
        assert found["callslip_search_stage_duration_seconds_count", "legs"] >= 1
        assert desk.collection not in desk.http.get("/metrics").text
