"""Validates the address of a source, and opens the source behind it."""

import re
from pathlib import Path
from urllib.parse import unquote

import httpx

from callslip.config.settings import Settings
from callslip.errors import InvalidRequest
from callslip.http.urls import parse_url
from callslip.ingestion.sources.folder import Folder
from callslip.ingestion.sources.items import Origin
from callslip.ingestion.sources.web import WebPage

WEB = ("http", "https")
BUCKETS = ("s3", "s3a", "gs", "gcs", "abfs", "az")
MEMORY = "memory"
"""The scheme of fsspec's file system in the memory of one process, for tests."""

LONGEST_URL = 2048

_SCHEME = re.compile(r"([a-z][a-z0-9+.-]+)://", re.IGNORECASE)


def source_url(address: str) -> str:
    """Return the URL of a source: a web address, a bucket's prefix, or a folder's path.

    Raises InvalidRequest for any other address, one with a password, or a folder that does not
    exist.
    """
    if any(character < " " or character == "\x7f" for character in address):
        raise InvalidRequest("the address holds a control character")
    scheme_match = _SCHEME.match(address)
    scheme = scheme_match[1].lower() if scheme_match else "file"
    if scheme == "file":
        url = _folder(Path(unquote(address[scheme_match.end() :]) if scheme_match else address))
    elif scheme in WEB:
        url = _web(address)
    elif scheme in BUCKETS or scheme == MEMORY:
        url = address.rstrip("/")
        if "::" in address or "@" in address.partition("://")[2].partition("/")[0]:
            raise InvalidRequest(f"{scheme} takes no chain and no password in the address")
    else:
        raise InvalidRequest(
            f"a source of {scheme!r} is not known",
            hint=f"Name a folder, or a URL of {', '.join((*WEB, *BUCKETS))}.",
        )
    if len(url) > LONGEST_URL:
        raise InvalidRequest(f"the address is longer than {LONGEST_URL} characters")
    return url


def open_origin(url: str, settings: Settings) -> Origin:
    """Open the source at this address; SettingsError if a package is missing."""
    most_mb, timeout = settings.api.max_upload_mb, settings.sources.timeout_seconds
    if url.partition("://")[0] in WEB:
        networks = settings.sources.networks
        return WebPage(url, most_mb=most_mb, timeout_seconds=timeout, networks=networks)
    return Folder(url, most_mb=most_mb, timeout_seconds=timeout)


def _folder(path: Path) -> str:
    whole = path.expanduser().absolute()
    if not whole.is_dir():
        raise InvalidRequest(
            f"{whole} is no folder", hint="Name a folder of this machine, or a URL."
        )
    return f"file://{whole.resolve()}"


def _web(address: str) -> str:
    try:
        url = parse_url(address)
    except httpx.InvalidURL as error:
        raise InvalidRequest(f"the URL cannot be read: {error}") from None
    if not url.host:
        raise InvalidRequest("the URL names no host")
    if url.userinfo:
        raise InvalidRequest(
            "the URL holds a user name or password",
            hint="It would be stored and shown with the source; serve the page by other means.",
        )
    return str(url.copy_with(fragment=None))
