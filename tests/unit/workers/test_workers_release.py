"""Free memory goes back to the system, regularly while a worker runs."""

import ctypes
import types
from typing import Any

import psutil
import pytest
from celery import Celery

from callslip import free_memory
from callslip.per_process import PerProcess
from callslip.workers.pool.releasing import (
    EVERY_SECONDS,
    Release,
    ReleaseModels,
    release_regularly,
)

MEGABYTE = 1_000_000


@pytest.mark.skipif(
    not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="this C library gives nothing back"
)
def test_freed_memory_below_memory_in_use_is_returned() -> None:
    process = psutil.Process()
    blocks = [ctypes.create_string_buffer(b"x" * 60_000) for _ in range(1000)]
    above = [ctypes.create_string_buffer(b"x" * 60_000) for _ in range(10)]
    blocks.clear()
    before = process.memory_info().rss
    free_memory.release()
    assert before - process.memory_info().rss > 40 * MEGABYTE
    assert len(above) == 10


def step_of(kind: type[Release], idle_seconds: float) -> tuple[Release, list[Any], list[int]]:
    """A started step, the calls of its timer, and what was cancelled."""
    calls: list[Any] = []
    cancelled: list[int] = []

    def repeatedly(*call: Any) -> Any:
        calls.append(call)
        return types.SimpleNamespace(cancel=lambda: cancelled.append(1))

    settings = types.SimpleNamespace(ingest=types.SimpleNamespace(idle_seconds=idle_seconds))
    app = types.SimpleNamespace(callslip=types.SimpleNamespace(settings=settings))
    timer = types.SimpleNamespace(call_repeatedly=repeatedly)
    parent = types.SimpleNamespace(timer=timer, steps=[], app=app)
    step = kind(parent)
    step.start(parent)
    return step, calls, cancelled


def test_a_worker_releases_memory_every_minute_until_it_stops(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    released: list[int] = []
    monkeypatch.setattr(free_memory, "release", lambda: released.append(1))
    step, [(seconds, act, arguments)], cancelled = step_of(Release, 300.0)
    assert seconds == EVERY_SECONDS
    act(*arguments)
    assert released == [1]
    step.stop(None)
    step.stop(None)
    assert cancelled == [1]


@pytest.mark.parametrize(
    ("kind", "idle_seconds", "dropped"),
    [
        (ReleaseModels, 1e-9, True),
        (ReleaseModels, 300.0, False),
        (ReleaseModels, 0.0, False),
        (Release, 1e-9, False),
    ],
)
def test_only_a_model_that_was_long_unused_is_dropped(
    kind: type[Release], idle_seconds: float, *, dropped: bool
) -> None:
    model, other = PerProcess(object, droppable=True), PerProcess(object)
    before, same = model.get(), other.get()
    _, [(_, act, arguments)], _ = step_of(kind, idle_seconds)
    act(*arguments)
    assert (model.built() is None) == dropped
    assert (model.get() is before) != dropped
    assert other.get() is same


def test_the_step_is_one_of_the_worker() -> None:
    app = Celery("release")
    release_regularly(app)
    assert Release in app.steps["consumer"]
