"""Requests and answers of the desk as they are written: paths, the key, errors, events."""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from math import isfinite
from typing import Any, TypeVar
from urllib.parse import quote, urlsplit

import httpx
from pydantic import BaseModel, SecretStr, ValidationError

from callslip.errors import (
    CallslipError,
    DeskDown,
    InvalidRequest,
    Overloaded,
    PermanentError,
)
from callslip.problems import error_of

URL = "http://127.0.0.1:8765"
URL_VARIABLE, KEY_VARIABLE = "CALLSLIP_API__URL", "CALLSLIP_API__KEY"

KEEPALIVE_SECONDS = 1.0
"""An idle connection is given up sooner than gunicorn closes it, after 2 s by default."""

EVENT_STREAM = "text/event-stream"
LINES = "application/x-ndjson"

LARGEST_BODY = 256 * 1024 * 1024
"""In bytes, as it is once it is unpacked: of an answer that is read whole."""

LARGEST_EVENT = 64 * 1024 * 1024
"""In characters."""

LONGEST_ID = 1024
"""Characters of an event's id; servers refuse long headers."""

_REPEATABLE = frozenset({"GET", "HEAD", "PUT", "DELETE"})

_BUSY, _AWAY = 429, frozenset({502, 503, 504})
"""Statuses of what stands before the desk, where their body is no problem."""

T = TypeVar("T", bound=BaseModel)


@dataclass(frozen=True)
class Place:
    """Where a desk is."""

    url: str
    key: str | None = field(repr=False)

    @classmethod
    def of(cls, url: str | None, key: str | SecretStr | None) -> "Place":
        """InvalidRequest where it is no URL or no key. Without a URL the environment says both."""
        if url is None:
            url = os.environ.get(URL_VARIABLE) or URL
            key = key or os.environ.get(KEY_VARIABLE)
        return cls(_checked_url(url), checked_key(key))

    def sign(self, request: httpx.Request) -> httpx.Request:
        """The request with the key."""
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
        raise InvalidRequest(f"{url!r} is no address of a desk", hint=f"For example {URL}.")
    return url.rstrip("/")


def checked_key(key: str | SecretStr | None) -> str | None:
    """The key as it is sent; InvalidRequest, without the key, where no header can carry it."""
    text = key.get_secret_value() if isinstance(key, SecretStr) else key
    text = (text or "").strip()
    if not (text.isascii() and text.isprintable()):
        raise InvalidRequest("the key has a character that no header can carry")
    return text or None


def path_of(template: str, **names: str) -> str:
    """A path with its names in it; InvalidRequest where one is empty or leads elsewhere."""
    for name, value in names.items():
        if not isinstance(value, str) or not value:
            raise InvalidRequest(f"{name} is {'empty' if value == '' else 'no text'}")
    try:
        quoted = {name: quote(value, safe="") for name, value in names.items()}
    except UnicodeEncodeError as error:
        raise InvalidRequest(f"a name in {template!r} is not valid Unicode") from error
    return checked_path(template.format(**quoted))


def checked_path(path: str) -> str:
    """InvalidRequest where the path leads elsewhere: httpx takes `.` and `..` out of it."""
    if not path.startswith("/"):
        raise InvalidRequest(f"the path {path!r} does not begin with '/'")
    if {".", ".."} & set(path.partition("?")[0].split("/")):
        raise InvalidRequest(f"a name in {path!r} is '.' or '..'", hint="Send another name.")
    return path


def given(**values: Any) -> dict[str, Any]:
    """The values that are not None; the rest is left to the desk."""
    return {name: plain(value) for name, value in values.items() if value is not None}


def plain(value: Any) -> Any:
    """As JSON has it: of a model what was set, so that the desk's defaults hold for the rest."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", exclude_unset=True)
    return dict(value) if isinstance(value, Mapping) else value


def written(value: Any) -> str:
    """A value as JSON; InvalidRequest where JSON cannot say it."""
    try:
        return json.dumps(plain(value), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidRequest(f"the request cannot be written: {error}") from None


def read_json(text: str | bytes) -> Any:
    """What JSON says; ValueError where it is none, or nested deeper than Python reads."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("nested too deep") from None


def request_to(
    http: httpx.Client | httpx.AsyncClient, place: Place, method: str, path: str, **sent: Any
) -> httpx.Request:
    """A request for a path of the desk; InvalidRequest where it cannot be written."""
    try:
        return http.build_request(method, place.url + checked_path(path), **sent)
    except UnicodeEncodeError:
        raise InvalidRequest("a text of the request is not valid Unicode") from None
    except (TypeError, ValueError, RecursionError, httpx.InvalidURL) as error:
        raise InvalidRequest(f"the request cannot be written: {error}") from None


def repeatable(method: str, said: bool | None) -> bool:
    """Whether a request may be sent twice: as was said, else by its method (RFC 9110, 9.2.2)."""
    return method in _REPEATABLE if said is None else said


