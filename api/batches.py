"""/v1/batches: documents that were sent together, as one thing to follow."""

from flask import Response
from flask_openapi3 import APIBlueprint, Tag
from pydantic import BaseModel, Field

from api import messages, views
from api.answers import answer
from tasks.process import ledger

SHOWN_FAILURES = 20

blueprint = APIBlueprint("batches", __name__, abp_tags=[Tag(name="batches")])


class BatchPath(BaseModel):
    batch_id: str


class ItemsQuery(messages.Request):
    state: messages.ItemState | None = Field(None, description="only these")
    after: str = Field(
        "", pattern=r"^$|^[0-9a-f]{1,32}-\d{1,9}$", description="`next_after` of the page before"
    )
    limit: int = Field(100, ge=1, le=1000)


@blueprint.post("/v1/batches", responses={200: messages.Batch})
def create_batch(body: messages.NewBatch) -> Response:
    """Make a batch, or say how many documents one will have. The same call again changes nothing.

    A submission that names a batch makes it too.
    """
    return answer(_message(ledger().batches.create(body.batch_id, body.expected)))


@blueprint.get("/v1/batches/<string:batch_id>", responses={200: messages.Batch})
def get_batch(path: BatchPath) -> Response:
    """How many of its documents are in which state, how fast it goes, what failed."""
    return answer(_message(path.batch_id))


@blueprint.get("/v1/batches/<string:batch_id>/documents", responses={200: messages.BatchDocuments})
def list_batch_documents(path: BatchPath, query: ItemsQuery) -> Response:
    """Its documents in order of ids, each with its state and what went wrong."""
    ledger().batches.report(path.batch_id)
    document_id, _, version = query.after.partition("-")
    items = ledger().batches.items(
        path.batch_id,
        state=query.state,
        after=(document_id, int(version or 0)),
        limit=query.limit,
    )
    full = len(items) == query.limit
    return answer(
        messages.BatchDocuments(
            documents=[views.batch_item(item) for item in items],
            next_after=f"{items[-1].document_id}-{items[-1].version}" if full else None,
        )
    )


def _message(batch_id: str) -> messages.Batch:
    report, failed = ledger().batches.report(batch_id), []
    if report.states.get("failed"):
        failed = ledger().batches.items(batch_id, state="failed", limit=SHOWN_FAILURES)
    return views.batch(report, failed)
