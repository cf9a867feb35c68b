"""A part that hangs is noticed, reported and started again; meanwhile nobody waits for it."""

import time
import uuid
from collections.abc import Callable

import httpx
import pytest
from outcome import Outcome, essay
from processes import waits_until
from stack import Stack

NOTICED_SECONDS = 15.0
"""From the fault to its report by /readyz and its restart, on a machine that has time for it."""

SLACK = 15.0
"""What a machine that runs other tests may take longer."""


def question(text: str) -> dict[str, object]:
    """A question that the text answers, and whose candidates no cache has."""
    return {"collection": "chaos", "query": f"{text.split()[6]} {uuid.uuid4().hex}", "top": 3}


def timed(call: Callable[[], httpx.Response]) -> tuple[httpx.Response, float]:
    begun = time.monotonic()
    return call(), time.monotonic() - begun


def unready(outcome: Outcome) -> dict[str, str]:
    """The parts that /readyz names, with their reasons; it answers in time whatever hangs."""
    answer, seconds = timed(lambda: outcome.http.get("/readyz"))
    assert seconds < 3.0
    return {name: part["reason"] for name, part in answer.json()["parts"].items() if part["reason"]}


@pytest.mark.long
def test_hung_servers_are_restarted_and_the_local_half_answers_meanwhile(
    hasty_stack: Stack, outcome: Outcome
) -> None:
    text = essay(2)
    outcome.wait(outcome.submit(text), "live")

    def search() -> httpx.Response:
        return outcome.http.post("/v1/search", json=question(text))

    assert search().json()["partial"] is False
    hasty_stack.hang("chroma")
    search()  # one search finds out, by the limit of its own time
    answer, seconds = timed(search)
    assert answer.json()["hits"][0]["text"]
    if not hasty_stack.says("chroma       hung"):
        assert answer.json()["partial"] is True
        assert "has not answered" in answer.json()["left_out"]["vector"]
    assert seconds < 2.0
    assert "store chroma" in unready(outcome)
    hasty_stack.hang("valkey")
    assert "broker" in unready(outcome)
    answer, seconds = timed(search)
    assert answer.status_code == 503
    assert answer.json()["type"].endswith("broker-down")
    assert seconds < 5.0
    for server in ("chroma", "valkey"):
        assert hasty_stack.wait_until_back(server) < NOTICED_SECONDS + SLACK
        assert hasty_stack.says(f"{server:12} hung: no progress for")
    assert waits_until(lambda: unready(outcome) == {})
    assert waits_until(lambda: search().json().get("partial") is False)


def test_a_hung_search_worker_is_restarted_and_nobody_waits_for_it(
    hasty_stack: Stack, outcome: Outcome
) -> None:
    hasty_stack.hang("search")
    assert waits_until(lambda: "queue search" in unready(outcome), NOTICED_SECONDS)
    answer, seconds = timed(lambda: outcome.http.post("/v1/search", json=question(essay(1))))
    assert answer.status_code == 503
    assert "no worker reads the queue 'search'" in answer.json()["detail"]
    assert seconds < 1.0
    hasty_stack.wait_until_back("search")
    assert hasty_stack.says("search       hung: no progress for")
    assert waits_until(lambda: unready(outcome) == {})
    found = outcome.http.post("/v1/search", json=question(essay(1)))
    assert found.status_code == 200
