"""Gunicorn's configuration module, which its master process imports.

It raises the limit for the length of a request's first line: gunicorn's own setting allows either
up to 8,190 bytes or any length, and a line without an end would fill the memory. It also imports
the modules of the API, so that each worker process, a fork of the master, need not import them:
that saves two seconds of processor time for each.
"""

import gc

from gunicorn.arbiter import Arbiter
from gunicorn.http import message
from gunicorn.workers.base import Worker

import callslip.api.app  # noqa: F401
from callslip.workers.commands import LONGEST_REQUEST_LINE

message.MAX_REQUEST_LINE = LONGEST_REQUEST_LINE


def when_ready(server: Arbiter) -> None:
    """Exempt what the imports made from garbage collection, for the reasons in workers/app.py."""
    gc.freeze()


def post_worker_init(worker: Worker) -> None:
    """Exempt the application, which a worker process makes, too."""
    gc.freeze()
