"""Normalizes the names of documents and tenants to the form in which they are stored."""

import re
import unicodedata
from typing import Annotated

import httpx
from pydantic import AfterValidator

from callslip.errors import InvalidRequest
from callslip.vocabulary import LANGUAGE

LONGEST_NAME, LONGEST_TENANT, LONGEST_URL = 1024, 64, 2048

WEB_URL = r"^https?://[!-\x22$-.0->A-~]+([/?#][!-~]*)?$"
"""The pattern of a web address as `clean_url` returns it: ASCII without spaces and user names."""

MOST_COMPOSED = 4
"""The most code points that NFC composes into one.

A name that is longer than allowed by more than this factor is too long in any form. Such a
name is not composed, because composition takes n² steps for n marks on one letter.
"""

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]+")
_PARTS = re.compile(r"[/\\]")


def clean_name(name: str, what: str = "name") -> str:
    """A document's name as it is stored; errors call it `what`.

    The name may be a path below a folder. Raises InvalidRequest if the name is empty or too long,
    or if it has the path part `..`: a program that creates files under these names must not write
    outside its folder.
    """
    cleaned = clean_line(name, what)
    if ".." in _PARTS.split(cleaned):
        raise InvalidRequest(f"the {what} has the path part '..'", hint="Send a name without it.")
    return cleaned


def clean_line(text: str, what: str, longest: int = LONGEST_NAME) -> str:
    """A name or title in NFC, without control characters; errors call it `what`.

    Raises InvalidRequest if the result is empty or longer than `longest`.
    """
    cleaned = _CONTROL.sub(" ", text.encode("utf-8", "replace").decode()).strip()
    if len(cleaned) <= MOST_COMPOSED * longest:
        cleaned = unicodedata.normalize("NFC", cleaned).strip()
    if not cleaned:
        raise InvalidRequest(f"the {what} is empty")
    if len(cleaned) > longest:
        raise InvalidRequest(
            f"the {what} has {len(cleaned)} characters, at most {longest} are allowed"
        )
    return cleaned


def clean_filename(name: str) -> str:
    """The last part of a path, as it is stored."""
    return clean_name(_PARTS.split(name)[-1], "file's name")


def clean_tenant(tenant: str) -> str:
    """A tenant's name as it is stored; "" for no tenant.

    Raises InvalidRequest if the name is too long, has `/` at an end or twice in a row, or the part
    `.` or `..`: clients resolve these, so the address of the tenant would be the collection's.
    """
    if not tenant:
        return ""
    name = clean_line(tenant, "tenant's name", LONGEST_TENANT)
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


def clean_url(url: str) -> str:
    """The web address of a document's source as it is stored: http or https, percent-encoded.

    "" for no address. Raises InvalidRequest, which says what is wrong with another address.
    """
    if not url:
        return ""
    try:
        parsed = httpx.URL(url)
        host, userinfo, cleaned = parsed.host, parsed.userinfo, str(parsed)
    except (httpx.InvalidURL, ValueError) as error:
        raise InvalidRequest(f"the url cannot be read: {error}") from None
    if parsed.scheme not in ("http", "https") or not host:
        raise InvalidRequest(
            "the url is no web address", hint="For example: https://example.org/handbook.html"
        )
    if userinfo:
        raise InvalidRequest(
            "the url has a user name or password",
            hint="It would be stored and shown to everyone who may read the document.",
        )
    if len(cleaned) > LONGEST_URL:
        raise InvalidRequest(
            f"the url has {len(cleaned)} characters, at most {LONGEST_URL} are allowed"
        )
    if not re.fullmatch(WEB_URL, cleaned):
        raise InvalidRequest("the url has a character that no address has")
    return cleaned


def check_language(code: str) -> str:
    """The code of a language that a client states; "" for none. Raises InvalidRequest."""
    if code and not re.fullmatch(LANGUAGE, code):
        raise InvalidRequest(
            f"the language {code[:20]!r} is no code of ISO 639", hint="For example: en, ko."
        )
    return code


Tenant = Annotated[str, AfterValidator(clean_tenant)]
"""A tenant's name in a request."""
