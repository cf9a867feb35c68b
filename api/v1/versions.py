"""/v1/documents/{id}/versions, /rollback and /cut: a document's history, and its cuts."""

from contextlib import nullcontext

from flask import Response
from flask_openapi3 import APIBlueprint, Tag

from callslip.api.http import responses
from callslip.api.http.context import current
from callslip.api.http.json_response import answer
from callslip.api.http.slots import Slots
from callslip.api.messages import documents
from callslip.api.v1.documents import DocumentPath, admitted, send_version, submitted
from callslip.errors import Conflict, DocumentNotFound
from callslip.stores.blobs import original_name
from callslip.stores.ledger import Accepted
from callslip.tasks import compute
from callslip.tasks.jobs import document_preview

CUT_SECONDS = 120.0
"""How long a cut may wait for a worker: a text of 20 million characters takes a minute."""

MOST_WAITING = 2
"""The maximum cuts for which threads of one process wait."""

_slots = Slots()

blueprint = APIBlueprint("versions", __name__, abp_tags=[Tag(name="documents")])


@blueprint.get("/v1/documents/<string:document_id>/versions", responses={200: documents.Versions})
def list_versions(path: DocumentPath) -> Response:
    """List every version of a document, newest first, with its state."""
    record = current().ledger.documents.get(path.document_id)
    return answer(
        documents.Versions(
            document_id=record.document_id,
            name=record.name,
            live_version=responses.live_version(record),
            versions=[responses.version(v) for v in current().ledger.versions.of(path.document_id)],
        )
    )


@blueprint.post(
    "/v1/documents/<string:document_id>/rollback",
    responses={200: documents.Submitted, 202: documents.Submitted},
)
def roll_back(path: DocumentPath, body: documents.Rollback) -> Response:
    """Restore an older version as a new version; its chunks are not embedded again.

    Searches see the live version until the new version is live. 200 if the version is live already.
    The new version waits and counts as a submission of the file does.
    """
    return submitted(restore(path.document_id, body.version))


def restore(document_id: str, version: int) -> Accepted:
    """Queue a new version with the content of an older one, and send it to a worker.

    Raises the errors of `Versions.restore` and `admitted`.
    """
    record = current().ledger.documents.get(document_id)
    if record.deleted_at is not None:
        raise DocumentNotFound(f"document {document_id!r} was deleted")
    old = current().ledger.documents.version(document_id, version)
    if not current().blobs.exists(document_id, original_name(old.sha256)):
        raise Conflict(
            f"the file of version {version} is not stored here",
            hint="An archive moves the live version's alone: send the file again under its name.",
        )
    is_live = version == record.newest.version == record.live_version
    with nullcontext() if is_live else admitted(record, old.size):
        accepted = current().ledger.versions.restore(document_id, version)
    if accepted.fresh:
        send_version(document_id, record.collection, record.tenant, old.size)
    return accepted


@blueprint.post(
    "/v1/documents/<string:document_id>/cut:preview", responses={200: documents.CutPreview}
)
def preview_cut(path: DocumentPath, body: documents.CutLimits) -> Response:
    """Cut the live version into chunks of other lengths, and store nothing."""
    return answer(_cut(path.document_id, body, body.limit))


@blueprint.post(
    "/v1/documents/<string:document_id>/cut",
    responses={200: documents.Submitted, 202: documents.Submitted},
)
def cut(path: DocumentPath, body: documents.CutRequest) -> Response:
    """Make a version of the same file whose chunks have other lengths; later versions keep them.

    Searches see the live version until the new version is live. 200 if the lengths are the same.
    The new version waits and counts as a submission of the file does.
    """
    made = _cut(path.document_id, body, 0)
    lengths = made.model_dump(include={"target_tokens", "max_tokens", "overlap_tokens"})
    record = current().ledger.documents.get(path.document_id)
    own = record.newest.chunking or current().settings.chunking.model_dump()
    if record.newest.version == made.version and own == lengths:
        return submitted(Accepted(path.document_id, made.version, fresh=False))
    with admitted(record, record.newest.size):
        accepted = current().ledger.versions.cut(path.document_id, made.version, lengths)
    send_version(path.document_id, record.collection, record.tenant, record.newest.size)
    return submitted(accepted)


def _cut(document_id: str, lengths: documents.CutRequest, limit: int) -> documents.CutPreview:
    current().ledger.documents.get(document_id)
    job = {
        "document_id": document_id,
        "lengths": lengths.model_dump(include={"max_tokens", "overlap_tokens"}),
        "limit": limit,
    }
    with _slots.reserve(MOST_WAITING, "documents are being cut"):
        made = compute.run(current(), document_preview.JOB, job, seconds=CUT_SECONDS)
    return documents.CutPreview.model_validate(made)
