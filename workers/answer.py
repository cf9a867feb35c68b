"""The Celery app of the answer worker, which loads its models before it reads its queue."""

from typing import Any

from celery.signals import worker_init

from callslip.config import get_settings
from callslip.models.reader.contract import Passage
from callslip.tasks.composition import Context, current
from callslip.workers.app import make_app
from callslip.workers.presence import announce

app = make_app("answer", Context(get_settings()))
announce(app)


@worker_init.connect
def _warm_up(**_: Any) -> None:
    """Load the model, the analyzers and the graph now, so that the first answer is not slow."""
    context = current()
    _made, reader = context.agent, context.resources.reader
    if reader is not None:
        reader.read("warm", [Passage("", ["warm"])])
    context.embedder.query("warm")
    context.analyzer.analyze("warm 준비")
