"""/v1/collections/{name}/documents and /v1/documents"""

from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import Any

from flask import Response, current_app, request, url_for
from flask_openapi3 import APIBlueprint, Tag
from pydantic import BaseModel, Field

from callslip.api.http import access
from callslip.api.http.admission import HEADERS_ONLY
from callslip.api.http.context import context_of, current
from callslip.api.http.json_response import answer
from callslip.api.http.uploads import read_upload
from callslip.api.http.validity import with_validity
from callslip.api.identity import batch_names
from callslip.api.identity.current import caller, check_scope, note
from callslip.api.identity.limits import documents_spent, spend_documents
from callslip.api.messages import documents
from callslip.api.v1.collections import CollectionPath
from callslip.api.v1.tasks import deletion_id, ingestion_id
from callslip.errors import DocumentNotFound, InvalidRequest
from callslip.ingestion.artifacts import EXTRACTED, stored
from callslip.ingestion.intake import take_in
from callslip.ingestion.values import ExtractedText
from callslip.messages.values import OptionalWhole, Whole
from callslip.readers import EVERYONE, check_readers
from callslip.stores import naming
from callslip.stores.ledger import Accepted, DocumentRecord, Edit, Submission, tenant_queue_of
from callslip.stores.naming import (
    check_language,
    clean_filename,
    clean_line,
    clean_name,
    clean_url,
)
from callslip.stores.properties.values import check_properties
from callslip.stores.records import RESERVED, VALIDITY
from callslip.stores.schemas import check_tenant
from callslip.tasks import ingest, maintenance

blueprint = APIBlueprint("documents", __name__, abp_tags=[Tag(name="documents")])

MOST_VERSIONS = 10**9
"""The largest version number in a request; some databases have no larger numbers."""

_TAKES: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {"schema": documents.UploadForm.model_json_schema()},
            "application/json": {"schema": documents.NewDocument.model_json_schema()},
        },
    }
}


@blueprint.before_request
def _refuse_early() -> None:
    """Refuse a document before a large body is received."""
    if request.endpoint == "documents.submit_document" and HEADERS_ONLY in request.environ:
        ingest.check_backlog(current())


class DocumentPath(BaseModel):
    document_id: str


class ListQuery(documents.Request):
    tenant: naming.Tenant | None = Field(None, description="whose documents; left out: everyone's")
    parent: str | None = Field(None, description="only what came within the document of this id")
    limit: Whole = Field(50, ge=1, le=500)
    before: float | None = Field(
        None, allow_inf_nan=False, description="`next_before` of the page before"
    )


class TextQuery(documents.Request):
    start: Whole = Field(0, ge=0)
    end: OptionalWhole = Field(None, ge=0, description="at most 100,000 characters after start")
    version: OptionalWhole = Field(
        None, ge=1, le=MOST_VERSIONS, description="of which version; left out: the live one"
    )


@blueprint.post(
    "/v1/collections/<string:name>/documents",
    responses={200: documents.Submitted, 202: documents.Submitted},
    openapi_extensions=_TAKES,
)
def submit_document(path: CollectionPath) -> Response:
    """Submit a document as a file or as text.

    A known name makes a new version; the same content under its name changes nothing (200). If too
    many documents wait, the response is 429 with Retry-After.
    """
    collection = current().ledger.collections.writable(path.name)
    ingest.check_backlog(current())
    upload = read_upload(request)
    check_scope(path.name, upload.tenant)
    batch = batch_names.named(upload.batch)
    check_tenant(collection.schema, upload.tenant)
    ingest.check_backlog_of(current(), path.name, upload.tenant)
    if upload.tenant and upload.tenant not in current().ledger.tenants.all(path.name):
        current().store_of(collection.store).check_names(path.name, upload.tenant)
    spend_documents(1, upload.size)
    accepted = take_in(
        current().ledger,
        current().blobs,
        path.name,
        Submission(
            name=upload.name,
            filename=upload.filename,
            title=upload.title,
            sha256=upload.sha256,
            size=upload.size,
            properties=upload.properties,
            priority=upload.priority,
            batch=batch,
            readers=upload.readers,
            url=upload.url,
            language=upload.language,
        ),
        upload.content,
        tenant=upload.tenant,
        allow_duplicate=upload.allow_duplicate,
    )
    if accepted.fresh:
        send_version(accepted.document_id, path.name, upload.tenant, upload.size)
    elif upload.readers is not None:
        _write_readers(current().ledger.readers.due())
    return submitted(accepted)


