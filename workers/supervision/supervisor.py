"""Runs several programs as one: starts them in order, restarts dead and hung ones, stops them."""

import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType, TracebackType
from typing import Self

import click

from callslip.errors import StartError
from callslip.workers.supervision.child import LOOP_DEATHS, SETTLED, Child, Part, rotate

TICK = 0.1
"""Seconds between two checks of the parts."""

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

SECOND_PRESS = 1.0
"""Seconds after the first Ctrl-C from which another one means "at once"."""

LOG_CHECK = 60.0
"""Seconds between two checks of the length of the logs."""

LONG_TICK = 2.0
"""Seconds between two looks after which the supervisor itself was stopped, and no part is hung."""

LOG = "up.log"
"""The log of restarts: UTC time, part, reason."""

Pids = Mapping[str, int]


class Supervisor:
    """Keeps parts running between `start` and the end of its `with` block.

    Each part leads a separate process group, so that no process that it started survives it. All
    groups are in one session, because the kernel compares niceness only inside a session. Call all
    methods except `request_stop` and `restart` from one thread. The supervisor calls `changed` with
    the process ids by part name whenever one of them changes, and again while it raises OSError.
    """

    def __init__(
        self,
        parts: Sequence[Part],
        logs: Path,
        echo: Callable[[str], None],
        changed: Callable[[Pids], None] = lambda pids: None,
    ) -> None:
        self._width = max(len(part.name) for part in parts)
        self._children = {part.name: Child(part, logs / f"{part.name}.log") for part in parts}
        self._forks = {part.forks for part in parts if part.forks}
        self._echo = echo
        self._changed = changed
        self._log = logs / LOG
        self._restarts: dict[str, str] = {}
        self._reported: Pids = {}
        self.stop_requested = False
        self._hurry = self._started = False
        self._looked = self._logs_checked = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stop()

    def request_stop(self, *, hurry: bool = False) -> None:
        """Make `start` or `watch` return; with `hurry`, kill the parts without waiting for them.

        Safe in a signal handler.
        """
        self.stop_requested = True
        self._hurry = self._hurry or hurry

    def restart(self, name: str, reason: str) -> None:
        """Kill a part and start it again, after the wait of a part that died; log the reason.

        Safe in any thread. A part that is not ready is left alone: it is starting already. Raises
        KeyError for an unknown name.
        """
        _known = self._children[name]
        self._restarts[name] = reason

    def begin(self) -> None:
        """Start the first parts, and those that wait for them alone, without waiting for them."""
        self._look_at_start()
        self._look_at_start()

    def start(self) -> bool:
        """Start the parts; return True once all are ready, False if a stop was requested.

        Raises StartError, with the end of the part's log, if a part dies or takes too long.
        """
        while not self.stop_requested:
            self._look_at_start()
            if all(child.ready for child in self._children.values()):
                self._started = True
                return True
            self._wait()
        return False

    def _wait(self) -> None:
        """Wait for a tick, or until the fork server can fork more parts."""
        if not self._forks:
            time.sleep(TICK)
        for forks in self._forks:
            forks.wait(TICK)

    def _look_at_start(self) -> None:
        if dead := self._look():
            raise _failure(dead[0], self._fork_server_of(dead[0]))

    def watch(self) -> None:
        """Restart parts that die or hang, until a stop is requested."""
        while not self.stop_requested:
            for child in self._look():
                self._warn(child, child.schedule())
            self._report_pids()
            self._bound_logs()
            time.sleep(TICK)

    def _look(self) -> list[Child]:
        """Start the parts that are due, record which are ready, and return those that have died.

        Kills the parts that hang, or whose restart was requested; a later call returns them. Sets
        the niceness of ready parts.
        """
        dead = []
        requests = {name: self._restarts.pop(name) for name in list(self._restarts)}
        self._reap()
        now = time.monotonic()
        stood_still, self._looked = now - self._looked > LONG_TICK, now
        for child in self._children.values():
            if child.process is None:
                if self._may_start(child):
                    if not child.spawn():
                        dead.append(child)
                    self._looked = time.monotonic()  # a fork server may have been waited for
                    self._report_pids()
            elif child.has_ended():
                self._report_pids()
                if child.ready:
                    self._say(child, f"done after {child.age():.1f} s")
                else:
                    dead.append(child)
            elif not child.ready:
                if self._may_be_ready(child) and child.becomes_ready():
                    away = child.away()
                    again = "" if away is None else f", {away:.1f} s after its end"
                    self._say(child, f"ready after {child.age():.1f} s{again}")
                elif child.age() > child.part.start_seconds:
                    child.give_up()
            elif reason := requests.get(child.part.name) or self._hangs(child, now, stood_still):
                child.end_for(reason)
            if child.ready:
                child.give_way()
        for forks in self._forks:
            forks.load()  # after the early parts have been forked
        return dead

    def _reap(self) -> None:
        pids = {child.process.pid for child in self._children.values() if child.process}
        for forks in self._forks:
            forks.reap(pids)

    def _hangs(self, child: Child, now: float, excused: bool) -> str:
        """What shows that a ready part hangs; empty if it does not.

        A part shows no progress while a part that it needs does not: that one is restarted first.
        A fork that runs does not need its fork server.
        """
        server = self._fork_server_of(child)
        needs = (self._children[name] for name in child.part.after)
        needs = (need for need in needs if need is not server)
        excused = excused or not all(need.is_working(now) for need in needs)
        if child.is_hung(now, excused=excused) and child.progress:
            return f"hung: no progress for {child.progress.silence(now):.1f} s"
        return ""

    def _fork_server_of(self, child: Child) -> Child | None:
        """The part that forks a part; None for a part that is no fork."""
        forks = child.part.forks
        children = self._children.values()
        return next((c for c in children if forks and c.part.stdin == forks.connect), None)

    def _may_start(self, child: Child) -> bool:
        return not child.ready and child.due() and self._are_ready(child.part.after)

    def _may_be_ready(self, child: Child) -> bool:
        return self._started or self._are_ready(child.part.ready_after)

    def _are_ready(self, names: Sequence[str]) -> bool:
        return all(self._children[name].ready for name in names)

    def _stop(self) -> None:
        """Send each part SIGTERM once no running part needs it; SIGKILL its group if it lingers."""
        signalled_at: dict[str, float] = {}
        while running := [c for c in self._children.values() if not c.has_ended()]:
            needed = {name for child in running for name in child.part.after}
            for child in running:
                name = child.part.name
                if self._hurry:
                    child.kill()
                elif name not in signalled_at:
                    if name not in needed:
                        child.terminate()
                        signalled_at[name] = time.monotonic()
                elif time.monotonic() - signalled_at[name] > child.part.stop_seconds:
                    self._say(child, "does not stop, killed", fg="yellow")
                    child.kill()
                    signalled_at[name] = float("inf")
            time.sleep(TICK / 2)
        self._report_pids()
        for forks in self._forks:
            forks.close()

    def _bound_logs(self) -> None:
        if time.monotonic() - self._logs_checked > LOG_CHECK:
            self._logs_checked = time.monotonic()
            for child in self._children.values():
                child.bound_log()

    def _report_pids(self) -> None:
        children = self._children.items()
        pids = {name: child.process.pid for name, child in children if child.process}
        if pids != self._reported:
            with suppress(OSError):  # a full disk must not stop the programs
                self._changed(pids)
                self._reported = pids

    def _warn(self, child: Child, wait: float) -> None:
        text = f"{child.end}; starting it again in {wait:.1f} s"
        if child.is_looping():
            text += f". {LOOP_DEATHS} deaths within {SETTLED:.0f} s: read {child.log}"
        self._say(child, text, fg="yellow")
        with suppress(OSError):  # a full disk must not stop the programs
            rotate(self._log, by_name=True)
            with self._log.open("a") as log:
                log.write(f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC {child.part.name} {text}\n")

    def _say(self, child: Child, text: str, fg: str | None = None) -> None:
        self._echo(click.style(f"  {child.part.name:{self._width}}  {text}", fg=fg))


@contextmanager
def stop_on_signals(supervisor: Supervisor) -> Iterator[None]:
    """While the block runs, Ctrl-C, SIGTERM and SIGHUP stop the supervisor.

    A second Ctrl-C kills the parts at once; before SECOND_PRESS it is ignored, because some senders
    signal both a process and its group.
    """
    first = None

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal first
        now = time.monotonic()
        again = number == signal.SIGINT and first is not None and now - first > SECOND_PRESS
        first = first or now
        supervisor.request_stop(hurry=again)

    before = {number: signal.signal(number, handle) for number in STOP_SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _failure(child: Child, server: Child | None) -> StartError:
    """`server` is the fork server of the part, whose log has what failed before the part's own."""
    name, tail = child.part.name, child.tail()
    logs = f"{child.log} and {server.log}" if server else f"{child.log}"
    wrote = f"The end of its log:\n\n{tail}\n" if tail else "It wrote no log."
    return StartError(
        f"{name} {child.end} before all was ready. {wrote}",
        hint=f"Read {logs}, correct what is reported there, and start again.",
    )
