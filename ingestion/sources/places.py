"""A source's address: checked when it is added, opened when it is looked at."""

import re
from pathlib import Path
from urllib.parse import unquote

import httpx

from callslip.errors import InvalidRequest
from config.settings import Settings
from ingestion.sources.folder import Folder
from ingestion.sources.items import Place
from ingestion.sources.web import WebPage

WEB = ("http", "https")
BUCKETS = ("s3", "s3a", "gs", "gcs", "abfs", "az")
MEMORY = "memory"
"""fsspec's, of one process: for tests."""

LONGEST_URL = 2048

_SCHEME = re.compile(r"([a-z][a-z0-9+.-]+)://", re.IGNORECASE)


def source_url(given: str) -> str:
    """The URL of what a person names: a web address, a bucket's prefix, or a folder's path.

    InvalidRequest where it is none of these, holds a password, or names no folder of this machine.
    """
    if any(character < " " or character == "\x7f" for character in given):
        raise InvalidRequest("the address holds a control character")
    found = _SCHEME.match(given)
    scheme = found[1].lower() if found else "file"
    if scheme == "file":
        url = _folder(Path(unquote(given[found.end() :]) if found else given))
    elif scheme in WEB:
        url = _web(given)
    elif scheme in BUCKETS or scheme == MEMORY:
        url = given.rstrip("/")
        if "::" in given or "@" in given.partition("://")[2].partition("/")[0]:
            raise InvalidRequest(f"{scheme} takes no chain and no password in the address")
    else:
        raise InvalidRequest(
            f"a source of {scheme!r} is not known",
            hint=f"Name a folder, or a URL of {', '.join((*WEB, *BUCKETS))}.",
        )
    if len(url) > LONGEST_URL:
        raise InvalidRequest(f"the address is longer than {LONGEST_URL} characters")
    return url


def open_place(url: str, settings: Settings) -> Place:
    """What the address of a source leads to; SettingsError where a package is missing."""
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


def _web(given: str) -> str:
    try:
        url = httpx.URL(given)
    except httpx.InvalidURL as error:
        raise InvalidRequest(f"the URL cannot be read: {error}") from None
    if not url.host:
        raise InvalidRequest("the URL names no host")
    if url.userinfo:
        raise InvalidRequest(
            "the URL holds a user name or password",
            hint="It would be kept and shown with the source; put the page behind another door.",
        )
    return str(url.copy_with(fragment=None))
