"""Gives the free memory of a worker back to the system every minute, and that of unused models."""

from typing import Any

from celery import Celery, bootsteps

from callslip import free_memory
from callslip.per_process import drop_unused

EVERY_SECONDS = 60.0


class Release(bootsteps.StartStopStep):
    """A bootstep of Celery's consumer. A release takes some milliseconds."""

    drops_models = False

    requires = ("celery.worker.consumer.tasks:Tasks",)

    def __init__(self, parent: Any, **kwargs: Any) -> None:
        super().__init__(parent, **kwargs)
        self._idle_seconds = parent.app.callslip.settings.ingest.idle_seconds
        self._timer: Any = None

    def start(self, parent: Any) -> None:
        """Start the timer."""
        self._timer = parent.timer.call_repeatedly(EVERY_SECONDS, self._release, ())

    def stop(self, parent: Any) -> None:
        """Stop the timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _release(self) -> None:
        if self.drops_models and self._idle_seconds:
            drop_unused(self._idle_seconds)
        free_memory.release()


class ReleaseModels(Release):
    """The step of a worker that seldom needs its models: they go after `ingest.idle_seconds`."""

    drops_models = True


def release_regularly(app: Celery, *, models: bool = False) -> None:
    """Make the worker of this app, whose tasks are threads, give free memory back.

    With `models`, also that of models that no task has used for `ingest.idle_seconds`.
    """
    app.steps["consumer"].add(ReleaseModels if models else Release)
