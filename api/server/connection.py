"""A connection of a client: what arrived, what is to be sent, and until when it may take."""

import socket
from enum import Enum
from typing import Any

from gunicorn.http.errors import LimitRequestLine, ParseException

from callslip.api.server.body import Body
from callslip.api.server.outgoing import Outgoing
from callslip.api.server.pace import Pace

END_OF_HEADERS = b"\r\n\r\n"

LONGEST_HEADERS = 1 << 17
"""Bytes of the first line and all headers of a request."""


class HeadersTooLong(ParseException):
    """The first line and the headers have more than LONGEST_HEADERS bytes."""


class Phase(Enum):
    """What a connection waits for."""

    HEADERS = "the headers of the first request, or of the next one"
    BODY = "the body of a request"
    THREAD = "a thread that works on its request"
    READER = "the client, which has not read the response"
    END = "the client, which has not closed its side"


class Connection:
    """A connection; only the thread of the poller changes it. Gunicorn reads the first three."""

    def __init__(
        self, raw: socket.socket, client: Any, server: Any, sock: Outgoing, deadline: float
    ) -> None:
        """`raw` does not block; `sock` sends on it."""
        self.client, self.server, self.sock = client, server, sock
        self.raw = raw
        self.phase = Phase.HEADERS
        self.deadline = deadline
        """The end of the phases HEADERS, BODY and END; the response has a pace of its own."""
        self.received = bytearray()
        self.requests = 0
        self.request: Any = None
        self.body: Body | None = None
        self.is_checked = False
        """Whether the app has checked the headers of the request."""
        self.pace: Pace | None = None
        """The pace of the body."""
        self.reusable = False
        """Whether another request can follow the response."""
        self.discarded = 0
        self.events = 0
        """What the poller watches, as a mask of `selectors`."""
        self._searched = 0

    @property
    def idle(self) -> bool:
        """Whether no byte of a request has arrived."""
        return self.phase is Phase.HEADERS and not self.received

    @property
    def until(self) -> float | None:
        """When the connection is closed, if nothing moves until then; None: a thread has it."""
        if self.phase in (Phase.THREAD, Phase.READER):
            pace = self.sock.pace
            return pace.deadline if pace else None
        return self.deadline

    def take_headers(self, longest_line: int) -> bytes | None:
        """Remove the headers of a request from `received`; None if they are not complete.

        Raises HeadersTooLong, or LimitRequestLine if already their first line is too long.
        """
        end = self.received.find(END_OF_HEADERS, max(0, self._searched - 3))
        size = len(self.received) if end < 0 else end + len(END_OF_HEADERS)
        if size > LONGEST_HEADERS:
            line = self.received.find(b"\r\n")
            raise HeadersTooLong if 0 <= line <= longest_line else LimitRequestLine(size)
        if end < 0:
            self._searched = size
            return None
        headers = bytes(self.received[:size])
        del self.received[:size]
        self._searched = 0
        return headers
