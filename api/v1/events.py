"""/v1/documents/{id}/events: the events of a document, as server-sent events.

Each stream polls the ledger, so any process of the server can resume a stream after a restart. Each
stream occupies a thread: every process has `api.streams` of them, in addition to the threads that
answer all other requests.
"""

import threading
import time
from collections.abc import Callable, Iterator

from flask import Response, request
from flask_openapi3 import APIBlueprint, Tag

from callslip.api.http.context import current
from callslip.api.http.slots import Slots
from callslip.api.identity.guard import stream_check
from callslip.api.messages import documents
from callslip.api.v1.documents import DocumentPath
from callslip.errors import CallslipError, DocumentNotFound, InvalidRequest, Overloaded
from callslip.stores.ledger import DocumentRecord, Ledger

POLL_SECONDS = 0.5

HEARTBEAT_SECONDS = 15.0
"""A comment is sent after this long without an event: proxies close silent connections, and only a
write detects that a client is gone."""

LONGEST_SECONDS = 600.0
"""The stream ends after this time and the client reconnects with its last event id, so that no
stream keeps a slot for ever."""

RETRY_MS = 2000
"""The delay before a browser reconnects."""

HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}

_DESCRIBED = {
    "description": "`id`, `event` (the kind) and `data` of each event; `event: end` is the last",
    "content": {"text/event-stream": {"schema": documents.Event.model_json_schema()}},
}

blueprint = APIBlueprint("events", __name__, abp_tags=[Tag(name="documents")])

stopping = threading.Event()
"""Set when the process is to end: the streams end first."""


_slots = Slots()


@blueprint.get(
    "/v1/documents/<string:document_id>/events",
    responses={200: _DESCRIBED, 204: {"description": "it is over, and all of it was seen"}},
)
def get_events(path: DocumentPath) -> Response:
    """Follow a document: the start and end of each step, and the document's changes of state.

    Without `Last-Event-ID` the events begin with the submission of the newest version, otherwise
    after that event. The stream ends when the document is live, failed or removed. 503 if too many
    streams are open.
    """
    document = current().ledger.documents.get(path.document_id)
    after = _last_seen(document)
    came_back = "Last-Event-ID" in request.headers
    if came_back and _is_over(document) and not _more(document, after):
        return Response(status=204)  # tells a browser not to reconnect
    if not _slots.take(current().settings.api.streams):
        raise Overloaded(
            f"{current().settings.api.streams} event streams are open in this process of the"
            " server",
            hint="Try again in a few seconds, ask GET /v1/documents/ID now and then instead, or"
            " raise api.streams in the settings.",
        )
    response = Response(
        _stream(current().ledger, document.document_id, after, stream_check()),
        content_type="text/event-stream",
        headers=HEADERS,
    )
    response.call_on_close(_slots.give_back)
    return response


def _last_seen(document: DocumentRecord) -> int:
    last_id = request.headers.get("Last-Event-ID", "").strip()
    if not last_id:
        return current().ledger.events.before_version(document.document_id, document.newest.version)
    if not (last_id.isascii() and last_id.isdigit() and len(last_id) <= 18):
        raise InvalidRequest("Last-Event-ID is no id of an event", hint="Send an `id` as it came.")
    return int(last_id)


def _more(document: DocumentRecord, after: int) -> bool:
    return bool(current().ledger.events.of_document(document.document_id, after=after, limit=1))


def _stream(
    ledger: Ledger, document_id: str, after: int, check: Callable[[], None]
) -> Iterator[str]:
    yield f"retry: {RETRY_MS}\n\n"
    began = sent_at = time.monotonic()
    while not stopping.is_set() and time.monotonic() - began < LONGEST_SECONDS:
        try:
            check()
            document = ledger.documents.get(document_id)  # first, so no event is missed
            events = ledger.events.of_document(document_id, after=after)
        except DocumentNotFound:  # deleted with its collection
            yield _frame("end", documents.StreamEnd(state="deleted"))
            return
        except CallslipError:
            return  # the client reconnects, and learns so if its key is no longer valid
        for event in events:
            after = event.event_id
            yield f"id: {after}\n" + _frame(event.kind, documents.Event(**event.__dict__))
        if events:
            sent_at = time.monotonic()
        elif _is_over(document):
            yield _frame("end", documents.StreamEnd(state=document.state))
            return
        elif time.monotonic() - sent_at > HEARTBEAT_SECONDS:
            sent_at = time.monotonic()
            yield ": nothing new\n\n"
        if not events:
            stopping.wait(POLL_SECONDS)


def _is_over(document: DocumentRecord) -> bool:
    if document.deleted_at is not None:
        return document.removed_at is not None
    return document.state in ("live", "failed")


def _frame(kind: str, message: documents.Event | documents.StreamEnd) -> str:
    return f"event: {kind}\ndata: {message.model_dump_json()}\n\n"
