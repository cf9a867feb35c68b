"""Starts parts as forks of one process that has imported Callslip, on Linux.

The forks share the memory of what that process has loaded, and need not import it again.
`callslip.workers.fork_server` is the program of the process. It is ready when it has imported the
modules, and then forks the parts that need nothing else. A request makes it load the rest, which
takes half as long again; meanwhile it forks nothing.
"""

import ctypes
import json
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

ANSWER_SECONDS = 10.0
"""Seconds within which the fork server answers a request; a fork takes milliseconds."""

LOAD_SECONDS = 300.0
"""Seconds within which the fork server loads the rest."""

READY, LOADED = b"ready\n", b"loaded\n"
LOAD = {"load": True}
"""The request to load the rest; the answer is LOADED."""

_PR_SET_CHILD_SUBREAPER = 36


def is_supported() -> bool:
    """Whether the system can fork a process with loaded libraries; macOS's own break."""
    return sys.platform == "linux"


class Forked:
    """A process that the fork server made, with the methods of `subprocess.Popen`."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._code: int | None = None

    def poll(self) -> int | None:
        """Return the exit code, negative for a signal; None while the process runs."""
        if self._code is None:
            try:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
            except ChildProcessError:
                pid, status = self.pid, 0  # another part of this process has waited for it
            if pid:
                self._code = os.waitstatus_to_exitcode(status)
        return self._code

    def terminate(self) -> None:
        self._send(signal.SIGTERM)

    def kill(self) -> None:
        self._send(signal.SIGKILL)

    def _send(self, number: signal.Signals) -> None:
        if self.poll() is None:  # else another process may have the id
            os.kill(self.pid, number)


class Forks:
    """The connection to a fork server, whose forks become children of this process.

    Call all methods except `is_open` from one thread.
    """

    def __init__(self) -> None:
        self._ours: socket.socket | None = None
        self._ready = self._loaded = False
        self._requested_at = 0.0

    def connect(self) -> socket.socket:
        """Return the standard input of a new fork server, which replaces the one before.

        From now on this process adopts the children of its children when their parents end.
        """
        _adopt_orphans(adopt=True)
        self._close()
        self._ours, theirs = socket.socketpair()
        self._ours.settimeout(ANSWER_SECONDS)
        return theirs

    def is_ready(self) -> bool:
        """Whether the fork server has imported the modules."""
        self._ready = self._ready or self._says(READY)
        return self._ready

    def may_fork(self, *, early: bool) -> bool:
        """Whether the fork server can fork a part now; `early`: one that only needs the modules."""
        if not self._requested_at:
            return early and self.is_ready()
        self._loaded = self._loaded or self._says(LOADED)
        if not self._loaded and time.monotonic() - self._requested_at > LOAD_SECONDS:
            self._close()
        return self._loaded

    def wait(self, seconds: float) -> None:
        """Wait until the fork server says that it is ready or has loaded, at most `seconds`."""
        awaited = [] if self._ours is None or self._loaded else [self._ours]
        select.select(awaited, [], [], seconds)

    def load(self) -> None:
        """Request that a ready fork server loads the rest, once."""
        if self._ours and self._ready and not self._requested_at:
            self._requested_at = time.monotonic()
            with suppress(OSError):  # then it has ended
                self._send(LOAD)

    def is_open(self) -> bool:
        """Whether the fork server has answered each request in time."""
        return self._ours is not None

    def spawn(
        self,
        argv: Sequence[str],
        env: Mapping[str, str],
        cwd: Path | None,
        log: Path,
        name: str,
    ) -> Forked:
        """Run the module of a command line (`python -m MODULE …`) in a fork.

        The fork leads a process group, and appends its output to a log. Raises OSError if the fork
        server does not answer; its connection is closed then, which ends it.
        """
        if self._ours is None:
            raise OSError("the fork server does not answer")
        request = {
            "argv": argv[2:],
            "env": dict(env),
            "cwd": str(cwd or Path.cwd()),
            "log": str(log.absolute()),
            "name": name,
        }
        try:
            self._send(request)
            answer = self._ours.recv(20)
        except OSError:
            answer = b""
        if not answer:
            self._close()
            raise OSError("the fork server does not answer")
        return Forked(int(answer))

    def reap(self, parts: Collection[int]) -> None:
        """Wait for the ended processes that this process has adopted, except its parts.

        A part's helpers that outlive it are adopted; all of them are in the groups of parts.
        """
        group = os.getpgid(0)
        while True:
            try:
                ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return
            if ended is None or ended.si_pid in parts or os.getpgid(ended.si_pid) == group:
                return
            os.waitpid(ended.si_pid, 0)

    def close(self) -> None:
        """End the connection, and adopt no further processes."""
        self._close()
        _adopt_orphans(adopt=False)

    def _send(self, request: Mapping[str, object]) -> None:
        if self._ours is not None:
            self._ours.sendall(json.dumps(request).encode() + b"\n")

    def _says(self, word: bytes) -> bool:
        """Whether the fork server has sent this word as the next one.

        Closes the connection if the fork server has closed its end.
        """
        if self._ours is None or not select.select([self._ours], [], [], 0)[0]:
            return False
        try:
            received = self._ours.recv(len(word))
        except OSError:
            received = b""
        if not received:
            self._close()
        return received == word

    def _close(self) -> None:
        if self._ours is not None:
            self._ours.close()
        self._ours, self._ready, self._loaded, self._requested_at = None, False, False, 0.0


def _adopt_orphans(*, adopt: bool) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_CHILD_SUBREAPER, int(adopt), 0, 0, 0):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
