"""The Celery app of a process, and the messages that are sent with it."""

import json
import time
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import redis
from celery import _state
from kombu import Connection, pools
from kombu.transport.redis import SentinelTransport, Transport
from valkey_parts import valkey

from callslip import trace_context
from callslip.config import Settings
from callslip.tasks import search
from callslip.tasks.composition import Context
from callslip.tasks.queues import SEARCH
from callslip.tasks.shared import sending
from callslip.tasks.shared.transport import NAME, OneClientTransport
from callslip.workers.app import make_app


def _of_process() -> tuple[Any, Any, int]:
    """What an app sets for all: the default app, the thread's current app, the pools' limit."""
    return _state.default_app, _state._tls.current_app, pools.get_limit()


@contextmanager
def _restored() -> Iterator[None]:
    """After an app was made, restore what it set."""
    before = _of_process()
    try:
        yield
    finally:
        _state.default_app, _state._tls.current_app, limit = before
        pools.set_limit(limit)


def test_the_pool_of_producers_is_made_with_the_app() -> None:
    """Two threads that make it at once resize it, which kombu refuses while it is in use."""
    settings = Settings.model_validate({"broker": {"url": "redis://127.0.0.1:1/0"}})
    before = _of_process()
    with _restored():
        app = make_app("api", Context(settings))
        assert app.amqp._producer_pool is not None
        assert app.producer_pool.limit == app.pool.limit == app.conf.broker_pool_limit
        assert all(a != b for a, b in zip(_of_process(), before, strict=True))
    assert _of_process() == before


@pytest.mark.parametrize(
    ("url", "transport"),
    [
        ("redis://:hush@127.0.0.1:1/2", OneClientTransport),
        ("rediss://127.0.0.1:1/2", Transport),
        ("unix:///run/valkey.sock", Transport),
        ("sentinel://127.0.0.1:1;sentinel://127.0.0.1:2", SentinelTransport),
    ],
)
def test_the_transport_is_that_of_the_address(url: str, transport: type[Transport]) -> None:
    broker = {"url": url, "master_name": "main"}
    with _restored():
        app = make_app("api", Context(Settings.model_validate({"broker": broker})))
        with app.connection_for_write() as connection:
            assert connection.get_transport_cls() is transport
            assert connection.virtual_host.strip("/") == ("2" if ":1/2" in url else "")
            assert "hush" not in connection.as_uri()


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[redis.Redis]:
    with valkey(tmp_path) as client:
        yield client


def test_messages_are_sent_by_one_client_of_the_pool(broker: redis.Redis) -> None:
    path = broker.connection_pool.connection_kwargs["path"]
    with Connection(f"redis+socket://{path}") as connection:
        connection.transport_cls = NAME
        channel = connection.default_channel
        made = []
        make = channel._create_client
        channel._create_client = lambda: made.append(make()) or made[-1]
        for number in range(5):
            channel._put("some", {"number": number})
        assert broker.llen("some") == 5
        assert len(made) == 1
        channel._pool = None  # as after a fork
        channel._put("some", {"number": 5})
        assert made[1].connection_pool is channel.pool is not made[0].connection_pool
        with channel.conn_or_acquire(broker) as client:
            assert client is broker


def test_a_message_that_is_sent_by_one_command_is_the_one_of_celery(broker: redis.Redis) -> None:
    path = broker.connection_pool.connection_kwargs["path"]
    at = datetime(2026, 5, 1, tzinfo=UTC)
    arguments = ({"collection": "papers", "query": "휴가", "as_of": at}, "reply:1", 7.5, None)
    with _restored(), trace_context.within(trace_context.new()):
        make_app("api", Context(Settings.model_validate({"broker": {"url": f"unix://{path}"}})))
        search.query.apply_async(arguments, queue=SEARCH, expires=9, argsrepr="")
        sent = sending.send(broker, search.query, arguments, queue=SEARCH, expires=9)
        assert sent.waiting == 2
        ours, celerys = (_opened(each) for each in broker.lrange(SEARCH, 0, -1))
        assert ours == celerys
        assert sending.take_back(broker, sent)
        assert not sending.take_back(broker, sent)
        assert broker.llen(SEARCH) == 1


def _opened(message: bytes) -> dict[str, Any]:
    """A message with the types instead of the values of what differs between two messages."""
    opened: dict[str, Any] = json.loads(message)
    headers, properties = opened["headers"], opened["properties"]
    for unread in ("argsrepr", "expiration"):  # Celery writes both; Redis and workers do not read
        properties.pop(unread, None)
    assert headers["id"] == headers["root_id"] == properties["correlation_id"]
    assert abs(datetime.fromisoformat(headers["expires"]).timestamp() - time.time() - 9) < 5
    assert headers["traceparent"] == trace_context.current()
    for part, names in (
        (headers, ("id", "root_id", "expires", "sent_at")),
        (properties, ("correlation_id", "reply_to", "delivery_tag")),
    ):
        part.update({name: type(part[name]) for name in names})
    opened["body"] = json.loads(b64decode(opened["body"]))
    return opened
