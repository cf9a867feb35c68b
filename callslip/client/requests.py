"""Requests as the client sends them: the server's address and key, paths, JSON bodies."""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlsplit

import httpx
from pydantic import BaseModel, SecretStr

from callslip.errors import (
    BatchNotFound,
    CollectionNotFound,
    DocumentNotFound,
    FeedbackNotFound,
    InvalidRequest,
    NotFound,
    PermanentError,
    TaskNotFound,
    ThreadNotFound,
    TraceNotFound,
    WebhookNotFound,
)

URL = "http://127.0.0.1:8765"
URL_VARIABLE, KEY_VARIABLE = "CALLSLIP_API__URL", "CALLSLIP_API__KEY"

KEEPALIVE_SECONDS = 1.0
"""The client closes an idle connection sooner than gunicorn does, after 2 s by default."""

JSON_LINES = "application/x-ndjson"

UNCHANGED: Any = object()
"""The default of an argument whose None removes a value: the value stays as it is."""

_UNKNOWN: Mapping[str, tuple[type[NotFound], str]] = {
    "batch_id": (BatchNotFound, "batch"),
    "collection": (CollectionNotFound, "collection"),
    "document_id": (DocumentNotFound, "document"),
    "feedback_id": (FeedbackNotFound, "feedback"),
    "task_id": (TaskNotFound, "task"),
    "thread_id": (ThreadNotFound, "conversation"),
    "trace_id": (TraceNotFound, "trace"),
    "webhook_id": (WebhookNotFound, "webhook"),
}
"""The errors for ids and names that the server does not know, with what they name."""

_REPEATABLE = frozenset({"GET", "HEAD", "PUT", "DELETE"})


@dataclass(frozen=True)
class ServerAddress:
    """The base URL of a server, and its API key or None."""

    url: str
    key: str | None = field(repr=False)

    @classmethod
    def of(cls, url: str | None, key: str | SecretStr | None) -> "ServerAddress":
        """Check both values. Without `url` both come from the environment variables.

        Raises InvalidRequest if `url` is no HTTP URL, or no header can carry the key.
        """
        if url is None:
            url = os.environ.get(URL_VARIABLE) or URL
            key = key or os.environ.get(KEY_VARIABLE)
        return cls(_checked_url(url), checked_key(key))

    def sign(self, request: httpx.Request) -> httpx.Request:
        """Add the `Authorization` header, if there is a key (httpx calls this as `auth`)."""
        if self.key is not None:
            request.headers["Authorization"] = f"Bearer {self.key}"
        return request


def _checked_url(url: str) -> str:
    try:
        parsed = urlsplit(url)
        is_address = parsed.scheme in ("http", "https") and bool(httpx.URL(url).host)
    except (httpx.InvalidURL, TypeError, ValueError, AttributeError):
        is_address = False
    if not is_address:
        raise InvalidRequest(
            f"{url!r} is no address of a Callslip server", hint=f"For example {URL}."
        )
    return url.rstrip("/")


def checked_key(key: str | SecretStr | None) -> str | None:
    """The key without surrounding space, None if it is empty.

    Raises InvalidRequest, whose text does not contain the key, if no header can carry it.
    """
    text = key.get_secret_value() if isinstance(key, SecretStr) else key
    text = (text or "").strip()
    if not (text.isascii() and text.isprintable()):
        raise InvalidRequest("the key has a character that no header can carry")
    return text or None


def path_of(template: str, **names: str) -> str:
    """Fill the percent-encoded names into the path template.

    Raises InvalidRequest if a name is empty, `.` or `..`, or is not valid Unicode; a NotFound if it
    has a `/`, which only names of tenants may have: the server would read another path.
    """
    for name, value in names.items():
        if not isinstance(value, str) or not value:
            raise InvalidRequest(f"{name} is {'empty' if value == '' else 'no text'}")
        if "/" in value and name != "tenant":
            kind, what = _UNKNOWN.get(name, (NotFound, name))
            raise kind(f"{what} {value!r} does not exist")
    try:
        quoted = {name: quote(value, safe="") for name, value in names.items()}
    except UnicodeEncodeError as error:
        raise InvalidRequest(f"a name in {template!r} is not valid Unicode") from error
    return checked_path(template.format(**quoted))


def checked_path(path: str) -> str:
    """Return the path; raise InvalidRequest if a segment is `.` or `..`.

    httpx would remove these segments, and so request another path.
    """
    if not path.startswith("/"):
        raise InvalidRequest(f"the path {path!r} does not begin with '/'")
    if {".", ".."} & set(path.partition("?")[0].split("/")):
        raise InvalidRequest(f"a name in {path!r} is '.' or '..'", hint="Send another name.")
    return path


def without_none(**values: Any) -> dict[str, Any]:
    """The arguments that are not None, as JSON values; the server has defaults for the others."""
    return {name: plain(value) for name, value in values.items() if value is not None}


def without_unchanged(**values: Any) -> dict[str, Any]:
    """The arguments that are not UNCHANGED, as JSON values; None is sent as null."""
    return {name: plain(value) for name, value in values.items() if value is not UNCHANGED}


def plain(value: Any) -> Any:
    """Convert to a JSON value; of a model only the fields that were set are sent."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", exclude_unset=True)
    return dict(value) if isinstance(value, Mapping) else value


def to_json(value: Any) -> str:
    """Serialize a value as JSON; raise InvalidRequest if JSON cannot represent it."""
    try:
        return json.dumps(plain(value), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidRequest(f"the request cannot be written: {error}") from None


def line_of(line: BaseModel | str) -> str:
    """A model or a text as one line of JSON Lines, with `\\n` at its end."""
    text = line if isinstance(line, str) else line.model_dump_json()
    return text.rstrip("\n") + "\n"


def request_to(
    http: httpx.Client | httpx.AsyncClient,
    address: ServerAddress,
    method: str,
    path: str,
    **sent: Any,
) -> httpx.Request:
    """Build a request for a path of the server; InvalidRequest if httpx cannot build it."""
    try:
        return http.build_request(method, address.url + checked_path(path), **sent)
    except UnicodeEncodeError:
        raise InvalidRequest("a text of the request is not valid Unicode") from None
    except (TypeError, ValueError, RecursionError, httpx.InvalidURL) as error:
        raise InvalidRequest(f"the request cannot be written: {error}") from None


def repeatable(method: str, stated: bool | None) -> bool:
    """Whether a request may be sent twice.

    `stated` is the caller's statement; without it the method decides (RFC 9110, 9.2.2).
    """
    return method in _REPEATABLE if stated is None else stated


@contextmanager
def while_open(http: httpx.Client | httpx.AsyncClient) -> Iterator[None]:
    """Raise PermanentError if the HTTP client was closed before."""
    try:
        yield
    except RuntimeError as error:
        if not http.is_closed:
            raise
        raise PermanentError(
            "the client is closed", hint="Make a new one, or call it within its `with`."
        ) from error
