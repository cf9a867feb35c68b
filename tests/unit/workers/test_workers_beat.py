"""The scheduler of periodic tasks."""

from datetime import UTC, datetime
from types import SimpleNamespace

import pytest
from celery import Celery

from callslip.workers import beat
from callslip.workers.beat import SteadyScheduler

NOW, EVERY = 1_800_000_000.0, 5.0


def test_a_clock_that_is_set_back_delays_no_task(monkeypatch: pytest.MonkeyPatch) -> None:
    now, sent = NOW, []
    app = Celery(broker="memory://", set_as_current=False)
    monkeypatch.setattr(app, "now", lambda: datetime.fromtimestamp(now, UTC))
    monkeypatch.setattr(beat, "time", SimpleNamespace(time=lambda: now))
    monkeypatch.setattr(SteadyScheduler, "apply_entry", lambda _, entry, **__: sent.append(entry))
    scheduler = SteadyScheduler(app, lazy=True)
    scheduler.update_from_dict({"sweep": {"task": "sweep", "schedule": EVERY}})
    assert 0 < scheduler.tick() <= EVERY
    now += EVERY
    scheduler.tick()
    assert len(sent) == 1
    now -= 3600
    assert 0 < scheduler.tick() <= EVERY
    now += EVERY
    scheduler.tick()
    assert len(sent) == 2
