"""/v1/documents/{id}/events: what happens to a document, as server-sent events.

The ledger is asked again and again, so a stream can be taken up after a restart, at any desk. Each
stream holds a thread of the desk: there are `api.streams` of them in each process, beside those
that answer everything else.
"""

import threading
import time
from collections.abc import Iterator

from flask import Response, request
from flask_openapi3 import APIBlueprint, Tag

from api import messages
from api.documents import DocumentPath
from api.places import Places
from callslip.errors import CallslipError, DocumentNotFound, InvalidRequest, Overloaded
from config import get_settings
from stores.ledger import DocumentRecord
from tasks.process import ledger

POLL_SECONDS = 0.5

HEARTBEAT_SECONDS = 15.0
"""A comment after this long without an event: proxies cut silent connections, and a caller that
has gone is noticed only by writing to it."""

LONGEST_SECONDS = 600.0
"""Then the caller comes back with the last id it saw, so that no place is held for ever."""

RETRY_MS = 2000
"""After which a browser comes back."""

HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}

_DESCRIBED = {
    "description": "`id`, `event` (the kind) and `data` of each event; `event: end` is the last",
    "content": {"text/event-stream": {"schema": messages.Event.model_json_schema()}},
}

blueprint = APIBlueprint("events", __name__, abp_tags=[Tag(name="documents")])

stopping = threading.Event()
"""Set when the process is to end: streams end first."""


_places = Places(lambda: get_settings().api.streams)


@blueprint.get(
    "/v1/documents/<string:document_id>/events",
    responses={200: _DESCRIBED, 204: {"description": "it is over, and all of it was seen"}},
)
def get_events(path: DocumentPath) -> Response:
    """Follow a document: each step's start and end, and what becomes of the document.

    Without `Last-Event-ID` from the submission of the newest version on, else after that event. The
    stream ends when the document is live, failed or removed; 503 when too many are open.
    """
    document = ledger().documents.get(path.document_id)
    after = _last_seen(document)
    came_back = "Last-Event-ID" in request.headers
    if came_back and _is_over(document) and not _more(document, after):
        return Response(status=204)  # tells a browser not to come back
    if not _places.take():
        raise Overloaded(
            f"{get_settings().api.streams} event streams are open in this process of the desk",
            hint="Try again in a few seconds, ask GET /v1/documents/ID now and then instead, or"
            " raise api.streams in the settings.",
        )
    response = Response(
        _stream(document.document_id, after), content_type="text/event-stream", headers=HEADERS
    )
    response.call_on_close(_places.give_back)
    return response


def _last_seen(document: DocumentRecord) -> int:
    given = request.headers.get("Last-Event-ID", "").strip()
    if not given:
        return ledger().events.before_version(document.document_id, document.newest.version)
    if not (given.isascii() and given.isdigit() and len(given) <= 18):
        raise InvalidRequest("Last-Event-ID is no id of an event", hint="Send an `id` as it came.")
    return int(given)


def _more(document: DocumentRecord, after: int) -> bool:
    return bool(ledger().events.of_document(document.document_id, after=after, limit=1))


def _stream(document_id: str, after: int) -> Iterator[str]:
    yield f"retry: {RETRY_MS}\n\n"
    began = told = time.monotonic()
    while not stopping.is_set() and time.monotonic() - began < LONGEST_SECONDS:
        try:
            document = ledger().documents.get(document_id)  # first: what follows is then complete
            found = ledger().events.of_document(document_id, after=after)
        except DocumentNotFound:  # gone with its collection
            yield _frame("end", messages.StreamEnd(state="deleted"))
            return
        except CallslipError:
            return  # the caller comes back
        for event in found:
            after = event.event_id
            yield f"id: {after}\n" + _frame(event.kind, messages.Event(**event.__dict__))
        if found:
            told = time.monotonic()
        elif _is_over(document):
            yield _frame("end", messages.StreamEnd(state=document.state))
            return
        elif time.monotonic() - told > HEARTBEAT_SECONDS:
            told = time.monotonic()
            yield ": nothing new\n\n"
        if not found:
            stopping.wait(POLL_SECONDS)


def _is_over(document: DocumentRecord) -> bool:
    if document.deleted_at is not None:
        return document.removed_at is not None
    return document.state in ("live", "failed")


def _frame(kind: str, message: messages.Event | messages.StreamEnd) -> str:
    return f"event: {kind}\ndata: {message.model_dump_json()}\n\n"
