"""The ingest worker's app, as Celery's command line finds it."""

from workers.app import make_app
from workers.presence import announce

app = make_app("ingest")
announce(app)
