"""Gunicorn reads this module as its configuration: the first line of a request may be longer.

It takes 8,190 bytes at most, or any number: then a line without an end would fill the memory.
"""

from gunicorn.http import message

from workers.commands import LONGEST_REQUEST_LINE

message.MAX_REQUEST_LINE = LONGEST_REQUEST_LINE
