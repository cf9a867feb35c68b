"""Starts and ends one supervised program, and reads its log."""

import os
import shutil
import signal
import subprocess
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from socket import socket
from typing import IO

import click

from callslip.workers.supervision.forking import Forked, Forks
from callslip.workers.supervision.progress import Prober, Progress

FIRST_WAIT, LONGEST_WAIT = 0.5, 30.0
"""Seconds before a dead part is started again; each death doubles them up to the limit."""

SETTLED = 60.0
"""Seconds alive after which a part counts as stable, and its wait is FIRST_WAIT again."""

LOOP_DEATHS = 5
"""So many deaths within SETTLED seconds are a crash loop, in which every wait is LONGEST_WAIT."""

LOG_BYTES = 10_000_000
"""A longer log is rotated: NAME.log becomes NAME.log.1, that one NAME.log.2, and so on."""

OLD_LOGS = 3
"""The rotated logs of a part; the oldest is deleted."""

TAIL_LINES = 20


@dataclass(frozen=True)
class Part:
    """A program to keep running.

    The supervisor calls `ready` with the process id repeatedly until it returns True, so `ready`
    must return within half a second. When all parts start, the first call waits until the parts in
    `ready_after` are ready: `ready` would be False before. A part starts once the parts in `after`
    are ready, and stops before them. A part with `once` is ready when it has ended with exit code
    0. `lacks` returns what a part that is not ready is waiting for, or an empty text if that is
    unknown. A part with `reopens_log` writes to its log's path and opens it again when the file was
    renamed.

    `works` tells whether a ready part makes progress, or returns None if that cannot be seen now; a
    thread calls it every second with the process id. A part for which it has not returned True for
    `patience` seconds is hung: the supervisor kills it and starts it again. Without `works` only
    the end of the process counts. The process runs in the folder `cwd`, by default in this one.
    The processes of a ready part have the niceness `niceness`, relative to the supervisor's. A part
    that starts has none, because it would get a core only after all other parts have started.

    `stdin` opens the standard input of a new process. With `forks` the process is a fork of a fork
    server, and `argv` is `python -m MODULE …`. An `early` one only needs the modules that the
    server imports, and may be forked before the server has loaded the rest.
    """

    name: str
    argv: Sequence[str]
    env: Mapping[str, str]
    ready: Callable[[int], bool] = lambda pid: True
    lacks: Callable[[], str] = lambda: ""
    works: Callable[[int], bool | None] | None = None
    patience: float = 10.0
    after: Sequence[str] = ()
    ready_after: Sequence[str] = ()
    cwd: Path | None = None
    niceness: int = 0
    stdin: Callable[[], socket] | None = None
    forks: Forks | None = None
    early: bool = False
    once: bool = False
    reopens_log: bool = False
    start_seconds: float = 120.0
    stop_seconds: float = 20.0


