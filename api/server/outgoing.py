"""The response to a client that may read slowly: no thread waits until the client has read it."""

import socket
import threading
import time
from collections.abc import Callable
from tempfile import SpooledTemporaryFile

from callslip.api.server.body import IN_MEMORY
from callslip.api.server.pace import Pace

BLOCK = 1 << 18

MOST = 1 << 26
"""Bytes that wait for a client; a thread with more waits too, until the deadline of `pace`."""


class Outgoing:
    """What gunicorn writes a response to. It stores what the client has not read.

    A thread calls `sendall`; the thread of the poller calls all other methods.
    """

    def __init__(
        self, connection: socket.socket, pace: Callable[[], Pace], wake: Callable[[], None]
    ) -> None:
        """`wake` lets the poller call `flush`; `connection` does not block."""
        self._connection, self._new_pace, self._wake = connection, pace, wake
        self._room = threading.Condition()
        self._file: SpooledTemporaryFile[bytes] | None = None
        self._read = self._written = 0
        self.aborted = False
        """Whether the response broke off."""
        self.pace: Pace | None = None
        """The pace of the client's reading, if data waits for it."""

    def sendall(self, data: bytes) -> None:
        """Send or store the data; raise OSError if the connection is closed."""
        with self._room:
            if self.aborted:
                raise BrokenPipeError
            sent = 0 if self.pace else self._send(data)
            if sent == len(data):
                return
            if self._file is None:
                self._file = SpooledTemporaryFile(IN_MEMORY)  # noqa: SIM115
            self._file.seek(self._written)
            self._written += self._file.write(memoryview(data)[sent:])
            if self.pace is None:
                self.pace = self._new_pace()
                self._wake()
            while self._written - self._read > MOST and not self.aborted:
                self._room.wait()

    def flush(self) -> bool:
        """Send stored data; return whether some is left. Raise OSError for a closed connection."""
        with self._room:
            if self.pace is None or self._file is None:
                return False
            self._file.seek(self._read)
            sent = self._send(self._file.read(BLOCK))
            self._read += sent
            self.pace.moved(sent, time.monotonic())
            if self._read == self._written:
                self._file.seek(0)
                self._file.truncate()
                self._read = self._written = 0
                self.pace = None
            self._room.notify_all()
            return self.pace is not None

    def abort(self) -> None:
        """Let a thread that writes stop; nothing more is sent."""
        with self._room:
            self.aborted = True
            self._room.notify_all()

    def gettimeout(self) -> float:
        """Gunicorn's question before it writes an error: `sendall` does not block."""
        return 0.0

    def shutdown(self, _: int) -> None:
        """Gunicorn's, after a response that broke off; the poller closes the connection."""
        raise OSError

    def close(self) -> None:
        """Remove what was stored. Gunicorn calls it too, after `shutdown`."""
        with self._room:
            self.aborted = True
            if self._file is not None:
                self._file.close()
                self._file = None

    def _send(self, data: bytes) -> int:
        try:
            return self._connection.send(data)
        except (BlockingIOError, InterruptedError):
            return 0
