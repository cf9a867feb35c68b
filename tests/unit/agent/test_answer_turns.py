"""Questions to the agent as queued work: one of a conversation at a time."""

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from agent_parts import Setup, make_setup
from context_parts import context_of, working
from valkey_parts import valkey

from callslip.agent.messages import Answer, Conversation, NodeMessage, SentenceMessage
from callslip.errors import Conflict, ThreadNotFound
from callslip.models.embedders.none import LexicalEmbedder
from callslip.tasks import answer as answer_task
from callslip.tasks.composition import current
from callslip.tasks.shared import metering, replies

QUERIES = "What does lunch in the canteen cost?"


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[redis.Redis]:
    """A Valkey of its own, on a socket."""
    with valkey(tmp_path_factory.mktemp("valkey")) as client:
        yield client


@pytest.fixture
def setup(tmp_path: Path, broker: redis.Redis) -> Iterator[Setup]:
    """What the answer worker has, with a setup's agent."""
    with make_setup(tmp_path, LexicalEmbedder()) as made:
        made.furnish()
        counts = metering.Meter(lambda _: None)
        broker.flushall()
        parts = {"agent": made.agent, "conversations": made.threads, "meter": counts}
        with working(context_of(broker=broker, **parts)):
            yield made
        counts.close()


def ask(question: str, thread_id: str | None = "t", wait: float = 10.0) -> dict[str, Any]:
    """What the task replies."""
    address = replies.new_address()
    request = {"collection": "papers", "question": question, "thread_id": thread_id}
    answer_task.answer(request, address, time.time() + wait, stream=False)
    return next(replies.receive(current().broker, address, time.time() + 1))["ok"]


@pytest.mark.long
def test_questions_at_once_in_one_conversation_are_both_kept(setup: Setup) -> None:
    ask(QUERIES)
    inside: list[int] = []
    most: list[int] = []
    answers = setup.agent.answer

    def counting(*given: Any, **more: Any) -> Any:
        inside.append(1)
        most.append(len(inside))
        time.sleep(0.05)
        try:
            return answers(*given, **more)
        finally:
            inside.pop()

    setup.agent.answer = counting  # type: ignore[method-assign]
    questions = [f"And for guest {n}?" for n in range(4)]
    asking = [threading.Thread(target=ask, args=(question,)) for question in questions]
    for each in asking:
        each.start()
    for each in asking:
        each.join()
    assert max(most) == 1
    turns = setup.threads.turns("papers", "", "t")[1]
    assert sorted(turn["question"] for turn in turns[1:]) == questions
    assert turns[0]["question"] == QUERIES


def test_a_conversation_that_stays_busy_is_a_conflict(setup: Setup, broker: redis.Redis) -> None:
    with broker.lock("turn:papers::t", timeout=10):
        address = replies.new_address()
        request = {"collection": "papers", "question": QUERIES, "thread_id": "t"}
        answer_task.answer(request, address, time.time() + 0.2, stream=False)
        with pytest.raises(Conflict, match="busy"):
            next(replies.receive(current().broker, address, time.time() + 1))
        assert ask(QUERIES, "u")["answered"]
        assert ask(QUERIES, None)["answered"]
    assert ask(QUERIES)["answered"]


def test_a_question_that_is_late_is_not_answered(setup: Setup) -> None:
    address = replies.new_address()
    request = {"collection": "papers", "question": QUERIES, "thread_id": "t"}
    answer_task.answer(request, address, time.time() - 1, stream=False)
    assert list(replies.receive(current().broker, address, time.time() + 0.1)) == []
    with pytest.raises(ThreadNotFound):
        setup.threads.turns("papers", "", "t")


def test_a_stream_tells_of_nodes_without_text_and_then_answers(setup: Setup) -> None:
    address = replies.new_address()
    request = {"collection": "papers", "question": QUERIES}
    answer_task.answer(request, address, time.time() + 10, stream=True)
    *nodes, last = replies.receive(current().broker, address, time.time() + 1)
    assert NodeMessage(**nodes[0]["node"]).node == "listener"
    sentences = [SentenceMessage(**each["sentence"]) for each in nodes if "sentence" in each]
    nodes = [each for each in nodes if "node" in each]
    assert len(nodes) == 10
    assert "canteen" not in str(nodes)
    answer = Answer(**last["ok"])
    assert answer.answered
    assert [each.text for each in sentences] == [each.text for each in answer.sentences]
    assert [c for each in sentences for c in each.citations] == answer.citations


def test_the_trace_of_an_answer_has_its_citations_without_text(setup: Setup) -> None:
    answer = Answer(**ask(QUERIES, None))
    body = setup.engine.ledger.searches.trace(answer.trace_id, keep_seconds=60).body
    record = body["answer"]["record"]
    assert [each["citations"] for each in record["sentences"]] == [
        each.citations for each in answer.sentences
    ]
    assert [each["span"] for each in record["citations"]] == [
        each.span.model_dump() for each in answer.citations
    ]
    assert "canteen" not in json.dumps(record)


def test_a_worker_stops_when_the_caller_of_a_stream_has_left(setup: Setup) -> None:
    address, context = replies.new_address(), current()
    stream = answer_task.Replies(context, address, time.time() + 10)
    replies.send(
        context.broker,
        address,
        {"node": {"node": "planner", "attempt": 0, "milliseconds": 1.0, "facts": {}}},
    )
    next(stream)
    stream.close()
    request = {"collection": "papers", "question": QUERIES}
    answer_task.answer(request, address, time.time() + 10, stream=True)
    assert list(replies.receive(context.broker, address, time.time() + 0.1)) == []


def test_a_conversation_is_read_and_forgotten(setup: Setup) -> None:
    ask(QUERIES)
    for forget in (False, True):
        address = replies.new_address()
        answer_task.conversation("papers", "", "t", address, forget=forget)
        output = Conversation(
            **next(replies.receive(current().broker, address, time.time() + 1))["ok"]
        )
        assert [turn.question for turn in output.turns] == [QUERIES]
    address = replies.new_address()
    answer_task.conversation("papers", "", "t", address, forget=False)
    with pytest.raises(ThreadNotFound):
        next(replies.receive(current().broker, address, time.time() + 1))
