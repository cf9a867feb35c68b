"""kill -9 of any worker at any moment loses nothing and doubles nothing."""

import time
import uuid

import pytest
from long_forms import sample
from outcome import Outcome, essay
from stack import Stack

from callslip.stores.ledger import STEPS, Step

KILLED = 3
"""The steps of a document in which `make test` kills the worker."""

TRIES = 25
"""Short steps are over before the signal arrives, now and then; then the next document is used."""


def text_for(step: Step) -> str:
    """A new text that takes long in this step, and is not long to embed where that is another."""
    if step == "sectionize":
        return f"{uuid.uuid4().hex}\n\n" + "a\n\n" * 4000
    return essay({"extract": 3, "chunk": 40, "embed": 30}.get(step, 60))


def kill_during(outcome: Outcome, step: Step) -> str:
    """Kill the ingest worker while it is in this step; the id of the document it had."""
    at = STEPS.index(step)
    for _ in range(TRIES):
        document_id = outcome.submit(text_for(step))
        while (state := (steps := outcome.steps(document_id))[at].state) == "pending":
            begins_soon = at == 0 or steps[at - 1].state != "pending"
            time.sleep(0.0005 if begins_soon else 0.02)
        if state == "running":
            outcome.stack.kill("ingest")
            if outcome.step(document_id, step).state == "running":
                return document_id
            outcome.stack.wait_until_back("ingest")
        outcome.wait(document_id, "live")
    raise AssertionError(f"step {step} was never caught running")


@pytest.mark.long
@pytest.mark.parametrize("step", sample(STEPS, KILLED))
def test_a_worker_killed_in_a_step_loses_and_doubles_nothing(outcome: Outcome, step: Step) -> None:
    document_id = kill_during(outcome, step)
    outcome.stack.wait_until_back("ingest")
    outcome.wait(document_id, "live")
    assert outcome.step(document_id, step).crashes == 1
    assert outcome.step(document_id, step).attempts == 2
    original = outcome.http.get(f"/v1/documents/{document_id}/text").json()["text"]
    outcome.assert_whole(document_id, original)


@pytest.mark.long
def test_a_document_that_kills_its_worker_each_time_is_set_aside_and_others_go_on(
    outcome: Outcome,
) -> None:
    text = essay(30)
    document_id = outcome.submit(text)
    for attempt in (1, 2):
        # The step of a killed worker is recorded as running until its lease ends.
        while (step := outcome.step(document_id, "embed")).state != "running" or (
            step.attempts != attempt
        ):
            time.sleep(0.01)
        outcome.stack.kill("ingest")
        outcome.stack.wait_until_back("ingest")
    other = outcome.submit(essay(2))
    found = outcome.wait(document_id, "failed")
    assert found.newest.failure is not None
    assert found.newest.failure.type == "worker-lost"
    outcome.wait(other, "live")
    which = {"collection": found.collection, "reason": "worker-lost"}
    (letter,) = outcome.http.get("/v1/dead-letters", params=which).json()["dead_letters"]
    assert (letter["document_id"], letter["step"]) == (document_id, "embed")
    assert (letter["attempts"], letter["crashes"]) == (2, 2)
    retried = outcome.http.post("/v1/dead-letters/retry", json={"document_ids": [document_id]})
    assert retried.json()["retried"] == [document_id]
    outcome.wait(document_id, "live")
    assert outcome.http.get("/v1/dead-letters", params=which).json()["dead_letters"] == []


def test_a_dead_search_worker_comes_back_and_searches_go_on(
    hasty_stack: Stack, outcome: Outcome
) -> None:
    text = essay(2)
    outcome.wait(outcome.submit(text), "live")
    hasty_stack.kill("search")
    hasty_stack.wait_until_back("search")
    question = {"collection": "chaos", "query": text.split()[6]}
    answer = outcome.http.post("/v1/search", json=question)
    assert answer.status_code == 200
    assert answer.json()["hits"]
