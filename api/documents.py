"""/v1/collections/{name}/documents and /v1/documents"""

from typing import Any

from flask import Response, request, url_for
from flask_openapi3 import APIBlueprint, Tag
from pydantic import BaseModel, Field

from api import messages, views
from api.answers import answer
from api.collections import CollectionPath
from api.tasks import deletion_id, ingestion_id
from api.uploads import read_upload
from callslip.errors import DocumentNotFound
from ingestion.artifacts import EXTRACTED
from ingestion.intake import take_in
from stores import naming
from stores.ledger import Accepted, DocumentRecord, Submission
from stores.schemas import check_tenant
from tasks import ingest, maintenance
from tasks.process import blobs, ledger, store

blueprint = APIBlueprint("documents", __name__, abp_tags=[Tag(name="documents")])

MOST_VERSIONS = 10**9
"""Numbers beyond are no version, and too large for some databases."""

_TAKES: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {"schema": messages.UploadForm.model_json_schema()},
            "application/json": {"schema": messages.NewDocument.model_json_schema()},
        },
    }
}


class DocumentPath(BaseModel):
    document_id: str


class ListQuery(messages.Request):
    tenant: naming.Tenant | None = Field(None, description="whose documents; left out: everyone's")
    parent: str | None = Field(None, description="only what came within the document of this id")
    limit: int = Field(50, ge=1, le=500)
    before: float | None = Field(
        None, allow_inf_nan=False, description="`next_before` of the page before"
    )


class TextQuery(messages.Request):
    start: int = Field(0, ge=0)
    end: int | None = Field(None, ge=0, description="at most 100,000 characters after start")
    version: int | None = Field(
        None, ge=1, le=MOST_VERSIONS, description="of which version; left out: the live one"
    )


@blueprint.post(
    "/v1/collections/<string:name>/documents",
    responses={200: messages.Submitted, 202: messages.Submitted},
    openapi_extensions=_TAKES,
)
def submit_document(path: CollectionPath) -> Response:
    """Submit a document as a file or as text.

    The same name again is a new version; with the very same content nothing is done (200). While
    too many wait already it is 429 with Retry-After.
    """
    collection = ledger().collections.writable(path.name)
    ingest.check_backlog()
    upload = read_upload(request)
    check_tenant(collection.schema, upload.tenant)
    ingest.check_backlog_of(path.name, upload.tenant)
    if upload.tenant and upload.tenant not in ledger().tenants.all(path.name):
        store(collection.store).check_names(path.name, upload.tenant)
    accepted = take_in(
        ledger(),
        blobs(),
        path.name,
        Submission(
            name=upload.name,
            filename=upload.filename,
            title=upload.title,
            sha256=upload.sha256,
            size=upload.size,
            properties=upload.properties,
            priority=upload.priority,
            batch=upload.batch,
        ),
        upload.content,
        tenant=upload.tenant,
        allow_duplicate=upload.allow_duplicate,
    )
    if accepted.fresh:
        ingest.send_next(accepted.document_id)
    return submitted(accepted)


def submitted(accepted: Accepted) -> Response:
    """What became of a submission: 202, or 200 where nothing is to be done."""
    task_id = ingestion_id(accepted.document_id, accepted.version)
    message = messages.Submitted(
        outcome="accepted" if accepted.fresh else "unchanged",
        document_id=accepted.document_id,
        version=accepted.version,
        task_id=task_id,
        status_url=url_for("documents.get_document", document_id=accepted.document_id),
        task_url=url_for("tasks.get_task", task_id=task_id),
    )
    return answer(message, 202 if accepted.fresh else 200)


@blueprint.get("/v1/collections/<string:name>/documents", responses={200: messages.Documents})
def list_documents(path: CollectionPath, query: ListQuery) -> Response:
    """The documents of a collection, newest first."""
    ledger().collections.get(path.name)
    states = ledger().documents.states(path.name)  # first: what it says is done is told as done
    found = ledger().documents.find(
        path.name,
        tenant=query.tenant,
        parent=query.parent,
        limit=query.limit,
        before=query.before,
    )
    full = len(found) == query.limit
    return answer(
        messages.Documents(
            documents=[views.document(record) for record in found],
            states=states,
            next_before=found[-1].created_at if full else None,
        )
    )


@blueprint.get("/v1/documents/<string:document_id>", responses={200: messages.Document})
def get_document(path: DocumentPath) -> Response:
    """A document: its state, each step with attempts, timings and counts, and what went wrong."""
    return answer(views.document(ledger().documents.get(path.document_id)))


@blueprint.get("/v1/documents/<string:document_id>/text", responses={200: messages.TextSlice})
def get_text(path: DocumentPath, query: TextQuery) -> Response:
    """Part of the extracted text; spans of hits are into this text.

    It is the live version's, or the newest's where nothing is live yet, unless `version` says
    otherwise.
    """
    record = ledger().documents.get(path.document_id)
    text = text_of(record, query.version)
    start = min(query.start, len(text))
    end = min(len(text), start + 100_000, len(text) if query.end is None else query.end)
    return answer(
        messages.TextSlice(
            document_id=record.document_id,
            start=start,
            end=max(start, end),
            length=len(text),
            text=text[start:end],
        )
    )


def text_of(record: DocumentRecord, version: int | None = None) -> str:
    """The extracted text of a version, else of the live one, else of the newest.

    Raises DocumentNotFound where there is no such version, and where its text is not kept.
    """
    if version is not None:
        ledger().documents.version(record.document_id, version)
    wanted = version or record.live_version or record.newest.version
    artifact = ledger().documents.artifact(record.document_id, wanted, "extract")
    if record.deleted_at is not None or artifact is None:
        raise DocumentNotFound(f"document {record.document_id!r} has no extracted text")
    try:
        return EXTRACTED.load(blobs().read(record.document_id, artifact)).text
    except (FileNotFoundError, ValueError):
        raise DocumentNotFound(
            f"the extracted text of document {record.document_id!r} is gone",
            hint="`callslip audit --repair` extracts that of the live version again.",
        ) from None


@blueprint.delete("/v1/documents/<string:document_id>", responses={202: messages.Deleted})
def delete_document(path: DocumentPath) -> Response:
    """Delete a document: hidden at once, removed soon after; its status keeps the receipt."""
    ledger().documents.delete(path.document_id)
    maintenance.send_removal(path.document_id)
    task_id = deletion_id(path.document_id)
    message = messages.Deleted(
        document_id=path.document_id,
        task_id=task_id,
        task_url=url_for("tasks.get_task", task_id=task_id),
        status_url=url_for("documents.get_document", document_id=path.document_id),
    )
    return answer(message, 202)
