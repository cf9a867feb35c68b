"""The API as a WSGI application, which gunicorn imports."""

import signal
from types import FrameType

from callslip.api.app import create_app
from callslip.api.v1 import events
from callslip.config import get_settings
from callslip.tasks.composition import Context
from callslip.workers.app import make_app
from callslip.workers.observing import set_up_log

_context = Context(get_settings())
set_up_log(_context.settings, "api")
celery = make_app("api", _context)
app = create_app(_context)

_stop = signal.getsignal(signal.SIGTERM)


def _end_streams_and_stop(number: int, frame: FrameType | None) -> None:
    """Gunicorn waits for running requests; a stream would not end by itself."""
    events.stopping.set()
    if callable(_stop):
        _stop(number, frame)


if callable(_stop):  # gunicorn's, in a worker of it
    signal.signal(signal.SIGTERM, _end_streams_and_stop)
