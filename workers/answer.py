"""The answer worker's app, as Celery's command line finds it; warm before it reads its queue."""

from typing import Any

from celery.signals import worker_init

from tasks.answer import agent
from tasks.process import engine
from workers.app import make_app
from workers.presence import announce

app = make_app("answer")
announce(app)


@worker_init.connect
def _warm_up(**_: Any) -> None:
    """Load the model, the analyzers and the graph now, so that the first answer is not slow."""
    agent()
    ready = engine()
    ready.embedder.query("warm")
    ready.analyzer.analyze("warm 준비")
