"""/v1/documents/{id}/versions and /rollback: the history of a document, and restoring a version."""

from flask import Response
from flask_openapi3 import APIBlueprint, Tag

from callslip.api.http import responses
from callslip.api.http.context import current
from callslip.api.http.json_response import answer
from callslip.api.messages import documents
from callslip.api.v1.documents import DocumentPath, submitted
from callslip.errors import Conflict
from callslip.stores.blobs import original_name
from callslip.stores.ledger import Accepted
from callslip.tasks import ingest

blueprint = APIBlueprint("versions", __name__, abp_tags=[Tag(name="documents")])


@blueprint.get("/v1/documents/<string:document_id>/versions", responses={200: documents.Versions})
def list_versions(path: DocumentPath) -> Response:
    """List every version of a document, newest first, with its state."""
    record = current().ledger.documents.get(path.document_id)
    return answer(
        documents.Versions(
            document_id=record.document_id,
            name=record.name,
            live_version=record.live_version,
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
    """
    return submitted(restore(path.document_id, body.version))


def restore(document_id: str, version: int) -> Accepted:
    """Queue a new version with the content of an older one, and send it to a worker."""
    current().ledger.documents.get(document_id)
    record = current().ledger.documents.version(document_id, version)
    if not current().blobs.exists(record.document_id, original_name(record.sha256)):
        raise Conflict(
            f"the file of version {version} is not stored here",
            hint="An archive moves the live version's alone: send the file again under its name.",
        )
    accepted = current().ledger.versions.restore(document_id, version)
    if accepted.fresh:
        ingest.send_next(current(), accepted.document_id)
    return accepted
