"""A message of a queue says for whom it is, and the worker answers this reader alone."""

import json
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from context_parts import Consumed, LoneBroker, working
from reader_parts import COLLECTION, Installation, installation

from callslip.agent.messages import AnswerRequest
from callslip.errors import InvalidFilter
from callslip.readers import Reader
from callslip.retrieval.messages import SearchRequest
from callslip.tasks import answer, compute, search
from callslip.tasks.composition import Context
from callslip.tasks.shared import replies, sending
from callslip.tasks.shared.sending import Sent

BOB, BOARD = Reader("bob", frozenset({"user:bob"})), Reader("ann", frozenset({"group:board"}))


@pytest.fixture
def it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Installation]:
    ask = answer.ask
    with installation(tmp_path, monkeypatch) as made:
        monkeypatch.setattr(answer, "ask", ask)  # over the queue
        made.put("board.txt", "The merger of the canteen is in May.", readers="group:board")
        yield made


@pytest.fixture
def queued(it: Installation, monkeypatch: pytest.MonkeyPatch) -> Iterator[Context]:
    """A context whose messages a worker answers at once."""
    sent: list[replies.Reply] = []
    monkeypatch.setattr(replies, "send", lambda _broker, _to, reply: sent.append(reply))
    monkeypatch.setattr(replies, "receive", lambda *_: iter([_ok(sent.pop())]))
    results: list[str] = []
    monkeypatch.setattr(replies, "send_result", lambda _broker, _to, result: results.append(result))
    monkeypatch.setattr(replies, "receive_result", lambda *_: results.pop().encode())
    monkeypatch.setattr(sending, "send", _run_at_once)
    for module, name in (
        (answer, "answer"),
        (answer, "conversation"),
        (compute, "compute"),
    ):
        monkeypatch.setattr(module, name, AtOnce(getattr(module, name)))
    monkeypatch.setattr(it.context, "local", False)
    parts: dict[str, Any] = {
        **{"meter": Meter(), "recorder": Meter(), "broker": Stored()},
        "consumers": Consumed(),
    }
    it.context.provided = {**it.context.provided, **parts}
    with working(it.context):
        yield it.context


class AtOnce:
    """A task that runs when it is queued, with what its message has after JSON."""

    def __init__(self, task: Any) -> None:
        self._task = task

    def apply_async(self, args: Any, kwargs: Any = None, **_: object) -> None:
        args, kwargs = json.loads(json.dumps([args, kwargs or {}]))
        self._task(*args, **kwargs)


def _run_at_once(_: object, task: Any, arguments: Any, *, queue: str, expires: float) -> Sent:
    assert expires > 0
    task(*json.loads(json.dumps(arguments)))
    return Sent(queue, "", 1)


class Meter:
    """A meter and a recorder that count and write nothing."""

    def add(self, *_: object) -> None: ...

    def took(self, *_: object) -> None: ...

    def caches(self, *_: object) -> None: ...

    def put(self, *_: object) -> bool:
        return True


class Stored(LoneBroker):
    """A broker that stores the requests of jobs."""

    def __init__(self) -> None:
        self._values: dict[str, str] = {}

    def lock(self, *_: object, **__: object) -> Any:
        return nullcontext()

    def set(self, name: str, value: str, **_: object) -> None:
        self._values[name] = value

    def getdel(self, name: str) -> str:
        return self._values.pop(name)

    def exists(self, _: str) -> int:
        return 0


def _ok(reply: replies.Reply) -> replies.Reply:
    assert "ok" in reply, reply
    return reply


def test_a_search_over_the_queue_is_for_its_reader(queued: Context) -> None:
    request = SearchRequest(collection=COLLECTION, query="merger", top=9)
    found = {
        reader: [hit.filename for hit in search.ask(queued.for_reader(reader), request).hits]
        for reader in (BOB, BOARD, None)
    }
    assert found[BOB] == []
    assert set(found[BOARD]) == set(found[None]) == {"board.txt"}


def test_an_invalid_search_is_refused_without_a_message(
    queued: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sending, "send", None)  # an adapter queues without a check of its own
    with pytest.raises(InvalidFilter):
        search.ask(queued, SearchRequest(collection="c", query="x", having_all={"a": [[[1]]]}))


def test_an_answer_over_the_queue_is_for_its_reader(queued: Context) -> None:
    request = AnswerRequest(collection=COLLECTION, question="When is the merger?", thread_id="t")
    assert not answer.ask(queued.for_reader(BOB), request).answered
    assert answer.ask(queued.for_reader(BOARD), request).answered
    turns = answer.look(queued.for_reader(BOARD), COLLECTION, "", "t").turns
    assert [turn.answered for turn in turns] == [True]
    document_id = queued.ledger.documents.id_of(COLLECTION, "board.txt")
    assert document_id is not None
    queued.ledger.readers.set(document_id, ())
    (turn,) = answer.look(queued.for_reader(BOARD), COLLECTION, "", "t").turns
    assert turn.text == answer.HIDDEN
    queued.ledger.documents.delete(document_id)
    queued.ledger.chunks.forget(document_id)  # as the removal of its data does
    (turn,) = answer.look(queued.for_reader(BOARD), COLLECTION, "", "t").turns
    assert turn.text == answer.HIDDEN
    turns = answer.look(queued.for_reader(BOB), COLLECTION, "", "t").turns
    assert [turn.answered for turn in turns] == [False]


def test_a_job_of_an_adapter_works_for_its_reader(
    queued: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[Reader | None] = []

    def job(context: Context, _: object) -> None:
        given.append(context.reader)

    monkeypatch.setattr(compute, "job_of", lambda _: job)
    compute.run(queued.for_reader(BOB), "faq.write", {})
    compute.run(queued, "faq.write", {})
    assert given == [BOB, None]
