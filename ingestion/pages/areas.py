"""The lines of a passage on the pages of its PDF."""

from collections.abc import Iterable

from callslip.ingestion.artifacts import EXTRACTED, stored_if_up
from callslip.ingestion.boxes import Area, areas
from callslip.stores.backend import Backend


def areas_of(
    backend: Backend, document_id: str, version: int, spans: Iterable[tuple[int, int]]
) -> list[list[Area]]:
    """Return the areas of each span of a version's text; none where the lines are unknown.

    Reads the whole extract, whose lines are stored with it.
    """
    extract = stored_if_up(backend, document_id, version, "extract", EXTRACTED)
    if extract is None:
        return [[] for _ in spans]
    return [areas(extract.boxes, extract.text, start, end) for start, end in spans]
