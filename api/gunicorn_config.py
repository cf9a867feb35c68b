"""Gunicorn's configuration module, which its master process imports.

It raises the limit for the length of a request's first line: gunicorn's own setting allows either
up to 8,190 bytes or any length, and a line without an end would fill the memory. It also imports
the modules of the API, so that each worker process, a fork of the master, need not import them:
that saves two seconds of processor time for each.
"""

from gunicorn.http import message

import callslip.api.app  # noqa: F401
from callslip.workers.commands import LONGEST_REQUEST_LINE

message.MAX_REQUEST_LINE = LONGEST_REQUEST_LINE
