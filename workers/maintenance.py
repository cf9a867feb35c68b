"""The Celery app of the maintenance worker, which `workers.worker` runs."""

from callslip.config import get_settings
from callslip.tasks.composition import Context
from callslip.workers.app import make_app
from callslip.workers.pool.releasing import release_regularly
from callslip.workers.presence import announce

app = make_app("maintenance", Context(get_settings()))
announce(app)
release_regularly(app, models=True)
