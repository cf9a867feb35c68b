"""Names that people give to documents and tenants, as they are kept."""

import re
import unicodedata
from typing import Annotated

from pydantic import AfterValidator

from callslip.errors import InvalidRequest

LONGEST_NAME, LONGEST_TENANT = 1024, 64

_CONTROL = re.compile(r"[\x00-\x1f\x7f]+")


def clean_name(name: str) -> str:
    """A name as it is kept: NFC, without control characters; InvalidRequest where none is left."""
    cleaned = _CONTROL.sub(
        " ", unicodedata.normalize("NFC", name.encode("utf-8", "replace").decode())
    )
    cleaned = cleaned.strip()
    if not cleaned:
        raise InvalidRequest("the name is empty")
    if len(cleaned) > LONGEST_NAME:
        raise InvalidRequest(
            f"the name has {len(cleaned)} characters, at most {LONGEST_NAME} are kept"
        )
    return cleaned


def clean_tenant(tenant: str) -> str:
    """A tenant's name as it is kept; "" for none."""
    if not tenant:
        return ""
    name = clean_name(tenant)
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
