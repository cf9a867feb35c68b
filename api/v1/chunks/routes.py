"""/v1/documents/{id}/chunks and /corrections: the chunks of a document, and corrections of them."""

from flask import Response
from flask_openapi3 import APIBlueprint, Tag

from callslip.api.http.context import current
from callslip.api.http.json_response import answer
from callslip.api.http.slots import Slots
from callslip.api.identity.current import note
from callslip.api.messages import chunks as messages
from callslip.api.messages.documents import Submitted
from callslip.api.v1.chunks.listing import correction, listed
from callslip.api.v1.documents import DocumentPath, admitted, send_version, submitted
from callslip.errors import DocumentNotFound
from callslip.stores.ledger import Accepted
from callslip.tasks import compute
from callslip.tasks.jobs import correcting

SECONDS = 120.0
"""How long corrections may wait for a worker and be computed."""

MOST_WAITING = 2
"""The maximum requests of corrections for which threads of one process wait."""

_slots = Slots()

blueprint = APIBlueprint("chunks", __name__, abp_tags=[Tag(name="documents")])


@blueprint.get("/v1/documents/<string:document_id>/chunks", responses={200: messages.Chunks})
def list_chunks(path: DocumentPath, query: messages.ChunksQuery) -> Response:
    """List the chunks of the live version in order of the text, with all that is known of them."""
    return answer(listed(path.document_id, query))


@blueprint.get(
    "/v1/documents/<string:document_id>/corrections", responses={200: messages.Corrections}
)
def list_corrections(path: DocumentPath) -> Response:
    """List the corrections of the newest version: the original, the replacement, if it applies.

    A new file under the document's name keeps all of them and applies those whose original it has.
    """
    record = current().ledger.documents.get(path.document_id)
    if record.deleted_at is not None:
        raise DocumentNotFound(f"document {path.document_id!r} was deleted")
    return answer(
        messages.Corrections(
            document_id=record.document_id,
            version=record.newest.version,
            corrections=[correction(each) for each in record.newest.corrections],
        )
    )


@blueprint.post(
    "/v1/documents/<string:document_id>/corrections", responses={200: Submitted, 202: Submitted}
)
def correct_chunks(path: DocumentPath, body: messages.NewCorrections) -> Response:
    """Correct the text of passages: a new version, whose other chunks keep id, vector and memory.

    An ingest worker computes them. 200 if no text differs. The request counts as a submission of
    the file does, and the new version waits as one. A passage that overlaps the corrected words
    changes too. `POST …/rollback` with the version before takes the corrections back.
    """
    return submitted(correct(path.document_id, body.texts, body.version))


def correct(document_id: str, texts: dict[str, str], version: int | None) -> Accepted:
    """Queue a version in which passages have these texts.

    Raises the errors of `correct`, `compute.run` and `admitted`, and Overloaded.
    """
    note(document_id=document_id)
    record = current().ledger.documents.get(document_id)
    job, size = {"document_id": document_id, "texts": texts, "version": version}, record.newest.size
    with _slots.reserve(MOST_WAITING, "documents are being corrected"), admitted(record, size):
        made = compute.run(current(), correcting.JOB, job, seconds=SECONDS)
    if made["fresh"]:
        send_version(document_id, record.collection, record.tenant, size)
    return Accepted(document_id, made["version"], made["fresh"])
