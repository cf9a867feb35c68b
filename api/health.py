"""/healthz and /readyz"""

from collections.abc import Callable

from flask import Response
from flask_openapi3 import APIBlueprint, Tag

from api import messages
from api.answers import answer
from callslip import __version__
from callslip.errors import CallslipError, StoreDown
from tasks.process import blobs, ledger, stores
from workers.presence import consumers

blueprint = APIBlueprint("health", __name__, abp_tags=[Tag(name="health")])


@blueprint.get("/healthz", responses={200: messages.Health})
def healthz() -> Response:
    """The desk is alive."""
    return answer(messages.Health(status="ok", version=__version__))


@blueprint.get("/readyz", responses={200: messages.Readiness, 503: messages.Readiness})
def readyz() -> Response:
    """Whether work that is sent now will be done: every part answers, every queue has a reader."""
    found = readiness()
    return answer(found, 200 if found.ready else 503)


def readiness() -> messages.Readiness:
    """Each part with the reason why it is not ready."""
    parts = {
        "ledger": _part(lambda: ledger().collections.all()),
        "blobs": _part(lambda: blobs().check()),
    } | {f"store {kind}": _part(held.ping) for kind, held in stores().items()}
    try:
        readers = consumers()
        parts["broker"] = messages.Part(ready=True)
    except CallslipError as error:
        parts["broker"] = messages.Part(ready=False, reason=error.detail)
        readers = {}
    for queue, count in readers.items():
        reason = None if count else f"no worker reads the queue {queue!r}"
        parts[f"queue {queue}"] = messages.Part(ready=count > 0, reason=reason)
    return messages.Readiness(ready=all(p.ready for p in parts.values()), parts=parts)


def _part(check: Callable[[], object]) -> messages.Part:
    try:
        check()
    except CallslipError as error:
        return messages.Part(ready=False, reason=error.detail)
    except OSError as error:
        down = StoreDown(type(error).__name__)
        return messages.Part(ready=False, reason=down.detail)
    return messages.Part(ready=True)
