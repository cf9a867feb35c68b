"""The Celery app of a process."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from celery import _state
from kombu import pools

from callslip.config import Settings
from callslip.tasks.composition import Context
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
