"""The job that corrects chunks of a document, in an ingest worker: long texts take seconds."""

from typing import Any

from callslip.ingestion.corrections.corrected_version import correct
from callslip.tasks.composition import Context

JOB = "chunks.correct"


def make(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """Queue a version with corrections; return its number `version`, and whether it is `fresh`.

    `request` has the `document_id`, the `texts` of chunks by their ids, and the `version` that the
    caller read or null. Raises the errors of `correct`.
    """
    accepted = correct(
        context.backend,
        context.measures,
        request["document_id"],
        request["texts"],
        request["version"],
    )
    return {"version": accepted.version, "fresh": accepted.fresh}
