"""Encodes any name in Weaviate's alphabets, and decodes names of tenants."""

import base64
import hashlib
import re
from functools import lru_cache
from uuid import UUID, uuid5

from callslip.errors import InvalidRequest

MAX_SLUG = 200
"""The most characters in a slug: a class is a folder, a property one with a prefix and a suffix."""

MAX_TENANT = 64
"""The most characters in a tenant's name, a limit of Weaviate."""

CHUNKS, DOCUMENTS = "Chunk_", "Document_"

_IDS = UUID("5d3c4c7e-53b0-5a5b-9d0e-6f6ff0a6c0de")


def class_of(prefix: str, collection: str) -> str:
    """The name of the class of a collection's chunks or documents.

    Raises InvalidRequest if the name is empty or its slug is longer than MAX_SLUG.
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
    """Encode a tenant's name: unchanged except for `_xx` in place of bytes that are not allowed.

    If the result is too long, the whole name is encoded in base64. Raises InvalidRequest if that
    result is too long as well.
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
    """Decode a tenant's name."""
    if written.startswith("__"):
        coded = written[2:]
        return base64.urlsafe_b64decode(coded + "=" * (-len(coded) % 4)).decode()
    raw = re.sub("_(..)", lambda match: chr(int(match[1], 16)), written)
    return raw.encode("latin-1").decode(errors="replace")


@lru_cache(maxsize=4096)
def property_of(kind: str, name: str) -> str:
    """The name of the Weaviate property for values of one kind, or of a vector.

    Names with a slug longer than MAX_SLUG are hashed.
    """
    written = _slug(name)
    if len(written) > MAX_SLUG:
        written = "_" + hashlib.sha256(name.encode()).hexdigest()
    return f"{kind}_{written}"


def vector_of(vector_name: str) -> str:
    """The name of a vector in Weaviate. The default vector's own name is empty."""
    return property_of("named", vector_name) if vector_name else "default"


def uuid_of(id_: str) -> UUID:
    """The UUID of the chunk or document with this id."""
    return uuid5(_IDS, id_)


def _slug(name: str, keep: str = "a-z0-9") -> str:
    """Keep the characters in `keep` and write every other byte of the name's UTF-8 as `_xx`.

    `keep` has capitals only for tenants: Weaviate ignores case in the names of classes and
    properties.
    """
    return re.sub(
        f"[^{keep}]",
        lambda match: "".join(f"_{byte:02x}" for byte in match[0].encode(errors="replace")),
        name,
    )
