"""Names of collections in Chroma and in folders, made from any name and readable back."""

import re

from callslip.errors import InvalidRequest

MAX_SLUG = 200
"""Letters of a slug: Chroma takes 512, a folder 255."""


def slug(collection: str) -> str:
    """Write a name in `a-z 0-9 -`, every other byte of its UTF-8 as `_xx`.

    Capitals too, because some file systems take A for a. Raises InvalidRequest for an empty name
    and for one that gets too long.
    """
    if not collection:
        raise InvalidRequest("A collection's name is empty.")
    written = re.sub(
        "[^a-z0-9-]",
        lambda found: "".join(f"_{byte:02x}" for byte in found[0].encode(errors="replace")),
        collection,
    )
    if len(written) > MAX_SLUG:
        raise InvalidRequest(
            f"The collection name {collection[:40]!r}… is too long:"
            f" at most {MAX_SLUG} Latin letters or {MAX_SLUG // 9} Korean ones."
        )
    return written


def chunks_of(collection: str) -> str:
    """Name Chroma's collection of a collection's chunks."""
    return f"callslip.{slug(collection)}.chunks"


def documents_of(collection: str) -> str:
    """Name Chroma's collection of a collection's documents."""
    return f"callslip.{slug(collection)}.documents"