@blueprint.post(
    "/v1/collections/<string:name>/documents/unchanged", responses={200: documents.Unchanged}
)
def list_unchanged(path: CollectionPath, body: documents.ComparedDocuments) -> Response:
    """Say which of these files need not be submitted, because that would change nothing.

    Each is named as a submission names it, with the hash of its content. A document that is not
    live, that is within another one, or that the caller may not read, is not among them. A name
    that occurs twice is among them if both submissions would change nothing.
    """
    check_scope(path.name, body.tenant)
    current().ledger.collections.get(path.name)
    names, submissions, changed = [], [], set()
    for each in body.documents:
        try:
            submissions.append(_submission_of(each))
            names.append(each.name)
        except InvalidRequest:  # its submission will be refused and says why
            changed.add(each.name)
    same = current().ledger.unchanged.among(path.name, submissions, tenant=body.tenant)
    changed |= {name for position, name in enumerate(names) if position not in same}
    unchanged = [name for name in dict.fromkeys(names) if name not in changed]
    return answer(documents.Unchanged(documents=unchanged))


def _submission_of(compared: documents.ComparedDocument) -> Submission:
    """The submission that a file would make. Raises InvalidRequest if it would be refused."""
    return Submission(
        name=clean_name(compared.name),
        filename=clean_filename(compared.filename),
        title=clean_line(compared.title, "title") if compared.title else compared.title,
        sha256=compared.sha256,
        size=0,
        properties=None
        if compared.properties is None
        else check_properties(compared.properties, reserved=RESERVED),
        url=None if compared.url is None else clean_url(compared.url),
        language=None if compared.language is None else check_language(compared.language),
    )


def submitted(accepted: Accepted) -> Response:
    """The response to a submission: 202, or 200 if there is nothing to do."""
    note(document_id=accepted.document_id)
    access.note(document_id=accepted.document_id, version=accepted.version)
    task_id = ingestion_id(accepted.document_id, accepted.version)
    message = documents.Submitted(
        outcome="accepted" if accepted.fresh else "unchanged",
        document_id=accepted.document_id,
        version=accepted.version,
        task_id=task_id,
        status_url=url_for("documents.get_document", document_id=accepted.document_id),
        task_url=url_for("tasks.get_task", task_id=task_id),
    )
    return answer(message, 202 if accepted.fresh else 200)


@contextmanager
def admitted(record: DocumentRecord, size: int) -> Iterator[None]:
    """Count the version of a document, of `size` bytes, that the block makes as a submission.

    A version that is refused does not count. Raises BacklogFull, DiskFull, TooManyRequests and
    InvalidRequest as a submission does.
    """
    ingest.check_backlog(current())
    ingest.check_backlog_of(current(), record.collection, record.tenant)
    with documents_spent(1, size):
        yield


def send_version(document_id: str, collection: str, tenant: str, size: int) -> None:
    """Send a new version of a document, of `size` bytes, to the workers in its turn."""
    current().backlog.add(tenant_queue_of(collection, tenant), size)
    ingest.send_next(current(), document_id)


@blueprint.get("/v1/collections/<string:name>/documents", responses={200: documents.Documents})
def list_documents(path: CollectionPath, query: ListQuery) -> Response:
    """List the documents of a collection, newest first."""
    record = current().ledger.collections.get(path.name)
    if query.tenant:
        check_tenant(record.schema, query.tenant)
    tenants = caller().tenants
    states = current().ledger.documents.states(
        path.name, tenants=tenants
    )  # first: a document that is done in the counts is done in the list too
    records = current().ledger.documents.find(
        path.name,
        tenant=query.tenant,
        tenants=tenants,
        parent=query.parent,
        limit=query.limit,
        before=query.before,
    )
    full = len(records) == query.limit
    return answer(
        documents.Documents(
            documents=with_validity(records),
            states=states,
            next_before=records[-1].created_at if full else None,
        )
    )


@blueprint.get("/v1/documents/<string:document_id>", responses={200: documents.Document})
def get_document(path: DocumentPath) -> Response:
    """A document: its state, its steps with attempts, timings and counts, and its error.

    The `ETag` names its version and readers; send it as `If-Match` with a change.
    """
    return _with_etag(current().ledger.documents.get(path.document_id))


@blueprint.patch(
    "/v1/documents/<string:document_id>",
    responses={200: documents.Document, 202: documents.Document},
)
def change_document(path: DocumentPath, body: documents.Change) -> Response:
    """Change what is known of a document, without sending its file again (RFC 7396).

    202: the change is a new version, which searches see as a whole once it is live; nothing is
    embedded again unless the title changes, which is embedded with the passages. 200: nothing is
    left to do; readers apply at once. 412 if `If-Match` has an ETag of another version. An edit of
    more than the readers waits and counts as a submission of the file does.
    """
    if_match = request.if_match if "If-Match" in request.headers else None
    tags = None if if_match is None or if_match.star_tag else if_match.as_set()
    accepted = change(path.document_id, edit_of(body), tags)
    try:
        record = current().ledger.documents.get(path.document_id)
    except DocumentNotFound:  # the caller has hidden it from itself
        whole = context_of(current_app).ledger.documents.get(path.document_id)
        record = replace(whole, parent_id=None, steps=())
    return _with_etag(record, 202 if accepted.fresh else 200)


