"""/metrics of a running stack: what the search worker counts reaches the desk."""

import time
from collections.abc import Callable

import httpx
from desk import Desk
from prometheus_client.parser import text_string_to_metric_families
from stack import MakeStack, Stack


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


def test_the_hotset_serves_a_question_again_and_no_deleted_document(make_stack: MakeStack) -> None:
    overrides = {"CALLSLIP_SEARCH__HOTSET": "100", "CALLSLIP_MEMORY__EXPLORATION": "off"}
    stack = make_stack(overrides).start()
    with Desk(stack) as desk:
        document = desk.live(text="Parents may take twelve weeks of leave.", name="leave")
        desk.live(text="The desk opens at nine.", name="hours")
        question = "how long is parental leave?"
        first = desk.search(question).json()
        assert first["hotset"] is False
        for user in ("ann", "bob"):
            said = {
                "trace_id": first["trace_id"],
                "chunk_ids": [first["hits"][0]["chunk_id"]],
                "verdict": "helpful",
                "user": user,
            }
            ends = time.monotonic() + 10
            while (status := desk.http.post("/v1/feedback", json=said).status_code) != 201:
                assert time.monotonic() < ends, status
                time.sleep(0.1)
        time.sleep(1.1)  # retrieval.hotset.CHECK_SECONDS
        again = desk.search("how long does parental leave last?").json()
        assert (again["hotset"], len(again["hits"])) == (True, 1)
        assert again["hits"][0]["document_id"] == document
        trace = desk.http.get(f"/debug/trace/{again['trace_id']}").json()
        assert trace["hotset"] is True
        served = ("callslip_cache_hits_total", "hotset")
        assert until(desk.http, lambda now: now.get(served, 0) == 1)
        filtered = desk.search(question, having_all={"filename": "hours"}).json()
        assert {hit["document_id"] for hit in filtered["hits"]} == set()
        assert desk.http.delete(f"/v1/documents/{document}").status_code == 202
        gone = desk.search(question).json()
        assert (gone["hotset"], len(gone["hits"])) == (False, 1)
        assert gone["hits"][0]["document_id"] != document