class Child:
    """A part, its process while one is running, and its log."""

    def __init__(self, part: Part, log: Path) -> None:
        self.part = part
        self.log = log
        self.process: subprocess.Popen[bytes] | Forked | None = None
        self.ready = False
        self.end = ""
        self.progress: Progress | None = None
        self._prober: Prober | None = None
        self._started = self._due = 0.0
        self._ended: float | None = None
        self._log_start = 0
        self._wait = FIRST_WAIT
        self._deaths: deque[float] = deque(maxlen=LOOP_DEATHS)

    def due(self) -> bool:
        """Whether it is time to start the part, and its fork server can fork it."""
        forks = self.part.forks
        return time.monotonic() >= self._due and (
            forks is None or forks.may_fork(early=self.part.early)
        )

    def age(self) -> float:
        return time.monotonic() - self._started

    def becomes_ready(self) -> bool:
        if self.process and not self.part.once:
            self.ready = self.part.ready(self.process.pid)
            if self.ready and self.part.works:
                self.progress = Progress(self.part.patience, time.monotonic())
                self._prober = Prober(self.part.works, self.process.pid)
        return self.ready

    def give_way(self) -> None:
        """Set the niceness of the processes of a ready part; those that they start inherit it.

        A process that is just being forked is missed, so repeat the call.
        """
        if self.part.niceness and self.process:
            niceness = os.getpriority(os.PRIO_PROCESS, 0) + self.part.niceness
            with suppress(OSError):  # it has just ended; macOS refuses a group that holds a zombie
                os.setpriority(os.PRIO_PGRP, self.process.pid, niceness)

    def is_working(self, now: float) -> bool:
        """Whether the part is ready and, as far as that is watched, has made progress lately."""
        return self.ready and not (self.progress and self.progress.is_quiet(now))

    def is_hung(self, now: float, *, excused: bool) -> bool:
        """Whether the part is ready but makes no progress, without an excuse."""
        if self.progress is None or self._prober is None:
            return False
        self.progress.show(self._prober.shown)
        if excused or self._prober.blind:
            self.progress.excuse(now)
        return self.progress.is_hung(now)

    def away(self) -> float | None:
        """Seconds from the end of the last process to now; None at the first start."""
        return None if self._ended is None else time.monotonic() - self._ended

    def spawn(self) -> bool:
        """Start a process; return False, with the reason in `end`, if the system refuses."""
        self._started = time.monotonic()
        self.end = ""
        try:
            self.log.parent.mkdir(parents=True, exist_ok=True)
            self.bound_log()
            with self.log.open("ab") as log:
                self._log_start = log.tell()
                self.process = self._forked() if self.part.forks else self._executed(log)
        except OSError as error:
            self.end = f"cannot be started ({error})"
        return self.process is not None

    def _executed(self, log: IO[bytes]) -> "subprocess.Popen[bytes]":
        part = self.part
        with part.stdin() if part.stdin else Path(os.devnull).open("rb") as stdin:
            return subprocess.Popen(
                part.argv,
                env=part.env,
                cwd=part.cwd,
                stdin=stdin.fileno(),
                stdout=log,
                stderr=subprocess.STDOUT,
                process_group=0,
            )

    def _forked(self) -> Forked:
        part = self.part
        assert part.forks is not None  # noqa: S101 - for mypy
        return part.forks.spawn(part.argv, part.env, part.cwd, self.log, part.name)

    def give_up(self) -> None:
        """End a process that takes too long to become ready."""
        self.end = f"was not ready after {self.part.start_seconds:.0f} s"
        if lacks := self.part.lacks():
            self.end += f" ({lacks})"
        self.kill()

    def end_for(self, reason: str) -> None:
        """Kill the process group for a reason, which is recorded as the end of the process."""
        self.end = f"{reason}; killed after {self.age():.0f} s"
        self.kill()

    def terminate(self) -> None:
        """Send SIGTERM to the leader of the group only, because it ends its children itself."""
        if self.process:
            self.process.terminate()

    def kill(self) -> None:
        """Kill the whole process group."""
        if self.process:
            try:
                os.killpg(self.process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass  # the group ended by itself in the meantime
            except PermissionError:
                self.process.kill()  # macOS refuses a group that holds a zombie

    def has_ended(self) -> bool:
        """Whether no process is running. If it has just ended, record that and kill its group."""
        if self.process is None:
            return True
        code = self.process.poll()
        if code is None:
            return False
        self.kill()
        self.end = self.end or f"{_describe(code)} after {self.age():.0f} s"
        self.process, self.ready = None, self.part.once and code == 0
        self._ended = time.monotonic()
        if self._prober:
            self._prober.stop()
        self._prober = self.progress = None
        return True

    def schedule(self) -> float:
        """Record a death; return the seconds until the next start."""
        now = time.monotonic()
        self._deaths.append(now)
        if now - self._started > SETTLED:
            self._wait = FIRST_WAIT
        wait = LONGEST_WAIT if self.is_looping() else self._wait
        self._wait = min(2 * self._wait, LONGEST_WAIT)
        self._due = now + wait
        return wait

    def is_looping(self) -> bool:
        return len(self._deaths) == LOOP_DEATHS and self._deaths[-1] - self._deaths[0] < SETTLED

    def bound_log(self) -> None:
        """Rotate the log above LOG_BYTES."""
        if rotate(self.log, by_name=self.part.reopens_log or self.process is None):
            self._log_start = 0

    def tail(self) -> str:
        """The last lines of the log since the last start."""
        if not self.log.exists():
            return ""
        with self.log.open("rb") as log:
            log.seek(self._log_start)
            text = log.read().decode(errors="replace")
        return "\n".join(click.unstyle(text).rstrip().splitlines()[-TAIL_LINES:])


def rotate(log: Path, *, by_name: bool) -> bool:
    """Rotate a log above LOG_BYTES; tell whether it was that long.

    With `by_name` the file is renamed, so its writer opens it again. Otherwise the log is copied
    and emptied; lines that its process writes meanwhile may be lost.
    """
    if not log.exists() or log.stat().st_size <= LOG_BYTES:
        return False
    old = [log.with_suffix(f".log.{number}") for number in range(1, OLD_LOGS + 1)]
    for newer, older in reversed(list(pairwise(old))):
        if newer.exists():
            newer.replace(older)
    if by_name:
        log.replace(old[0])
    else:
        with suppress(OSError):  # on a full disk, emptying it matters more
            shutil.copyfile(log, old[0])
        os.truncate(log, 0)
    return True


def _describe(code: int) -> str:
    if code >= 0:
        return f"ended with exit code {code}"
    return f"ended by signal {-code} ({signal.strsignal(-code)})"
