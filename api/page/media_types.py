"""The media types of documents, which their extracts have."""

from collections.abc import Mapping
from functools import lru_cache
from pathlib import PurePath

from callslip.api.http.context import current
from callslip.errors import StoreDown
from callslip.ingestion.artifacts import EXTRACTED
from callslip.ingestion.extract.sniff import TEXT_NAMES


def media_types(filenames: Mapping[str, str]) -> dict[str, str]:
    """Return the media type of each document, by its id.

    Where no extract is stored, the type follows from the file's name; empty if that says none.
    """
    artifacts = current().ledger.versions.extracts(list(filenames))
    return {i: _of_extract(i, artifacts.get(i)) or _of_name(n) for i, n in filenames.items()}


def _of_extract(document_id: str, artifact: str | None) -> str | None:
    try:
        return _stored(document_id, artifact) if artifact else None
    except (FileNotFoundError, StoreDown, ValueError):
        return None


@lru_cache(maxsize=10_000)
def _stored(document_id: str, artifact: str) -> str:
    return EXTRACTED.load(current().blobs.read(document_id, artifact)).media_type


def _of_name(filename: str) -> str:
    return TEXT_NAMES.get(PurePath(filename).suffix.lower(), "")
