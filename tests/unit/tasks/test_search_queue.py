"""A search over the queue: its message, its reply, and the searches that wait."""

import json
import time
from base64 import b64decode
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
import redis
from context_parts import Consumed, context_of
from valkey_parts import valkey

from callslip.config import Settings
from callslip.errors import BrokerDown, InvalidFilter, Overloaded, SearchTimeout
from callslip.retrieval.messages import SearchRequest, SearchResponse, TimeClamp
from callslip.tasks import search
from callslip.tasks.composition import Context
from callslip.tasks.queues import SEARCH
from callslip.tasks.shared import replies, sending
from callslip.tasks.shared.broker import connect

REQUEST = SearchRequest(collection="papers", query="휴가")
RESPONSE = SearchResponse(
    trace_id="t",
    collection="papers",
    query="휴가",
    hits=[],
    alpha=0.5,
    matched=None,
    fusion="calibrated",
    as_of=TimeClamp(at=None, source="default", words=None),
    cut=False,
    candidates=0,
    hotset=False,
    partial=False,
    left_out={},
    timings={"rank": 1.0},
)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[redis.Redis]:
    with valkey(tmp_path) as client:
        yield client


@pytest.fixture
def context(broker: redis.Redis) -> Context:
    url = f"unix://{broker.connection_pool.connection_kwargs['path']}"
    limits = {"max_backlog": 2}
    settings = Settings.model_validate({"broker": {"url": url}, "search": limits})
    made = context_of(settings=settings, broker=broker, consumers=Consumed())
    made.local = False
    return made


@contextmanager
def answered_by(broker: redis.Redis, reply: Callable[[redis.Redis, str], object]) -> Iterator[None]:
    """While a search waits in the block, a thread takes its message and replies to it."""

    def work() -> None:
        _, message = broker.brpop([SEARCH], timeout=20)
        (_, reply_to, _, _), _, _ = json.loads(b64decode(json.loads(message)["body"]))
        reply(broker, reply_to)

    with ThreadPoolExecutor(1) as pool:
        working = pool.submit(work)
        yield
        working.result()


@pytest.mark.parametrize(
    "reply",
    [
        lambda broker, to: replies.send_result(broker, to, RESPONSE.model_dump_json()),
        # A worker of a former version, during an upgrade.
        lambda broker, to: replies.send(broker, to, {"ok": RESPONSE.model_dump(mode="json")}),
    ],
)
def test_the_response_is_that_of_the_worker(
    broker: redis.Redis, context: Context, reply: Callable[[redis.Redis, str], object]
) -> None:
    with answered_by(broker, reply):
        assert search.ask(context, REQUEST) == RESPONSE
    assert broker.keys("*reply*") == []


def test_a_result_is_read_by_a_caller_of_a_former_version(broker: redis.Redis) -> None:
    replies.send_result(broker, "reply:1", RESPONSE.model_dump_json())
    (reply,) = replies.receive(broker, "reply:1", time.time() + 1)
    assert SearchResponse(**reply["ok"]) == RESPONSE


def test_the_error_is_that_of_the_worker(broker: redis.Redis, context: Context) -> None:
    error = InvalidFilter("a: is no filter", hint="Read docs/api.md.")
    with (
        answered_by(broker, lambda it, to: replies.send(it, to, replies.failed(error, "search"))),
        pytest.raises(InvalidFilter, match="a: is no filter") as caught,
    ):
        search.ask(context, REQUEST)
    assert caught.value.advice == "Read docs/api.md."


def test_a_search_beyond_those_that_may_wait_is_taken_back(
    broker: redis.Redis, context: Context
) -> None:
    broker.lpush(SEARCH, "first", "second")
    with pytest.raises(Overloaded, match="2 searches are waiting"):
        search.ask(context, REQUEST)
    assert broker.lrange(SEARCH, 0, -1) == [b"second", b"first"]


def test_a_search_that_a_worker_has_already_is_not_refused(
    broker: redis.Redis, context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker.lpush(SEARCH, "first", "second")
    monkeypatch.setattr(sending, "take_back", lambda *_: False)
    monkeypatch.setattr(replies, "receive_result", lambda *_: None)
    with pytest.raises(SearchTimeout, match="no answer within 10 s"):
        search.ask(context, REQUEST)


def test_a_broker_that_is_away_is_named(context: Context) -> None:
    away = Settings.model_validate({"broker": {"url": "redis://127.0.0.1:1/0"}})
    context.provided = {**context.provided, "broker": connect(away)}
    with pytest.raises(BrokerDown, match="the broker does not answer: "):
        search.ask(context, REQUEST)
