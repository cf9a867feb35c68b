"""The Celery app of the search worker, which loads its models before it reads its queue."""

import gc
from typing import Any

from celery.signals import worker_init

from callslip import free_memory
from callslip.config import get_settings
from callslip.tasks.composition import Context, current
from callslip.workers.app import make_app
from callslip.workers.pool.releasing import release_regularly
from callslip.workers.presence import announce

COLLECTED_EVERY = 20_000
"""New objects between two garbage collections. A search makes thousands that live as long as it:
with Python's 700, collections that found nothing took a millisecond of each search.
"""

app = make_app("search", Context(get_settings().for_questions()))
announce(app)
release_regularly(app)


@worker_init.connect
def _warm_up(**_: Any) -> None:
    """Load the model and both analyzers now, so that the first search is as fast as the others."""
    context = current()
    ready = context.resources
    ready.embedder.query("warm")
    ready.analyzer.analyze("warm 준비")
    free_memory.release()
    gc.freeze()  # the models too, for the reason in workers/app.py
    gc.set_threshold(COLLECTED_EVERY)
