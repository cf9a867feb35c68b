"""Contexts of parts that a test brings, and apps over them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from celery import Celery, _state
from flask_openapi3 import OpenAPI

from callslip.api.app import create_app
from callslip.api.identity.state import identity_of
from callslip.config import get_settings
from callslip.config.settings import Settings
from callslip.stores.blobs import Blobs
from callslip.stores.contract import Store
from callslip.stores.ledger import Ledger
from callslip.tasks.composition import Context, hand_to


def context_of(
    settings: Settings | None = None, store: Store | None = None, **parts: Any
) -> Context:
    """A context whose searches and jobs run in this process, with one store where one is given."""
    if store is None:
        return Context(settings or get_settings(), local=True, **parts)
    return Context(
        settings or get_settings(),
        local=True,
        store_of=lambda _: store,
        store_kinds=(store.kind,),
        **parts,
    )


def app_over(settings: Settings | None = None, store: Store | None = None, **parts: Any) -> OpenAPI:
    """The API over such a context."""
    return create_app(context_of(settings, store, **parts))


class Consumed:
    """Every queue has a consumer."""

    def check(self, _: str) -> None: ...

    def call(self, act: Callable[[], Any], _: float) -> Any:
        return act()


class LoneBroker:
    """A broker with nobody else at it: every lock is free, nothing waits."""

    def lock(self, *_: object, **__: object) -> "LoneBroker":
        return self

    def acquire(self) -> bool:
        return True

    def reacquire(self) -> bool:
        return True

    def release(self) -> None:
        pass

    def llen(self, _: str) -> int:
        return 0

    def scan_iter(self, **_: object) -> Iterator[bytes]:
        return iter(())

    def hgetall(self, _: str) -> dict[bytes, bytes]:
        return {}


@contextmanager
def lone_app(ledger: Ledger, folder: Path) -> Iterator[OpenAPI]:
    """The API over a ledger, with its files in a folder and nobody else at its broker."""
    parts = {"blobs": Blobs(str(folder / "blobs")), "broker": LoneBroker()}
    app = app_over(Settings(data_dir=folder), ledger=ledger, **parts)
    yield app
    identity_of(app).close()


@contextmanager
def working(context: Context) -> Iterator[Context]:
    """Inside, tasks that are called here find this context, in every thread."""
    app, before = (
        Celery("tests", set_as_current=False),
        (_state.default_app, _state._tls.current_app),
    )
    hand_to(app, context)
    _state.default_app, _state._tls.current_app = app, None
    try:
        yield context
    finally:
        _state.default_app, _state._tls.current_app = before
