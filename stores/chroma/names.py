"""Names of Chroma collections and of folders: encoded from any name, and decoded."""

import re

from callslip.errors import InvalidRequest

MAX_SLUG = 120
"""The most characters in a slug.

A Chroma name has at most 512 for three slugs, a folder's name 255 for two.
"""

OLD, NEW = "._old", "._new"
"""Endings of the names of tables that are written anew. No encoded name has such an ending."""

_PREFIX = "callslip"


def slug(name: str, what: str = "collection's") -> str:
    """Encode a name in `a-z 0-9 -`, with every other byte of its UTF-8 as `_xx`.

    Capitals are encoded too, because some file systems do not distinguish A from a. Raises
    InvalidRequest if the name is empty or the slug is longer than MAX_SLUG.
    """
    if not name:
        raise InvalidRequest(f"A {what} name is empty.")
    written = re.sub(
        "[^a-z0-9-]",
        lambda match: "".join(f"_{byte:02x}" for byte in match[0].encode(errors="replace")),
        name,
    )
    if len(written) > MAX_SLUG:
        raise InvalidRequest(
            f"The {what} name {name[:40]!r}… is too long:"
            f" at most {MAX_SLUG} Latin letters or {MAX_SLUG // 9} Korean ones."
        )
    return written


def unslug(written: str) -> str:
    """Decode a slug."""
    raw = re.sub("_(..)", lambda match: chr(int(match[1], 16)), written)
    return raw.encode("latin-1").decode(errors="replace")


def schema_of(collection: str) -> str:
    """The name of the Chroma collection that stores only a collection's schema."""
    return f"{_PREFIX}.{slug(collection)}.schema"


def collection_of(name: str) -> str | None:
    """Decode a collection's name from a name by `schema_of`; None for any other name."""
    parts = name.split(".")
    return unslug(parts[1]) if parts[0] == _PREFIX and parts[2:] == ["schema"] else None


def chunks_of(collection: str, tenant: str = "", vector_name: str = "") -> str:
    """The name of the Chroma collection of a collection's passages, by tenant and by vector."""
    named = f".{slug(vector_name, 'vector')}" if vector_name else ""
    return f"{_of(collection, tenant)}.chunks{named}"


def parents_of(collection: str, tenant: str = "", vector_name: str = "") -> str:
    """The name of the Chroma collection of document and section chunks, by tenant and vector."""
    named = f".{slug(vector_name, 'vector')}" if vector_name else ""
    return f"{_of(collection, tenant)}.parents{named}"


def documents_of(collection: str, tenant: str = "") -> str:
    """The name of the Chroma collection of a collection's documents, by tenant."""
    return f"{_of(collection, tenant)}.documents"


def tenant_of(collection: str, name: str) -> str | None:
    """Decode a tenant's name from a name by `chunks_of`; None if it names no tenant's chunks."""
    start = f"{_PREFIX}.{slug(collection)}.tenant-"
    parts = name.removeprefix(start).split(".")
    if not name.startswith(start) or len(parts) != 2 or parts[1] != "chunks":
        return None
    return unslug(parts[0])


def folder_of(collection: str, tenant: str = "") -> str:
    """The name of the folder of the keyword index, by tenant."""
    return f"{slug(collection)}.{slug(tenant, 'tenant')}" if tenant else slug(collection)


def _of(collection: str, tenant: str) -> str:
    scope = f"{_PREFIX}.{slug(collection)}"
    return f"{scope}.tenant-{slug(tenant, 'tenant')}" if tenant else scope
