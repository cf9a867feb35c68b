"""/v1/documents/{id}/versions and /rollback: what a document was, and going back to it."""

from flask import Response
from flask_openapi3 import APIBlueprint, Tag

from api import messages, views
from api.answers import answer
from api.documents import DocumentPath, submitted
from callslip.errors import Conflict
from stores.blobs import original_name
from tasks import ingest
from tasks.process import blobs, ledger

blueprint = APIBlueprint("versions", __name__, abp_tags=[Tag(name="documents")])


@blueprint.get("/v1/documents/<string:document_id>/versions", responses={200: messages.Versions})
def list_versions(path: DocumentPath) -> Response:
    """Every version of a document, newest first, with what became of it."""
    record = ledger().documents.get(path.document_id)
    return answer(
        messages.Versions(
            document_id=record.document_id,
            name=record.name,
            live_version=record.live_version,
            versions=[views.version(v) for v in ledger().versions.of(path.document_id)],
        )
    )


@blueprint.post(
    "/v1/documents/<string:document_id>/rollback",
    responses={200: messages.Submitted, 202: messages.Submitted},
)
def roll_back(path: DocumentPath, body: messages.Rollback) -> Response:
    """Bring an older version back as a new one, without embedding it anew.

    Searches see the live version until the new one is live, whole. 200 where the version is live.
    """
    record = ledger().documents.version(path.document_id, body.version)
    if not blobs().exists(record.document_id, original_name(record.sha256)):
        raise Conflict(
            f"the file of version {body.version} is not kept here",
            hint="An archive moves the live version's alone: send the file again under its name.",
        )
    accepted = ledger().versions.restore(path.document_id, body.version)
    if accepted.fresh:
        ingest.send_next(accepted.document_id)
    return submitted(accepted)
