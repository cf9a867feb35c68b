"""The lines of a passage on the pages of its PDF."""

from collections.abc import Iterable

from callslip.errors import StoreDown
from callslip.ingestion.artifacts import EXTRACTED
from callslip.ingestion.boxes import Area, areas
from callslip.ingestion.values import ExtractedText
from callslip.stores.backend import Backend


def extract_of(backend: Backend, document_id: str, version: int) -> ExtractedText | None:
    """Return the extract of a version; None if it is not stored or cannot be read."""
    artifact = backend.ledger.documents.artifact(document_id, version, "extract")
    if artifact is None:
        return None
    try:
        return EXTRACTED.load(backend.blobs.read(document_id, artifact))
    except (FileNotFoundError, StoreDown, ValueError):
        return None


def areas_of(
    backend: Backend, document_id: str, version: int, spans: Iterable[tuple[int, int]]
) -> list[list[Area]]:
    """Return the areas of each span of a version's text; none where the lines are unknown.

    Reads the whole extract, whose lines are stored with it.
    """
    extract = extract_of(backend, document_id, version)
    if extract is None:
        return [[] for _ in spans]
    return [areas(extract.boxes, extract.text, start, end) for start, end in spans]
