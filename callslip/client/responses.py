"""Responses as the client reads them: whole bodies, JSON as models, errors, Retry-After."""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from math import isfinite
from typing import Any, TypeVar

import httpx
from pydantic import BaseModel, ValidationError

from callslip.errors import CallslipError, Overloaded, PermanentError, ServerDown
from callslip.messages.base import read
from callslip.problems import error_of

LARGEST_BODY = 256 * 1024 * 1024
"""The most bytes, after decompression, of a response that is read as a whole."""

_BUSY, _AWAY = 429, frozenset({502, 503, 504})
"""Statuses that a proxy before the server sends, with a body that is no problem document."""

T = TypeVar("T", bound=BaseModel)


@dataclass(frozen=True)
class Reply:
    """A response whose body was read as a whole."""

    method: str
    url: str
    status: int
    headers: Mapping[str, str]
    content: bytes

    @classmethod
    def of(cls, response: httpx.Response, content: bytes) -> "Reply":
        """Combine an httpx response with its body; the URL loses its query."""
        request = response.request
        url = str(request.url.copy_with(query=None))
        return cls(request.method, url, response.status_code, response.headers, content)

    def json(self) -> Any:
        """The body parsed as JSON, None if it is empty; PermanentError for other bodies."""
        if not self.content:
            return None
        try:
            return read_json(self.content)
        except ValueError:
            raise PermanentError(
                f"{self.url} answered {self.status} with something that is no JSON",
                hint="Check that Callslip has this address, and what stands before it.",
            ) from None


def checked_size(size: int) -> int:
    """Return the number of bytes; raise PermanentError if it is over LARGEST_BODY."""
    if size > LARGEST_BODY:
        raise PermanentError(f"the answer is larger than {LARGEST_BODY} bytes")
    return size


def read_json(text: str | bytes) -> Any:
    """Parse JSON; raise ValueError if it is malformed, or nested deeper than Python reads."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("nested too deep") from None


def error_in(reply: Reply) -> CallslipError:
    """The error of a problem document (RFC 9457), or one chosen by the status alone."""
    try:
        error = error_of(read_json(reply.content))
    except (ValueError, KeyError, TypeError, AttributeError):
        error = _without_problem(reply)
    wait = _retry_after(reply.headers.get("Retry-After"))
    if wait is not None:
        error.retry_after = wait
    return error


def _without_problem(reply: Reply) -> CallslipError:
    message = f"{reply.url} answered {reply.status}"
    if reply.status == _BUSY:
        return Overloaded(message)
    if reply.status in _AWAY:
        return ServerDown(message)
    return PermanentError(
        message, hint="This is no answer of Callslip: check the address and what stands before it."
    )


def _retry_after(header: str | None) -> float | None:
    """Parse a Retry-After header, a number or a date, to seconds (RFC 9110, 10.2.3)."""
    if header is None:
        return None
    try:
        seconds = float(header)
        return max(0.0, seconds) if isfinite(seconds) else None
    except ValueError:
        pass
    try:
        at = parsedate_to_datetime(header)
        return max(0.0, (at - datetime.now(UTC)).total_seconds()) if at.tzinfo else None
    except (ValueError, TypeError, OverflowError):
        return None


@contextmanager
def server_down_on_failure(url: str) -> Iterator[None]:
    """Raise ServerDown if a request to `url` fails in the network."""
    try:
        yield
    except httpx.RequestError as error:
        raise ServerDown(f"no answer from {url}: {_in_words(error)}") from error


def _in_words(error: httpx.RequestError) -> str:
    """The reason of a failed request, with the operating system's words for it."""
    if isinstance(error, httpx.TimeoutException):
        return "it took too long"
    cause = "it cannot be reached" if isinstance(error, httpx.ConnectError) else "it broke off"
    words = re.sub(r"^\[Errno -?\d+\] ", "", str(error)).rstrip(".")
    return f"{cause} ({words[:1].lower()}{words[1:]})" if words else cause


def parse_answer(kind: type[T], value: Any, what: str) -> T:
    """Validate parsed JSON as a model; `what` names the request in the error.

    Raises PermanentError, whose text has no value of the response, if validation fails.
    """
    try:
        return read(kind, value)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        where = ".".join(map(str, first["loc"])) or "it"
        raise PermanentError(
            f"the answer to {what} is not understood: {where}: {first['msg']}",
            hint="Server and client may be of different versions: install those that fit.",
        ) from None


def parse_line(kind: type[T], line: str, what: str) -> T:
    """Parse and validate a line of JSON Lines; raise PermanentError if it is malformed."""
    try:
        value = read_json(line)
    except ValueError:
        raise PermanentError(f"a line of {what} is no JSON") from None
    return parse_answer(kind, value, what)
