"""Gunicorn's configuration module: raises the limit for the length of a request's first line.

Gunicorn's own setting allows either up to 8,190 bytes or any length. With any length, a line
without an end would fill the memory.
"""

from gunicorn.http import message

from callslip.workers.commands import LONGEST_REQUEST_LINE

message.MAX_REQUEST_LINE = LONGEST_REQUEST_LINE
