"""A gunicorn worker that gives a thread only to requests that have arrived.

Gunicorn's threads read headers and bodies and write responses themselves, so as many slow clients
as there are threads stop the server. Here the thread of the poller does that, with deadlines:
`api.header_seconds` for the headers, and `api.min_rate` for bodies and for the reader of a
response. Before a large body is received, or one that the client holds back, a thread checks the
headers; a refused request gets its response, and the connection ends. If `api.connections` are
open, a new one closes those whose deadlines are nearest.
"""

import heapq
import resource
import selectors
import socket
import sys
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from functools import partial

from gunicorn.http.body import LengthReader
from gunicorn.http.message import Request
from gunicorn.http.unreader import IterUnreader

from callslip.api.http.access import refused_unseen
from callslip.api.http.admission import LARGEST_PUBLIC, pause
from callslip.api.http.problems import problem
from callslip.api.server.answering import AnsweringWorker
from callslip.api.server.body import IN_MEMORY, Body, BrokenChunks
from callslip.api.server.connection import Connection, Phase
from callslip.api.server.head import fault_of
from callslip.api.server.outgoing import Outgoing
from callslip.api.server.pace import Pace
from callslip.api.server.pools import UPLOAD_THREADS, Pool, Pools
from callslip.config import get_settings
from callslip.errors import (
    CallslipError,
    DiskFull,
    FileTooLarge,
    InvalidRequest,
)

BLOCK = 1 << 18
"""Bytes of one read."""

BODIES = 10
"""Bodies of the largest size that one process stores while they arrive."""

END_SECONDS, MOST_DISCARDED = 1.0, 1 << 20
"""After the last response the client's data is discarded for this time and up to this size: closed
at once, the connection could lose the response before the client has read it."""

CHECK_SECONDS = 0.25
"""Between two looks at the deadlines."""

