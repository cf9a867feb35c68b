"""The desk as gunicorn finds it."""

import signal
from types import FrameType

from api import events
from api.app import create_app
from workers.app import make_app

celery = make_app("api")
app = create_app()

_stop = signal.getsignal(signal.SIGTERM)


def _end_streams_and_stop(number: int, frame: FrameType | None) -> None:
    """Gunicorn waits for requests that are being answered; a stream would never end by itself."""
    events.stopping.set()
    if callable(_stop):
        _stop(number, frame)


if callable(_stop):  # gunicorn's, in a worker of it
    signal.signal(signal.SIGTERM, _end_streams_and_stop)
