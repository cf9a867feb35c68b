"""Server-sent events: the reader that makes them of lines, and the error that ends a stream."""

from dataclasses import dataclass, field
from typing import Any

from callslip.client.responses import read_json
from callslip.errors import CallslipError, PermanentError
from callslip.problems import error_of

EVENT_STREAM = "text/event-stream"

LARGEST_EVENT = 64 * 1024 * 1024
"""The most characters of the data of an event."""

LONGEST_ID = 1024
"""The most characters of an event's id; servers refuse long headers."""


@dataclass(frozen=True)
class ServerEvent:
    """A server-sent event: its type, its data, and the last id that the stream sent."""

    kind: str
    data: str
    event_id: str | None

    def json(self) -> Any:
        """Parse the data as JSON; raise PermanentError if it is malformed."""
        try:
            return read_json(self.data)
        except ValueError:
            raise PermanentError(f"the event {self.kind!r} holds no JSON") from None


@dataclass
class EventReader:
    """Parses lines to server-sent events (https://html.spec.whatwg.org/#parsing-an-event-stream)."""

    retry_seconds: float = 2.0
    _kind: str = ""
    _data: list[str] = field(default_factory=list)
    _size: int = 0
    _id: str | None = None

    def read(self, line: str) -> ServerEvent | None:
        """Add a line; return the event that an empty line completes, else None."""
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
    """Whether the header Last-Event-ID can carry the id; the reader ignores other ids."""
    fits = event_id.isascii() and event_id.isprintable() and event_id == event_id.strip()
    return fits and len(event_id) <= LONGEST_ID


def error_of_event(event: ServerEvent) -> CallslipError:
    """The error in an event of the type `error`, which ends a stream."""
    try:
        return error_of(event.json())
    except (KeyError, TypeError, AttributeError):
        return PermanentError("the stream ended with an error that is no problem")
