"""/v1/batches: the progress of documents that were sent together."""

from flask import Response
from flask_openapi3 import APIBlueprint, Tag
from pydantic import BaseModel, Field

from callslip.api.http import responses
from callslip.api.http.context import current
from callslip.api.http.json_response import answer
from callslip.api.identity import batch_names
from callslip.api.messages import documents
from callslip.messages.values import Whole

SHOWN_FAILURES = 20

blueprint = APIBlueprint("batches", __name__, abp_tags=[Tag(name="batches")])


class BatchPath(BaseModel):
    batch_id: str


class ItemsQuery(documents.Request):
    state: documents.ItemState | None = Field(None, description="only these")
    after: str = Field(
        "", pattern=r"^$|^[0-9a-f]{1,32}-[0-9]{1,9}$", description="`next_after` of the page before"
    )
    limit: Whole = Field(100, ge=1, le=1000)


@blueprint.post("/v1/batches", responses={200: documents.Batch})
def create_batch(body: documents.NewBatch) -> Response:
    """Make a batch, or set its number of documents; a repeated call changes nothing else.

    A submission with a new batch name makes the batch too. Callers that are limited to the same
    collections and tenants share the names of batches.
    """
    return answer(_message(batch_names.create(body.batch_id or "", body.expected)))


@blueprint.get("/v1/batches/<string:batch_id>", responses={200: documents.Batch})
def get_batch(path: BatchPath) -> Response:
    """The number of the batch's documents in each state, their rate, and the first failures."""
    return answer(_message(path.batch_id))


@blueprint.get("/v1/batches/<string:batch_id>/documents", responses={200: documents.BatchDocuments})
def list_batch_documents(path: BatchPath, query: ItemsQuery) -> Response:
    """The batch's documents in order of ids, each with its state and error."""
    batch_id = batch_names.report(path.batch_id).batch_id
    document_id, _, version = query.after.partition("-")
    items = current().ledger.batches.items(
        batch_id,
        state=query.state,
        after=(document_id, int(version or 0)),
        limit=query.limit,
    )
    full = len(items) == query.limit
    return answer(
        documents.BatchDocuments(
            documents=[responses.batch_item(item) for item in items],
            next_after=f"{items[-1].document_id}-{items[-1].version}" if full else None,
        )
    )


def _message(name: str) -> documents.Batch:
    report, failed = batch_names.report(name), []
    if report.states.get("failed"):
        failed = current().ledger.batches.items(
            report.batch_id, state="failed", limit=SHOWN_FAILURES
        )
    return responses.batch(batch_names.shown(report), failed)
