"""Names of collections in Chroma and in folders, made from any name and readable back."""

import re

from callslip.errors import InvalidRequest

MAX_SLUG = 120
"""Letters of a slug: Chroma takes 512 in a name of three slugs, a folder 255 of two."""

_PREFIX = "callslip"


def slug(name: str, what: str = "collection's") -> str:
    """Write a name in `a-z 0-9 -`, every other byte of its UTF-8 as `_xx`.

    Capitals too, because some file systems take A for a. Raises InvalidRequest for an empty name
    and for one that gets too long.
    """
    if not name:
        raise InvalidRequest(f"A {what} name is empty.")
    written = re.sub(
        "[^a-z0-9-]",
        lambda found: "".join(f"_{byte:02x}" for byte in found[0].encode(errors="replace")),
        name,
    )
    if len(written) > MAX_SLUG:
        raise InvalidRequest(
            f"The {what} name {name[:40]!r}… is too long:"
            f" at most {MAX_SLUG} Latin letters or {MAX_SLUG // 9} Korean ones."
        )
    return written


def unslug(written: str) -> str:
    """Read a slug back."""
    raw = re.sub("_(..)", lambda found: chr(int(found[1], 16)), written)
    return raw.encode("latin-1").decode(errors="replace")


def schema_of(collection: str) -> str:
    """Name Chroma's collection that holds a collection's schema and nothing else."""
    return f"{_PREFIX}.{slug(collection)}.schema"


def collection_of(name: str) -> str | None:
    """Read a collection's name from that of its schema; None where it is none."""
    parts = name.split(".")
    return unslug(parts[1]) if parts[0] == _PREFIX and parts[2:] == ["schema"] else None


def chunks_of(collection: str, tenant: str = "", vector_name: str = "") -> str:
    """Name Chroma's collection of a collection's passages, by tenant and by vector."""
    named = f".{slug(vector_name, 'vector')}" if vector_name else ""
    return f"{_of(collection, tenant)}.chunks{named}"


def parents_of(collection: str, tenant: str = "", vector_name: str = "") -> str:
    """Name Chroma's collection of the chunks of higher levels, by tenant and by vector."""
    named = f".{slug(vector_name, 'vector')}" if vector_name else ""
    return f"{_of(collection, tenant)}.parents{named}"


def documents_of(collection: str, tenant: str = "") -> str:
    """Name Chroma's collection of a collection's documents, by tenant."""
    return f"{_of(collection, tenant)}.documents"


def tenant_of(collection: str, name: str) -> str | None:
    """Read a tenant's name from that of its chunks; None where it is none of the collection's."""
    start = f"{_PREFIX}.{slug(collection)}."
    parts = name.removeprefix(start).split(".")
    if not name.startswith(start) or len(parts) != 2 or parts[1] != "chunks":
        return None
    return unslug(parts[0].removeprefix("tenant-"))


def folder_of(collection: str, tenant: str = "") -> str:
    """Name the folder of the keyword index, by tenant."""
    return f"{slug(collection)}.{slug(tenant, 'tenant')}" if tenant else slug(collection)


def _of(collection: str, tenant: str) -> str:
    place = f"{_PREFIX}.{slug(collection)}"
    return f"{place}.tenant-{slug(tenant, 'tenant')}" if tenant else place
