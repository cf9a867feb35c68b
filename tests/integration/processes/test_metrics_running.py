"""/metrics of a running stack: what the search worker counts reaches the API."""

import time
from collections.abc import Callable

import httpx
from api_calls import Api
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
    with Api(stack) as api:
        api.live(text="The desk opens at nine.", name="hours")
        before = numbers(api.http)
        for _ in range(3):
            assert api.search("when does the desk open?").status_code == 200
        hits = ("callslip_cache_hits_total", "questions")
        answered = ("callslip_searches_total", "answered")
        assert until(
            api.http,
            lambda now: (
                now.get(answered, 0) - before.get(answered, 0) == 3
                and now.get(hits, 0) - before.get(hits, 0) == 2
            ),
        )
        found = numbers(api.http)
        assert found["callslip_documents", "live"] >= 1
        assert found["callslip_queue_workers", "search"] == 1
        assert found["callslip_queue_messages", "search"] == 0
        assert found["callslip_up", "broker"] == found["callslip_up", "ledger"] == 1
        assert found["callslip_search_stage_duration_seconds_count", "legs"] >= 1
        assert api.collection not in api.http.get("/metrics").text