def change(document_id: str, edit: Edit, if_match: Collection[str] | None) -> Accepted:
    """Make an edit, and send what follows from it to the workers.

    Raises the errors of `Edits.make`, and those of `admitted` if the edit is not of the readers
    alone: neither a quota nor a backlog keeps a document open to a reader.
    """
    record = current().ledger.documents.get(document_id)
    of_readers = edit == Edit(readers=edit.readers)
    with nullcontext() if of_readers else admitted(record, record.newest.size):
        edited = current().ledger.edits.make(document_id, edit, if_match=if_match)
    if edited.accepted.fresh:
        note(document_id=document_id)
        access.note(document_id=document_id, version=edited.accepted.version)
        send_version(document_id, record.collection, record.tenant, record.newest.size)
    _write_readers(edited.due)
    return edited.accepted


def edit_of(body: documents.Change) -> Edit:
    """The checked edit of a request; its bounds of validity are properties."""
    sent = body.model_fields_set
    bounds = {n: getattr(body, n) for n in VALIDITY if n in sent}
    properties = body.properties or {}
    for name in bounds.keys() & properties.keys():
        if bounds[name] != properties[name]:
            raise InvalidRequest(
                f"{name} and the property {name!r} differ", hint="Send one of them."
            )
    readers = EVERYONE if body.readers is None else check_readers(body.readers)
    return Edit(
        title=(clean_line(body.title, "title") if body.title else "") if "title" in sent else None,
        url=clean_url(body.url or "") if "url" in sent else None,
        language=check_language(body.language or "") if "language" in sent else None,
        properties=properties | bounds,
        anew="properties" in sent and body.properties is None,
        readers=readers if "readers" in sent else None,
    )


def _with_etag(record: DocumentRecord, status: int = 200) -> Response:
    response = answer(with_validity([record])[0], status)
    response.set_etag(record.etag)
    return response


def _write_readers(due: Iterable[tuple[str, int]]) -> None:
    """Let a worker write the readers into the stores; the sweep does it if this fails."""
    for document_id, version in due:
        if current().ledger.leases.reopen(document_id, version, "upsert"):
            ingest.send_next(current(), document_id)


@blueprint.get("/v1/documents/<string:document_id>/text", responses={200: documents.TextSlice})
def get_text(path: DocumentPath, query: TextQuery) -> Response:
    """Part of the extracted text; the spans of hits refer to this text.

    By default the text of the live version, or of the newest version if none is live.
    """
    record = current().ledger.documents.get(path.document_id)
    text = extracted_of(record, query.version).text
    start = min(query.start, len(text))
    end = min(len(text), start + 100_000, len(text) if query.end is None else query.end)
    return answer(
        documents.TextSlice(
            document_id=record.document_id,
            start=start,
            end=max(start, end),
            length=len(text),
            text=text[start:end],
        )
    )


def extracted_of(record: DocumentRecord, version: int | None = None) -> ExtractedText:
    """The extract of a version, by default of the live version, or else of the newest.

    Raises DocumentNotFound if the version does not exist or its text is not stored.
    """
    if version is not None:
        current().ledger.documents.version(record.document_id, version)
    wanted = version or record.live_version or record.newest.version
    extract = None
    if record.deleted_at is None:
        extract = stored(current().backend, record.document_id, wanted, "extract", EXTRACTED)
    if extract is None:
        raise DocumentNotFound(
            f"document {record.document_id!r} has no extracted text",
            hint="If it is live, `callslip audit --repair` extracts its text again.",
        )
    return extract


@blueprint.delete("/v1/documents/<string:document_id>", responses={202: documents.Deleted})
def delete_document(path: DocumentPath) -> Response:
    """Delete a document: hidden at once, removed soon after; its status keeps the receipt."""
    current().ledger.documents.delete(path.document_id)
    maintenance.send_removal(current(), path.document_id)
    task_id = deletion_id(path.document_id)
    message = documents.Deleted(
        document_id=path.document_id,
        task_id=task_id,
        task_url=url_for("tasks.get_task", task_id=task_id),
        status_url=url_for("documents.get_document", document_id=path.document_id),
    )
    return answer(message, 202)