@dataclass(frozen=True)
class Reply:
    """An answer that was read whole."""

    method: str
    url: str
    status: int
    headers: Mapping[str, str]
    content: bytes

    @classmethod
    def of(cls, response: httpx.Response, content: bytes) -> "Reply":
        """A response whose body was read."""
        request = response.request
        url = str(request.url.copy_with(query=None))
        return cls(request.method, url, response.status_code, response.headers, content)

    def json(self) -> Any:
        """Its JSON, null where it is empty; PermanentError where it is something else."""
        if not self.content:
            return None
        try:
            return read_json(self.content)
        except ValueError:
            raise PermanentError(
                f"{self.url} answered {self.status} with something that is no JSON",
                hint="Check that this is the address of a desk, and what stands before it.",
            ) from None


def checked_size(size: int) -> int:
    """The bytes of an answer so far; PermanentError where they are too many."""
    if size > LARGEST_BODY:
        raise PermanentError(f"the answer is larger than {LARGEST_BODY} bytes")
    return size


def error_in(reply: Reply) -> CallslipError:
    """The error that an answer describes (RFC 9457), else what its status says of it."""
    try:
        error = error_of(read_json(reply.content))
    except (ValueError, KeyError, TypeError, AttributeError):
        error = _without_problem(reply)
    wait = _retry_after(reply.headers.get("Retry-After"))
    if wait is not None:
        error.retry_after = wait
    return error


def _without_problem(reply: Reply) -> CallslipError:
    told = f"{reply.url} answered {reply.status}"
    if reply.status == _BUSY:
        return Overloaded(told)
    if reply.status in _AWAY:
        return DeskDown(told)
    return PermanentError(
        told, hint="This is no answer of a desk: check the address and what stands before it."
    )


def _retry_after(header: str | None) -> float | None:
    """Seconds, of a number or a date (RFC 9110, 10.2.3)."""
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
def reaching(url: str) -> Iterator[None]:
    """DeskDown where no answer comes from there."""
    try:
        yield
    except httpx.RequestError as error:
        raise DeskDown(f"no answer from {url}: {type(error).__name__}") from error


@contextmanager
def while_open(http: httpx.Client | httpx.AsyncClient) -> Iterator[None]:
    """PermanentError where the client was closed."""
    try:
        yield
    except RuntimeError as error:
        if not http.is_closed:
            raise
        raise PermanentError(
            "the client is closed", hint="Make a new one, or call it within its `with`."
        ) from error


def understood(kind: type[T], told: Any, what: str) -> T:
    """An answer as its model; PermanentError, without what it says, where it is none."""
    try:
        return kind.model_validate(told)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        where = ".".join(map(str, first["loc"])) or "it"
        raise PermanentError(
            f"the answer to {what} is not understood: {where}: {first['msg']}",
            hint="The desk and this client may be of different versions: install those that fit.",
        ) from None


def understood_line(kind: type[T], line: str, what: str) -> T:
    """A line of JSON as its model; an error that ends the lines is raised."""
    try:
        told = read_json(line)
    except ValueError:
        raise PermanentError(f"a line of {what} is no JSON") from None
    return understood(kind, told, what)


def line_of(line: BaseModel | str) -> str:
    """A line of JSON with its end."""
    written = line if isinstance(line, str) else line.model_dump_json()
    return written.rstrip("\n") + "\n"


@dataclass(frozen=True)
class ServerEvent:
    """One of the server-sent events."""

    kind: str
    data: str
    event_id: str | None

    def json(self) -> Any:
        """Its data; PermanentError where that is no JSON."""
        try:
            return read_json(self.data)
        except ValueError:
            raise PermanentError(f"the event {self.kind!r} holds no JSON") from None


@dataclass
class EventReader:
    """Server-sent events out of lines (https://html.spec.whatwg.org/#parsing-an-event-stream)."""

    retry_seconds: float = 2.0
    _kind: str = ""
    _data: list[str] = field(default_factory=list)
    _size: int = 0
    _id: str | None = None

    def read(self, line: str) -> ServerEvent | None:
        """The event that ends with this line."""
        if not line:
            return self._ended()
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "event":
            self._kind = value
        elif name == "data":
            self._size += len(value) + 1
            if self._size > LARGEST_EVENT:
                raise PermanentError(f"an event is longer than {LARGEST_EVENT} characters")
            self._data.append(value)
        elif name == "id" and _can_be_sent_back(value):
            self._id = value
        elif name == "retry" and value.isascii() and value.isdigit():
            self.retry_seconds = float(value) / 1000
        return None

    def _ended(self) -> ServerEvent | None:
        kind, data = self._kind or "message", self._data
        self._kind, self._data, self._size = "", [], 0
        return ServerEvent(kind, "\n".join(data), self._id) if data else None


def _can_be_sent_back(event_id: str) -> bool:
    """Whether a header can carry it, as Last-Event-ID; others are no ids."""
    fits = event_id.isascii() and event_id.isprintable() and event_id == event_id.strip()
    return fits and len(event_id) <= LONGEST_ID


def error_of_event(event: ServerEvent) -> CallslipError:
    """The error that ends a stream."""
    try:
        return error_of(event.json())
    except (KeyError, TypeError, AttributeError):
        return PermanentError("the stream ended with an error that is no problem")
