"""Names in Weaviate's alphabets, made from any name; those of collections read back."""

import base64
import hashlib
import re
from functools import lru_cache
from uuid import UUID, uuid5

from callslip.errors import InvalidRequest

MAX_SLUG = 200
"""Letters of a slug: a class is a folder, a property one whose name has a prefix and a suffix."""

MAX_TENANT = 64
"""Letters of a tenant's name, by Weaviate's rule."""

CHUNKS, DOCUMENTS = "Chunk_", "Document_"

_IDS = UUID("5d3c4c7e-53b0-5a5b-9d0e-6f6ff0a6c0de")


def class_of(prefix: str, collection: str) -> str:
    """Name the class that holds a collection's chunks or documents.

    Raises InvalidRequest for an empty name and for one that gets too long.
    """
    if not collection:
        raise InvalidRequest("A collection's name is empty.")
    written = _slug(collection)
    if len(written) > MAX_SLUG:
        raise InvalidRequest(
            f"The collection's name {collection[:40]!r}… is too long:"
            f" at most {MAX_SLUG} small Latin letters or {MAX_SLUG // 9} Korean ones."
        )
    return prefix + written


def tenant_of(tenant: str) -> str:
    """Write a tenant's name: as it is with `_xx` for other bytes, or where that is too long, whole.

    Raises InvalidRequest for one that gets too long in either way.
    """
    written = _slug(tenant, keep="A-Za-z0-9-")
    if len(written) > MAX_TENANT:
        # No slug begins with two underscores: hexadecimal digits follow the first.
        coded = base64.urlsafe_b64encode(tenant.encode(errors="replace")).decode()
        written = f"__{coded.rstrip('=')}"
    if len(written) > MAX_TENANT:
        raise InvalidRequest(
            f"The tenant's name {tenant[:40]!r}… is too long:"
            f" at most {MAX_TENANT} Latin letters or 15 Korean ones."
        )
    return written


def read_tenant(written: str) -> str:
    """Read a tenant's name back."""
    if written.startswith("__"):
        coded = written[2:]
        return base64.urlsafe_b64decode(coded + "=" * (-len(coded) % 4)).decode()
    raw = re.sub("_(..)", lambda found: chr(int(found[1], 16)), written)
    return raw.encode("latin-1").decode(errors="replace")


@lru_cache(maxsize=4096)
def property_of(kind: str, name: str) -> str:
    """Name the property of the values of one kind, or a vector; long names are hashed."""
    written = _slug(name)
    if len(written) > MAX_SLUG:
        written = "_" + hashlib.sha256(name.encode()).hexdigest()
    return f"{kind}_{written}"


def vector_of(vector_name: str) -> str:
    """Name a vector; the default one's name is empty."""
    return property_of("named", vector_name) if vector_name else "default"


def uuid_of(id_: str) -> UUID:
    """The UUID under which a chunk or a document of this id lies."""
    return uuid5(_IDS, id_)


def _slug(name: str, keep: str = "a-z0-9") -> str:
    """Keep some letters and write every other byte of the name's UTF-8 as `_xx`.

    Capitals only where Weaviate tells them apart: it does not for classes and properties.
    """
    return re.sub(
        f"[^{keep}]",
        lambda found: "".join(f"_{byte:02x}" for byte in found[0].encode(errors="replace")),
        name,
    )
