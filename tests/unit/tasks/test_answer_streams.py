"""The streams of answers: a worker is told when the reader of a stream has left."""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from context_parts import LoneBroker, app_over, context_of
from page_parts import make_collection, shelved

from callslip.agent.messages import AnswerRequest
from callslip.api.v1.answers import answering
from callslip.errors import AnswerTimeout, BrokerDown, CallslipError, Overloaded
from callslip.tasks import answer
from callslip.tasks.shared import replies

NODE = {"node": {"node": "planner", "attempt": 0, "milliseconds": 1.0, "facts": {}}}
QUESTION = {"collection": "papers", "question": "How long is the leave?"}
STREAM = {"Accept": answering.EVENTS}


class Broker(LoneBroker):
    """A broker with a worker, one reply, and the keys that were set."""

    def __init__(self) -> None:
        self.replies: list[dict[str, Any]] = [NODE]
        self.keys: list[str] = []

    def scan_iter(self, **_: object) -> Iterator[bytes]:
        return iter((b"consumer:answer:host:1",))

    def brpop(self, names: list[str], **_: object) -> tuple[str, str] | None:
        return (names[0], json.dumps(self.replies.pop())) if self.replies else None

    def set(self, key: str, *_: object, **__: object) -> None:
        self.keys.append(key)


def test_a_reader_that_leaves_is_told_to_the_worker_before_and_after_the_first_event(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = Broker()
    monkeypatch.setattr(answer, "_queue", lambda *_, **__: None)
    with shelved(tmp_path) as ledger:
        make_collection(ledger)
        app = app_over(ledger=ledger, broker=broker)
        with app.test_request_context():
            answering.stream(AnswerRequest.model_validate(QUESTION), answering._events).close()
        (key,) = broker.keys
        assert key.endswith(replies.GONE)
        assert broker.replies == [NODE], "nothing was read"
        streamed = app.test_client().post("/v1/answer", json=QUESTION, headers=STREAM)
        assert broker.replies == [], "the first event was read"
        assert len(broker.keys) == 1
        streamed.close()
    assert len(set(broker.keys)) == 2
    assert answering._slots._taken == 0


def _down(*_: object, **__: object) -> None:
    raise redis.ConnectionError


@pytest.mark.parametrize(
    ("error", "left", "pop"),
    [(Overloaded, 10.0, None), (AnswerTimeout, 0.0, None), (BrokerDown, 10.0, _down)],
)
def test_after_an_error_nothing_follows_and_the_worker_is_told_nothing(
    error: type[CallslipError],
    left: float,
    pop: Callable[..., None] | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    broker = Broker()
    broker.replies = [replies.failed(Overloaded("too many"), "answer")]
    if pop:
        monkeypatch.setattr(broker, "brpop", pop)
    followed = answer.Replies(context_of(broker=broker), "reply:1", time.time() + left)
    with pytest.raises(error):
        next(followed)
    assert list(followed) == []
    followed.close()
    assert broker.keys == []
