"""The Celery app of the answer worker, which loads its models as soon as it reads its queue."""

import logging
import threading
from typing import Any

from celery.signals import worker_ready
from celery.worker import state

from callslip import free_memory
from callslip.config import get_settings
from callslip.models.reader.contract import Passage
from callslip.tasks.composition import Context, current
from callslip.workers.app import make_app
from callslip.workers.pool.releasing import release_regularly
from callslip.workers.presence import announce

log = logging.getLogger(__name__)

app = make_app("answer", Context(get_settings().for_questions()))
announce(app)
release_regularly(app)


@worker_ready.connect
def _begin_to_warm_up(**_: Any) -> None:
    """Load in a thread, so that the worker reads its queue two seconds earlier."""
    threading.Thread(target=_warm_up, name="warm-up").start()


def _warm_up() -> None:
    """Load the model, the analyzers and the graph now, so that the first answer is not slow.

    After an error the worker stops; the log has the error.
    """
    try:
        context = current()
        _made, reader = context.agent, context.resources.reader
        if reader is not None:
            reader.read("warm", [Passage("", ["warm"])])
        context.embedder.query("warm")
        context.analyzer.analyze("warm 준비")
        free_memory.release()
    except Exception:
        log.exception("the answer worker cannot load what it needs")
        state.should_stop = 1
