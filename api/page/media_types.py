"""The media types of documents on the page."""

from pathlib import PurePath

from callslip.ingestion.extract.sniff import TEXT_NAMES


def media_type_of(filename: str) -> str:
    """Return the media type of a text by its file name; empty if the name tells none.

    Every document that is read as Markdown has such a name. The extract is not read: it can have
    20 million characters.
    """
    return TEXT_NAMES.get(PurePath(filename).suffix.lower(), "")
