"""/healthz and /readyz"""

from collections.abc import Callable

from flask import Response
from flask_openapi3 import APIBlueprint, Tag

from callslip import __version__
from callslip.api.http.context import current
from callslip.api.http.json_response import answer
from callslip.api.messages import documents
from callslip.errors import CallslipError, StoreDown
from callslip.workers.presence import consumers

blueprint = APIBlueprint("health", __name__, abp_tags=[Tag(name="health")])


@blueprint.get("/healthz", responses={200: documents.Health})
def healthz() -> Response:
    """The server is alive."""
    return answer(documents.Health(status="ok", version=__version__))


@blueprint.get("/readyz", responses={200: documents.Readiness, 503: documents.Readiness})
def readyz() -> Response:
    """Whether the server can do new work: every part answers, and every queue has a worker."""
    status = readiness()
    return answer(status, 200 if status.ready else 503)


def readiness() -> documents.Readiness:
    """Each part, with the reason if it is not ready."""
    parts = {
        "ledger": _part(lambda: current().ledger.collections.all()),
        "blobs": _part(lambda: current().blobs.check()),
    } | {f"store {kind}": _part(store.ping) for kind, store in current().stores().items()}
    try:
        readers = consumers(current().broker)
        parts["broker"] = documents.Part(ready=True)
    except CallslipError as error:
        parts["broker"] = documents.Part(ready=False, reason=error.detail)
        readers = {}
    for queue, count in readers.items():
        reason = None if count else f"no worker reads the queue {queue!r}"
        parts[f"queue {queue}"] = documents.Part(ready=count > 0, reason=reason)
    return documents.Readiness(ready=all(p.ready for p in parts.values()), parts=parts)


def _part(check: Callable[[], object]) -> documents.Part:
    try:
        check()
    except CallslipError as error:
        return documents.Part(ready=False, reason=error.detail)
    except OSError as error:
        down = StoreDown(type(error).__name__)
        return documents.Part(ready=False, reason=down.detail)
    return documents.Part(ready=True)
