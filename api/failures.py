"""/v1/dead-letters: documents that failed for good, and trying them again."""

import time
from contextlib import suppress

from flask import Response
from flask_openapi3 import APIBlueprint, Tag

from api import messages, views
from api.answers import answer
from callslip.errors import InvalidRequest
from stores.ledger import Which
from tasks import ingest
from tasks.process import ledger

RETRIED_AT_ONCE = 500

blueprint = APIBlueprint("failures", __name__, abp_tags=[Tag(name="documents")])


@blueprint.get("/v1/dead-letters", responses={200: messages.DeadLetters})
def list_dead_letters(query: messages.DeadLettersQuery) -> Response:
    """Documents whose newest version failed, with step, reason and attempts; the latest first."""
    found = ledger().failures.find(_which(query), limit=query.limit, after=_after(query.after))
    full = len(found) == query.limit
    return answer(
        messages.DeadLetters(
            dead_letters=[views.dead_letter(letter) for letter in found],
            next_after=f"{found[-1].failed_at!r},{found[-1].document_id}" if full else None,
        )
    )


@blueprint.post("/v1/dead-letters/retry", responses={200: messages.Retried})
def retry(body: messages.Retry) -> Response:
    """Let dead letters wait for a worker again, each from the step that failed."""
    if not (body.all or body.model_dump(exclude={"all"}, exclude_none=True)):
        raise InvalidRequest(
            "nothing says which dead letters",
            hint='Send document_ids, collection, tenant, reason, older_than, newer_than or "all".',
        )
    which = _which(body, body.document_ids)
    again = ledger().failures.retry(which, limit=RETRIED_AT_ONCE)
    for letter in again:
        ingest.send_next(letter.document_id)
    return answer(
        messages.Retried(
            retried=[letter.document_id for letter in again], more=len(again) == RETRIED_AT_ONCE
        )
    )


def _which(given: messages.Which, document_ids: list[str] | None = None) -> Which:
    now = time.time()
    return Which(
        document_ids=document_ids,
        collection=given.collection,
        tenant=given.tenant,
        reason=given.reason,
        before=None if given.older_than is None else now - given.older_than,
        since=None if given.newer_than is None else now - given.newer_than,
    )


def _after(cursor: str | None) -> tuple[float, str] | None:
    if cursor is None:
        return None
    at, _, document_id = cursor.partition(",")
    with suppress(ValueError):
        return float(at), document_id
    raise InvalidRequest("after is not the `next_after` of a page")
