"""The Celery app of a process."""

from collections.abc import Iterator

import pytest
from celery import current_app

from callslip.config import Settings
from callslip.tasks.composition import Context
from callslip.workers.app import make_app


@pytest.fixture(autouse=True)
def _default_app() -> Iterator[None]:
    before = current_app._get_current_object()
    yield
    before.set_default()


def test_the_pool_of_producers_is_made_with_the_app() -> None:
    """Two threads that make it at once resize it, which kombu refuses while it is in use."""
    settings = Settings.model_validate({"broker": {"url": "redis://127.0.0.1:1/0"}})
    app = make_app("api", Context(settings))
    assert app.amqp._producer_pool is not None
    assert app.producer_pool.limit == app.pool.limit == app.conf.broker_pool_limit
