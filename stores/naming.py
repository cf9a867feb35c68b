"""Normalizes the names of documents and tenants to the form in which they are stored."""

import re
import unicodedata
from typing import Annotated

from pydantic import AfterValidator

from callslip.errors import InvalidRequest

LONGEST_NAME, LONGEST_TENANT = 1024, 64

MOST_COMPOSED = 4
"""The most code points that NFC composes into one.

A name that is longer than LONGEST_NAME by more than this factor is too long in any form. Such a
name is not composed, because composition takes n² steps for n marks on one letter.
"""

_CONTROL = re.compile(r"[\x00-\x1f\x7f]+")
_PARTS = re.compile(r"[/\\]")


def clean_name(name: str) -> str:
    """A document's name as it is stored.

    The name may be a path below a folder. Raises InvalidRequest if the name is empty or too long,
    or if it has the path part `..`: a program that creates files under these names must not write
    outside its folder.
    """
    cleaned = clean_line(name)
    if ".." in _PARTS.split(cleaned):
        raise InvalidRequest("the name has the path part '..'", hint="Send a name without it.")
    return cleaned


def clean_line(name: str) -> str:
    """A name or title in NFC, without control characters.

    Raises InvalidRequest if the result is empty or longer than LONGEST_NAME.
    """
    cleaned = _CONTROL.sub(" ", name.encode("utf-8", "replace").decode()).strip()
    if len(cleaned) <= MOST_COMPOSED * LONGEST_NAME:
        cleaned = unicodedata.normalize("NFC", cleaned).strip()
    if not cleaned:
        raise InvalidRequest("the name is empty")
    if len(cleaned) > LONGEST_NAME:
        raise InvalidRequest(
            f"the name has {len(cleaned)} characters, at most {LONGEST_NAME} are allowed"
        )
    return cleaned


def clean_filename(name: str) -> str:
    """The last part of a path, as it is stored."""
    return clean_name(_PARTS.split(name)[-1])


def clean_tenant(tenant: str) -> str:
    """A tenant's name as it is stored; "" for no tenant.

    Raises InvalidRequest if the name is too long, has `/` at an end or twice in a row, or the part
    `.` or `..`: clients resolve these, so the address of the tenant would be the collection's.
    """
    if not tenant:
        return ""
    name = clean_line(tenant)
    if len(name) > LONGEST_TENANT:
        raise InvalidRequest(
            f"the tenant's name has {len(name)} characters, at most {LONGEST_TENANT} are allowed"
        )
    if "" in name.split("/"):
        raise InvalidRequest(
            f"the tenant's name {name!r} has a / at an end, or two together",
            hint="No address could name such a tenant.",
        )
    if {".", ".."} & set(name.split("/")):
        raise InvalidRequest(
            f"the tenant's name {name!r} has the part '.' or '..'",
            hint="Clients would take its address for that of the collection.",
        )
    return name


Tenant = Annotated[str, AfterValidator(clean_tenant)]
"""A tenant's name in a request."""
