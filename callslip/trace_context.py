"""The trace context of the present work, in the format of W3C's `traceparent`.

A request, the messages that it sends and the tasks that these start share a trace id, which
stands in their log lines and spans (https://www.w3.org/TR/trace-context/).
"""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

HEADER = "traceparent"
"""The name of the header, of HTTP requests and of messages."""

_FORMAT = re.compile(r"00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")

_current: ContextVar[str | None] = ContextVar("traceparent", default=None)


def current() -> str | None:
    """The `traceparent` of the present work; None outside of a trace."""
    return _current.get()


def trace_id() -> str | None:
    """The trace id of the present work, 32 hexadecimal digits; None outside of a trace."""
    traceparent = _current.get()
    return traceparent[3:35] if traceparent else None


def new() -> str:
    """The `traceparent` of a new trace."""
    return f"00-{os.urandom(16).hex()}-{os.urandom(8).hex()}-01"


def valid(header: object) -> str | None:
    """The header if it is a valid `traceparent`, else None."""
    return header if isinstance(header, str) and _FORMAT.fullmatch(header) else None


@contextmanager
def within(traceparent: str | None) -> Iterator[None]:
    """Make this the present trace while the block runs; None ends the trace for the block."""
    token = _current.set(traceparent)
    try:
        yield
    finally:
        _current.reset(token)
