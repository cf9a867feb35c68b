"""The Celery app of the ingest worker, which `workers.worker` runs."""

from callslip.config import get_settings
from callslip.tasks.composition import Context
from callslip.workers.app import make_app
from callslip.workers.pool.idle import renew_when_idle
from callslip.workers.presence import announce

app = make_app("ingest", Context(get_settings()))
announce(app)
renew_when_idle(app)
