"""Names that people give to documents and tenants, as they are kept."""

import re
import unicodedata
from typing import Annotated

from pydantic import AfterValidator

from callslip.errors import InvalidRequest

LONGEST_NAME, LONGEST_TENANT = 1024, 64

MOST_COMPOSED = 4
"""Code points that NFC makes one of: what is longer by more is too long, and need not be composed,
which takes n² steps for n marks on one letter."""

_CONTROL = re.compile(r"[\x00-\x1f\x7f]+")
_PARTS = re.compile(r"[/\\]")


def clean_name(name: str) -> str:
    """A document's name as it is kept; InvalidRequest where none is left.

    It may look like a path below a folder; one that leads out of it is refused, so that nobody who
    makes files of names can be led astray.
    """
    cleaned = clean_line(name)
    if ".." in _PARTS.split(cleaned):
        raise InvalidRequest("the name has the path part '..'", hint="Send a name without it.")
    return cleaned


def clean_line(name: str) -> str:
    """A name or title of any form: NFC, without control characters; InvalidRequest where empty."""
    cleaned = _CONTROL.sub(" ", name.encode("utf-8", "replace").decode()).strip()
    if len(cleaned) <= MOST_COMPOSED * LONGEST_NAME:
        cleaned = unicodedata.normalize("NFC", cleaned).strip()
    if not cleaned:
        raise InvalidRequest("the name is empty")
    if len(cleaned) > LONGEST_NAME:
        raise InvalidRequest(
            f"the name has {len(cleaned)} characters, at most {LONGEST_NAME} are kept"
        )
    return cleaned


def clean_filename(name: str) -> str:
    """The last part of a path as it is kept."""
    return clean_name(_PARTS.split(name)[-1])


def clean_tenant(tenant: str) -> str:
    """A tenant's name as it is kept; "" for none."""
    if not tenant:
        return ""
    name = clean_line(tenant)
    if len(name) > LONGEST_TENANT:
        raise InvalidRequest(
            f"the tenant's name has {len(name)} characters, at most {LONGEST_TENANT} are kept"
        )
    if "" in name.split("/"):
        raise InvalidRequest(
            f"the tenant's name {name!r} has a / at an end, or two together",
            hint="No address could name such a tenant.",
        )
    return name


Tenant = Annotated[str, AfterValidator(clean_tenant)]
"""A tenant's name in a request."""
