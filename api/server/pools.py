"""The threads of a worker: each kind of requests has its own, and a bound on those that wait."""

import math
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from gunicorn.http.message import Request

from callslip.api.server.connection import Connection
from callslip.errors import BacklogFull, CallslipError, Overloaded

PROBE = "/healthz"
"""Its path has a thread of its own: a server with too much work is alive."""

UPLOADS = "/documents"
"""Paths to which documents are sent end so. They have threads of their own: searches do not wait
for those that wait for the disk, for the ledger's lock, or for their turn to compute."""

UPLOAD_THREADS, MOST_UPLOADS = 2, 100
"""How many a process answers at a time, and how many may wait for it."""


@dataclass
class Pool:
    """Threads for one kind of requests. Only the thread of the poller counts."""

    executor: Callable[[], ThreadPoolExecutor]
    most: float
    refusal: CallslipError
    """The error of a request that is one too many."""
    count: int = 0
    """Requests that have a thread or wait for one."""

    @property
    def is_full(self) -> bool:
        """Whether no more requests may wait."""
        return self.count >= self.most

    def submit(self, task: Callable[[Connection], bool], connection: Connection) -> "Future[bool]":
        """Let a thread run the task."""
        self.count += 1
        return self.executor().submit(task, connection)


class Pools:
    """The threads of all kinds of requests."""

    def __init__(self, executor: Callable[[], ThreadPoolExecutor], connections: int) -> None:
        """`executor` returns gunicorn's threads, which a worker makes after its fork."""
        probes, uploads = ThreadPoolExecutor(1), ThreadPoolExecutor(UPLOAD_THREADS)
        overloaded = Overloaded("too many requests wait for a thread")
        full = BacklogFull("too many documents arrive at once")
        self.requests = Pool(executor, connections // 2 + 1, overloaded)
        self.probes = Pool(lambda: probes, math.inf, overloaded)
        self.uploads = Pool(lambda: uploads, MOST_UPLOADS, full)

    def of(self, request: Request) -> Pool:
        """The threads for a request."""
        if request.method == "POST" and request.path.endswith(UPLOADS):
            return self.uploads
        return self.probes if request.path == PROBE else self.requests
