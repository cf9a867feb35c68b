"""One program that is kept running: how it is started, ended, and what it left in its log."""

import os
import shutil
import signal
import subprocess
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import click

FIRST_WAIT, LONGEST_WAIT = 0.5, 30.0
"""Seconds before a dead part is started again; doubled at each death in between."""

SETTLED = 60.0
"""Seconds alive after which a part counts as sound and its wait begins anew."""

LOOP_DEATHS = 5
"""That many deaths within SETTLED seconds are a crash loop, tried at LONGEST_WAIT only."""

LOG_BYTES = 10_000_000
"""A log longer than this is moved to NAME.log.1."""

TAIL_LINES = 20


@dataclass(frozen=True)
class Part:
    """A program to keep running.

    `ready` is asked with its process id, again and again until it says True, so it must answer
    within half a second. A part starts once those in `after` are ready, and stops before them.
    One that runs `once` is ready when it has ended with exit code 0. `lacks` says what a part that
    is not ready is waiting for, if that is known.
    """

    name: str
    argv: Sequence[str]
    env: Mapping[str, str]
    ready: Callable[[int], bool] = lambda pid: True
    lacks: Callable[[], str] = lambda: ""
    after: Sequence[str] = ()
    once: bool = False
    start_seconds: float = 120.0
    stop_seconds: float = 5.0


class Child:
    """The process of a part, while it has one."""

    def __init__(self, part: Part, log: Path) -> None:
        self.part = part
        self.log = log
        self.process: subprocess.Popen[bytes] | None = None
        self.ready = False
        self.end = ""
        self._started = self._due = 0.0
        self._log_start = 0
        self._wait = FIRST_WAIT
        self._deaths: deque[float] = deque(maxlen=LOOP_DEATHS)

    def due(self) -> bool:
        return time.monotonic() >= self._due

    def age(self) -> float:
        return time.monotonic() - self._started

    def becomes_ready(self) -> bool:
        if self.process and not self.part.once:
            self.ready = self.part.ready(self.process.pid)
        return self.ready

    def spawn(self) -> bool:
        """Start a process; False, with the reason in `end`, when the system refuses."""
        self._started = time.monotonic()
        self.end = ""
        try:
            self.log.parent.mkdir(parents=True, exist_ok=True)
            self.bound_log()
            with self.log.open("ab") as log:
                self._log_start = log.tell()
                self.process = subprocess.Popen(
                    self.part.argv,
                    env=self.part.env,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    process_group=0,
                )
        except OSError as error:
            self.end = f"cannot be started ({error})"
        return self.process is not None

    def give_up(self) -> None:
        """End one that takes too long to become ready."""
        self.end = f"was not ready after {self.part.start_seconds:.0f} s"
        if lacks := self.part.lacks():
            self.end += f" ({lacks})"
        self.kill()

    def terminate(self) -> None:
        """Ask the leader only: it knows best how to end its own children."""
        if self.process:
            self.process.terminate()

    def kill(self) -> None:
        """End the whole group."""
        if self.process:
            try:
                os.killpg(self.process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass  # ended by itself meanwhile
            except PermissionError:
                self.process.kill()  # macOS refuses a group that holds a zombie

    def has_ended(self) -> bool:
        """Whether there is no process; one that just ended is noted, and its group swept."""
        if self.process is None:
            return True
        code = self.process.poll()
        if code is None:
            return False
        self.kill()
        self.end = self.end or f"{_describe(code)} after {self.age():.0f} s"
        self.process, self.ready = None, self.part.once and code == 0
        return True

    def schedule(self) -> float:
        """Note a death; return the seconds until the next start."""
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
        """Copy a long log aside and empty it; the process that appends to it goes on."""
        if self.log.exists() and self.log.stat().st_size > LOG_BYTES:
            with suppress(OSError):  # on a full disk, emptying it matters more
                shutil.copyfile(self.log, self.log.with_suffix(".log.1"))
            os.truncate(self.log, 0)
            self._log_start = 0

    def tail(self) -> str:
        """The last lines that this start wrote."""
        if not self.log.exists():
            return ""
        with self.log.open("rb") as log:
            log.seek(self._log_start)
            text = log.read().decode(errors="replace")
        return "\n".join(click.unstyle(text).rstrip().splitlines()[-TAIL_LINES:])


def _describe(code: int) -> str:
    if code >= 0:
        return f"ended with exit code {code}"
    return f"ended by signal {-code} ({signal.strsignal(-code)})"