ADVICE = (
    "Send requests whole, without long pauses; api.header_seconds and api.min_rate set how long."
)

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class Worker(AnsweringWorker):
    """The worker of the module's docstring."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)
        self._settings = get_settings().api
        self._connections: set[Connection] = set()
        self._stored = 0
        """Bytes of the bodies that are arriving."""
        self._pools = Pools(lambda: self.tpool, self.worker_connections)
        self._next_check = 0.0

    def init_process(self) -> None:
        """Allow the files that the connections need: each has a socket, a body and a response.

        Threads that compute let the poller's thread go on after 1 ms, not 5: it waits for each of
        them after each system call.
        """
        sys.setswitchinterval(0.001)
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        needed = 3 * self.worker_connections + 1000
        most = needed if hard == resource.RLIM_INFINITY else min(hard, needed)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, most), hard))
        super().init_process()

    def accept(self, listener: socket.socket) -> None:
        """Accept a connection and wait for its headers."""
        try:
            raw, client = listener.accept()
        except (BlockingIOError, ConnectionAbortedError):
            return
        except OSError as error:  # too many open files
            self.log.warning("no connection can be accepted: %s", error)
            self._close_slowest()
            return
        raw.setblocking(False)
        sock = Outgoing(raw, self._pace, lambda: self.method_queue.defer(self._flush, connection))
        deadline = time.monotonic() + self._settings.header_seconds
        connection = Connection(raw, client, listener.getsockname(), sock, deadline)
        self._connections.add(connection)
        self.nr_conns += 1
        self._watch(connection, selectors.EVENT_READ)
        if self.nr_conns >= self.worker_connections:
            self._close_slowest()

    def murder_keepalived(self, force: bool = False) -> None:
        """Close the connections whose deadlines have passed, with `force` also the idle ones."""
        now = time.monotonic()
        if not force and now < self._next_check:
            return
        self._next_check = now + CHECK_SECONDS
        for connection in list(self._connections):
            until = connection.until
            if (until is not None and until <= now) or (force and connection.idle):
                self._expire(connection)

    def _cap_keepalive(self, deadline: float) -> None:
        for connection in self._connections:
            if connection.idle:
                connection.deadline = min(connection.deadline, deadline)

    def _watch(self, connection: Connection, events: int) -> None:
        if events == connection.events:
            return
        if not events:
            self.poller.unregister(connection.raw)
        else:
            change = self.poller.modify if connection.events else self.poller.register
            ready = self._flush if events == selectors.EVENT_WRITE else self._receive
            change(connection.raw, events, lambda _: ready(connection))
        connection.events = events

    def _receive(self, connection: Connection) -> None:
        if connection not in self._connections:
            return  # closed by an event of the same turn
        try:
            data = connection.raw.recv(BLOCK)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            data = b""
        if connection.phase is Phase.END:
            connection.discarded += len(data)
        if not data or connection.discarded > MOST_DISCARDED:
            self._close(connection)
        elif connection.phase is Phase.HEADERS:
            if not connection.received:
                connection.deadline = time.monotonic() + self._settings.header_seconds
            connection.received += data
            self._read_headers(connection)
        elif connection.phase is Phase.BODY:
            connection.received += data
            self._read_body(connection, len(data))

    def _read_headers(self, connection: Connection) -> None:
        try:
            headers = connection.take_headers(self.cfg.limit_request_line)
            if headers is None:
                self._watch(connection, selectors.EVENT_READ)
                return
            connection.requests += 1
            unreader = IterUnreader([headers])
            request = Request(self.cfg, unreader, connection.client, connection.requests)
        except Exception as error:
            self._refuse(connection, *self.fault(error))
            return
        if fault := fault_of(request):
            self._refuse(connection, InvalidRequest(f"the request {fault}"))
            return
        reader = request.body.reader
        length = reader.length if isinstance(reader, LengthReader) else None
        connection.request, connection.body = request, Body(length)
        awaited = request._expected_100_continue
        request._expected_100_continue = False
        if self._is_complete(connection):
            self._answer(connection)
        elif connection.phase is Phase.HEADERS:
            if awaited or length is None or length > min(IN_MEMORY, LARGEST_PUBLIC):
                self._work(connection, self.check, partial(self._checked, awaited=awaited))
            else:
                self._receive_body(connection)

    def _checked(self, connection: Connection, future: "Future[bool]", *, awaited: bool) -> None:
        try:
            accepted = future.result()
            if awaited and accepted:
                connection.sock.sendall(CONTINUE)
        except OSError:
            accepted = False
        except Exception:
            self.log.exception("the check of the headers failed")
            accepted = False
        if not accepted:
            self._end(connection, reusable=False)
            return
        connection.is_checked = True
        self._receive_body(connection)

    def _receive_body(self, connection: Connection) -> None:
        connection.phase, connection.pace = Phase.BODY, self._pace()
        connection.deadline = connection.pace.deadline
        self._watch(connection, selectors.EVENT_READ)

    def _read_body(self, connection: Connection, count: int) -> None:
        if self._is_complete(connection):
            self._answer(connection)
        elif connection.phase is Phase.BODY and connection.pace:
            connection.pace.moved(count, time.monotonic())
            connection.deadline = connection.pace.deadline
            if self._stored > BODIES * self._largest_body:
                self._close_slowest(Phase.BODY)

    def _is_complete(self, connection: Connection) -> bool:
        """Whether the body is, with what was received; a body that cannot be is refused."""
        body = connection.body
        if body is None:
            return False
        before = body.size
        try:
            complete = body.feed(connection.received)
        except BrokenChunks as error:
            broken = InvalidRequest(f"the body is not sent in sound chunks: {error}")
            self._refuse(connection, broken)
        except OSError as error:
            self.log.error("a body cannot be stored: %s", error)
            self._refuse(connection, DiskFull("the server has no room for the body"))
        else:
            self._stored += body.size - before
            if body.size <= self._largest_body:
                return complete
            too_large = FileTooLarge(f"the request is larger than {self._largest_body} bytes")
            self._refuse(connection, too_large)
        return False

    def _answer(self, connection: Connection) -> None:
        request, body = connection.request, connection.body
        if body is not None:
            body.file.seek(0)
            if not isinstance(request.body.reader, LengthReader):  # RFC 9112, section 7.1.3
                sent = [header for header in request.headers if header[0] != "TRANSFER-ENCODING"]
                request.headers = [*sent, ("CONTENT-LENGTH", str(body.size))]
            request.body = body.file
        self._work(connection, self.handle, self._answered)

    def _answered(self, connection: Connection, future: "Future[bool]") -> None:
        self._end(connection, reusable=not future.exception() and future.result())

    def _work(
        self,
        connection: Connection,
        task: Callable[[Connection], bool],
        done: Callable[[Connection, "Future[bool]"], None],
    ) -> None:
        """Let a thread run the task, then the poller's thread `done`."""
        pool = self._pools.of(connection.request)
        if pool.is_full:
            self._refuse(connection, pool.refusal)
            return
        connection.phase = Phase.THREAD
        self._watch(connection, 0)
        run = partial(self._paced, task) if pool is self._pools.uploads else task
        future = pool.submit(run, connection)
        worked = partial(self.method_queue.defer, self._worked, pool, done, connection)
        future.add_done_callback(worked)

    def _worked(
        self,
        pool: Pool,
        done: Callable[[Connection, "Future[bool]"], None],
        connection: Connection,
        future: "Future[bool]",
    ) -> None:
        pool.count -= 1
        done(connection, future)

    def _paced(self, task: Callable[[Connection], bool], connection: Connection) -> bool:
        """Work on an upload; then pause where documents wait, so that their ingestion goes on."""
        began = time.monotonic()
        try:
            return task(connection)
        finally:
            busy = time.monotonic() - began
            if self.alive:
                time.sleep(pause(self.wsgi, busy, UPLOAD_THREADS * self.cfg.workers))

    def _refuse(
        self, connection: Connection, error: CallslipError, status: int | None = None
    ) -> None:
        """Answer a request that no thread has seen, and end the connection."""
        response = problem(error, status=status)
        refused_unseen(self.wsgi, response)
        with suppress(OSError):
            connection.sock.sendall(self.raw(response))
        self._end(connection, reusable=False)

    def _end(self, connection: Connection, *, reusable: bool) -> None:
        """End a request: what the client has not read of the response remains to be sent."""
        self._release(connection)
        connection.phase = Phase.READER
        connection.reusable = reusable and self.alive
        self._flush(connection)

    def _flush(self, connection: Connection) -> None:
        """Send what waits for the client; after the whole response begin the next request."""
        if connection not in self._connections:
            return
        try:
            left = connection.sock.flush()
        except OSError:
            self._expire(connection)
            return
        if left:
            self._watch(connection, selectors.EVENT_WRITE)
        elif connection.phase is Phase.THREAD:
            self._watch(connection, 0)
        elif connection.phase is Phase.READER:
            self._begin_next(connection)

    def _begin_next(self, connection: Connection) -> None:
        now = time.monotonic()
        if connection.sock.aborted:
            self._close(connection)
        elif connection.reusable:
            api = self._settings
            seconds = api.header_seconds if connection.received else api.keep_alive_seconds
            connection.phase, connection.deadline = Phase.HEADERS, now + seconds
            self._read_headers(connection)
        else:
            with suppress(OSError):
                connection.raw.shutdown(socket.SHUT_WR)
            connection.phase, connection.deadline = Phase.END, now + END_SECONDS
            self._watch(connection, selectors.EVENT_READ)

    def _expire(self, connection: Connection) -> None:
        """Close a connection that is too slow; a request that has begun to arrive gets a 408."""
        if connection.phase is Phase.THREAD:
            connection.sock.abort()  # its thread notices, then the connection is closed
            self._watch(connection, 0)
        elif connection.phase is Phase.BODY or (
            connection.phase is Phase.HEADERS and connection.received
        ):
            late = InvalidRequest("the request did not arrive in time", hint=ADVICE)
            self._refuse(connection, late, 408)
        else:
            self._close(connection)

    def _close_slowest(self, phase: Phase | None = None) -> None:
        """Close the fiftieth part of the connections, those whose deadlines are nearest."""
        closable = [
            (until, id(connection), connection)
            for connection in self._connections
            if connection.phase is not Phase.THREAD
            and phase in (None, connection.phase)
            and (until := connection.until) is not None
        ]
        for _, _, connection in heapq.nsmallest(1 + len(closable) // 50, closable):
            self._close(connection)

    def _close(self, connection: Connection) -> None:
        self._connections.discard(connection)
        self.nr_conns -= 1
        self._watch(connection, 0)
        self._release(connection)
        connection.sock.close()
        connection.raw.close()

    def _release(self, connection: Connection) -> None:
        if connection.body is not None:
            self._stored -= connection.body.size
            with suppress(OSError):
                connection.body.file.close()
        connection.request = connection.body = connection.pace = None
        connection.is_checked = False

    def _pace(self) -> Pace:
        return Pace(self._settings.stall_seconds, self._settings.min_rate, time.monotonic())

    @property
    def _largest_body(self) -> int:
        largest: int = self.wsgi.config["MAX_CONTENT_LENGTH"]
        return largest
