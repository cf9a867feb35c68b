"""Gunicorn's configuration module, which its master process imports.

It raises the limit for the length of a request's first line: gunicorn's own setting allows either
up to 8,190 bytes or any length, and a line without an end would fill the memory. It removes the
`Server` header. It also imports the modules of the API, so that each worker process, a fork of the
master, need not import them: that saves two seconds of processor time for each.

Before it stops, it answers requests for `api.drain_seconds` while /readyz says that it stops.
"""

import gc
import time

from gunicorn.arbiter import Arbiter
from gunicorn.http import message, wsgi
from gunicorn.workers.base import Worker

import callslip.api.app  # noqa: F401
from callslip.api.http import draining
from callslip.api.server.answering import Response
from callslip.config import get_settings
from callslip.workers.commands import LONGEST_REQUEST_LINE

message.MAX_REQUEST_LINE = LONGEST_REQUEST_LINE
wsgi.Response = Response


def when_ready(server: Arbiter) -> None:
    """Exempt what the imports made from garbage collection, for the reasons in workers/app.py.

    Make SIGTERM stop the server after it has drained.
    """
    gc.freeze()
    stop = server.handle_term

    def drain_and_stop() -> None:
        draining.begin()
        time.sleep(get_settings().api.drain_seconds)
        stop()

    server.handle_term = drain_and_stop


def post_worker_init(worker: Worker) -> None:
    """Exempt the application, which a worker process makes, too."""
    gc.freeze()
