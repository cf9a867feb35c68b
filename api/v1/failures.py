"""/v1/dead-letters: documents that failed for good, and their retries."""

import math
import time
from contextlib import suppress

from flask import Response
from flask_openapi3 import APIBlueprint, Tag

from callslip.api.http import responses
from callslip.api.http.context import current
from callslip.api.http.json_response import answer
from callslip.api.identity.current import caller, check_collection
from callslip.api.messages import documents
from callslip.errors import InvalidRequest
from callslip.stores.ledger import Which
from callslip.tasks import ingest

RETRIED_AT_ONCE = 500

blueprint = APIBlueprint("failures", __name__, abp_tags=[Tag(name="documents")])


@blueprint.get("/v1/dead-letters", responses={200: documents.DeadLetters})
def list_dead_letters(query: documents.DeadLettersQuery) -> Response:
    """Documents whose newest version failed, with step, reason and attempts; the latest first."""
    letters = current().ledger.failures.find(
        _which(query), limit=query.limit, after=_after(query.after)
    )
    full = len(letters) == query.limit
    return answer(
        documents.DeadLetters(
            dead_letters=[responses.dead_letter(letter) for letter in letters],
            next_after=f"{letters[-1].failed_at!r},{letters[-1].document_id}" if full else None,
        )
    )


@blueprint.post("/v1/dead-letters/retry", responses={200: documents.Retried})
def retry(body: documents.Retry) -> Response:
    """Queue dead letters again, each from the step that failed."""
    if not (body.all or body.model_dump(exclude={"all"}, exclude_none=True)):
        raise InvalidRequest(
            "nothing says which dead letters",
            hint='Send document_ids, collection, tenant, reason, older_than, newer_than or "all".',
        )
    which = _which(body, body.document_ids)
    again = current().ledger.failures.retry(which, limit=RETRIED_AT_ONCE)
    for letter in again:
        ingest.send_next(current(), letter.document_id)
    return answer(
        documents.Retried(
            retried=[letter.document_id for letter in again], more=len(again) == RETRIED_AT_ONCE
        )
    )


def _which(query: documents.Which, document_ids: list[str] | None = None) -> Which:
    now, limits = time.time(), caller()
    if query.collection is not None:
        check_collection(query.collection)
        current().ledger.collections.get(query.collection)
    return Which(
        collections=limits.collections,
        tenants=limits.tenants,
        document_ids=document_ids,
        collection=query.collection,
        tenant=query.tenant,
        reason=query.reason,
        before=None if query.older_than is None else now - query.older_than,
        since=None if query.newer_than is None else now - query.newer_than,
    )


def _after(cursor: str | None) -> tuple[float, str] | None:
    if cursor is None:
        return None
    at, _, document_id = cursor.partition(",")
    with suppress(ValueError):
        if math.isfinite(failed_at := float(at)):
            return failed_at, document_id
    raise InvalidRequest("after is not the `next_after` of a page")
