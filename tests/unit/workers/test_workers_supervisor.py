"""The supervisor over real little processes."""

import os
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from processes import is_gone, waits_until

from callslip.errors import StartError
from callslip.workers import up
from callslip.workers.supervision import child as child_module
from callslip.workers.supervision import supervisor as supervisor_module
from callslip.workers.supervision.child import Part
from callslip.workers.supervision.supervisor import Supervisor, stop_on_signals

SLEEP = "import time; time.sleep(60)"

IGNORES_SIGTERM = """
import signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
helper = subprocess.Popen([sys.executable, "-ISc", "import time; time.sleep(60)"])
print(helper.pid, flush=True)
time.sleep(60)
"""


def part(name: str, program: str, **options: Any) -> Part:
    return Part(name, (sys.executable, "-ISc", program), os.environ, **options)


class Heard:
    """What a supervisor said, and every process it had."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.pids: list[dict[str, int]] = []

    def echo(self, line: str) -> None:
        self.lines.append(line)

    def changed(self, pids: Mapping[str, int]) -> None:
        self.pids.append(dict(pids))

    def says(self, text: str) -> bool:
        return any(text in line for line in self.lines)

    def all_pids(self) -> set[int]:
        return {pid for pids in self.pids for pid in pids.values()}


@pytest.fixture
def heard() -> Heard:
    return Heard()


def stop_when(
    supervisor: Supervisor, condition: Callable[[], bool], *, hurry: bool = False
) -> None:
    """Request a stop from another thread once the condition holds."""

    def wait() -> None:
        while not condition() and not supervisor.stop_requested:
            time.sleep(0.02)
        supervisor.request_stop(hurry=hurry)

    threading.Thread(target=wait, daemon=True).start()


def test_parts_start_once_what_they_need_is_ready(tmp_path: Path, heard: Heard) -> None:
    flag = tmp_path / "flag"
    first = part(
        "first",
        f"import pathlib, time; time.sleep(.3); pathlib.Path({str(flag)!r}).touch(); {SLEEP}",
        ready=lambda pid: flag.exists(),
    )
    second = part("second", f"import pathlib; assert pathlib.Path({str(flag)!r}).exists(); {SLEEP}")
    with Supervisor(
        [replace(second, after=("first",)), first], tmp_path, heard.echo, heard.changed
    ) as supervisor:
        assert supervisor.start()
        assert set(heard.pids[-1]) == {"first", "second"}
    assert heard.says("first")
    assert heard.says("second")
    assert heard.pids[-1] == {}


def test_the_first_parts_begin_before_the_start(tmp_path: Path, heard: Heard) -> None:
    first = part("first", SLEEP)
    second = part("second", SLEEP, after=("first",), ready=lambda pid: False)
    third = part("third", SLEEP, after=("second",))
    with Supervisor([first, second, third], tmp_path, heard.echo, heard.changed) as supervisor:
        supervisor.begin()
        assert set(heard.pids[-1]) == {"first", "second"}
    assert heard.pids[-1] == {}


def test_what_could_not_be_recorded_is_recorded_later(tmp_path: Path, heard: Heard) -> None:
    full = threading.Event()

    def changed(pids: Mapping[str, int]) -> None:
        if full.is_set():
            raise OSError("no space left")
        heard.changed(pids)

    with Supervisor([part("one", SLEEP)], tmp_path, heard.echo, changed) as supervisor:
        assert supervisor.start()
        first = heard.pids[-1]["one"]
        watching = threading.Thread(target=supervisor.watch)
        watching.start()
        full.set()
        os.kill(first, signal.SIGKILL)
        assert waits_until(lambda: heard.says("ready after") and len(heard.lines) > 2)
        assert heard.pids[-1] == {"one": first}
        full.clear()
        assert waits_until(lambda: heard.pids[-1] != {"one": first})
        supervisor.request_stop()
        watching.join()


def test_a_part_that_runs_once_holds_back_what_needs_its_result(
    tmp_path: Path, heard: Heard
) -> None:
    made = tmp_path / "made"
    once = part("once", f"open({str(made)!r}, 'x')", once=True)
    needs = part("needs", f"open({str(made)!r}); {SLEEP}", after=("once",))
    with Supervisor([once, needs], tmp_path, heard.echo, heard.changed) as supervisor:
        assert supervisor.start()
        assert set(heard.pids[-1]) == {"needs"}
        stop_when(supervisor, lambda: True)
        supervisor.watch()
    assert heard.says("done after")


def test_at_the_start_a_part_is_looked_at_only_once_the_parts_that_it_is_ready_after_are_ready(
    tmp_path: Path, heard: Heard
) -> None:
    calls: list[str] = []

    def ready(name: str, at: int) -> Callable[[int], bool]:
        def answer(_pid: int) -> bool:
            calls.append(name)
            return calls.count(name) >= at

        return answer

    others = [part(name, SLEEP, ready=ready(name, 3)) for name in ("first", "second")]
    last = part("last", SLEEP, ready=ready("last", 2), ready_after=("first", "second"))
    with Supervisor([last, *others], tmp_path, heard.echo, heard.changed) as supervisor:
        assert supervisor.start()
    assert sorted(calls[:6]) == ["first"] * 3 + ["second"] * 3
    assert calls[6:] == ["last"] * 2


def test_a_restarted_part_is_ready_while_one_that_it_is_ready_after_starts(
    tmp_path: Path, heard: Heard
) -> None:
    may_start = threading.Event()
    may_start.set()
    first = part("first", SLEEP, ready=lambda pid: may_start.is_set())
    last = part("last", SLEEP, ready_after=("first",))
    with Supervisor([first, last], tmp_path, heard.echo, heard.changed) as supervisor:
        assert supervisor.start()
        watching = threading.Thread(target=supervisor.watch)
        watching.start()
        may_start.clear()
        for name in ("first", "last"):
            os.kill(heard.pids[-1][name], signal.SIGKILL)
        assert waits_until(
            lambda: sum("last" in line and "ready" in line for line in heard.lines) == 2
        )
        supervisor.request_stop()
        watching.join()


def test_the_processes_of_a_part_give_way_to_others_once_it_is_ready(
    tmp_path: Path, heard: Heard
) -> None:
    own, started = os.nice(0), tmp_path / "started"
    at_start: list[int] = []

    def ready(pid: int) -> bool:
        if not started.exists():
            return False
        at_start.append(os.getpriority(os.PRIO_PGRP, pid))
        started.unlink()
        return True

    def gives_way() -> bool:
        # The kernel returns the niceness of the one process of a group that gives way least.
        return os.getpriority(os.PRIO_PGRP, heard.pids[-1]["nice"]) == min(own + 2, 19)

    program = (
        f"import subprocess, sys; subprocess.Popen([sys.executable, '-ISc', {SLEEP!r}]);"
        f" open({str(started)!r}, 'x'); {SLEEP}"
    )
    nice = part("nice", program, ready=ready, niceness=2)
    with Supervisor([nice], tmp_path, heard.echo, heard.changed) as supervisor:
        assert supervisor.start()
        watching = threading.Thread(target=supervisor.watch)
        watching.start()
        assert waits_until(gives_way)
        first = heard.pids[-1]["nice"]
        os.kill(first, signal.SIGKILL)
        assert waits_until(
            lambda: heard.pids[-1].get("nice", first) != first and len(at_start) == 2
        )
        assert waits_until(gives_way)
        supervisor.request_stop()
        watching.join()
    assert at_start == [own, own]


def test_a_part_that_dies_at_start_is_named_with_the_end_of_its_log(
    tmp_path: Path, heard: Heard
) -> None:
    (tmp_path / "broken.log").write_text("of an earlier start\n")
    broken = part(
        "broken",
        "[print('line', i, flush=True) for i in range(50)]; raise SystemExit(3)",
        ready=lambda pid: False,
    )
    with (
        pytest.raises(StartError, match=r"broken ended with exit code 3") as raised,
        Supervisor(
            [part("sound", SLEEP), broken], tmp_path, heard.echo, heard.changed
        ) as supervisor,
    ):
        supervisor.start()
    assert "line 49" in raised.value.detail
    assert "line 29" not in raised.value.detail
    assert "earlier" not in raised.value.detail
    assert str(tmp_path / "broken.log") in raised.value.advice
    assert all(is_gone(pid) for pid in heard.all_pids())


def test_a_part_that_never_becomes_ready_fails_the_start(tmp_path: Path, heard: Heard) -> None:
    late = part("late", SLEEP, ready=lambda pid: False, start_seconds=0.3)
    with (
        pytest.raises(StartError, match="late was not ready after"),
        Supervisor([late], tmp_path, heard.echo, heard.changed) as supervisor,
    ):
        supervisor.start()
    assert all(is_gone(pid) for pid in heard.all_pids())


def test_a_program_that_does_not_exist_is_named(tmp_path: Path, heard: Heard) -> None:
    missing = Part("missing", ("/no/such/program",), {})
    with (
        pytest.raises(StartError, match="missing cannot be started"),
        Supervisor([missing], tmp_path, heard.echo) as supervisor,
    ):
        supervisor.start()


def test_what_dies_is_started_again_and_its_own_children_are_ended(
    tmp_path: Path, heard: Heard
) -> None:
    log = tmp_path / "parent.log"
    parent = part("parent", IGNORES_SIGTERM, ready=lambda pid: log.exists() and log.stat().st_size)
    with Supervisor([parent], tmp_path, heard.echo, heard.changed) as supervisor:
        assert supervisor.start()
        first, helper = heard.pids[-1]["parent"], int(log.read_text())
        os.kill(first, signal.SIGKILL)
        stop_when(supervisor, lambda: heard.pids[-1].get("parent", first) != first, hurry=True)
        supervisor.watch()
        assert heard.says("ended by signal 9")
        assert heard.says("starting it again in 0.5 s")
        assert waits_until(lambda: is_gone(helper))


def test_a_crash_loop_is_slowed_down_and_says_what_to_read(
    tmp_path: Path, heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child_module, "FIRST_WAIT", 0.01)
    once = tmp_path / "once"
    program = f"import os, sys; os.path.exists({str(once)!r}) and sys.exit(1); {SLEEP}"
    with Supervisor([part("loop", program)], tmp_path, heard.echo, heard.changed) as supervisor:
        assert supervisor.start()
        once.touch()
        os.kill(heard.pids[-1]["loop"], signal.SIGKILL)
        stop_when(supervisor, lambda: heard.says(str(tmp_path / "loop.log")))
        supervisor.watch()
    assert "starting it again in 30.0 s" in heard.lines[-1]


def test_parts_stop_before_what_they_need(tmp_path: Path, heard: Heard) -> None:
    order = tmp_path / "order"
    program = """
import signal, sys, time
def end(*_):
    time.sleep(.2)
    open({order!r}, "a").write({name!r})
    sys.exit()
signal.signal(signal.SIGTERM, end)
print("up", flush=True)
time.sleep(60)
"""
    parts = [
        part(
            name,
            program.format(order=str(order), name=name),
            ready=lambda pid, log=tmp_path / f"{name}.log": log.exists() and log.stat().st_size,
            after=after,
        )
        for name, after in {"a": (), "b": ("a",), "c": ("a", "b")}.items()
    ]
    with Supervisor(parts, tmp_path, heard.echo, heard.changed) as supervisor:
        assert supervisor.start()
    assert order.read_text() == "cba"


def test_a_part_that_ignores_sigterm_is_killed_with_its_children(
    tmp_path: Path, heard: Heard
) -> None:
    log = tmp_path / "deaf.log"
    deaf = part(
        "deaf",
        IGNORES_SIGTERM,
        ready=lambda pid: log.exists() and log.stat().st_size,
        stop_seconds=0.2,
    )
    with Supervisor([deaf], tmp_path, heard.echo, heard.changed) as supervisor:
        assert supervisor.start()
    assert heard.says("does not stop")
    assert all(is_gone(pid) for pid in heard.all_pids())
    assert waits_until(lambda: is_gone(int(log.read_text())))


def test_a_hurried_stop_does_not_ask_first(tmp_path: Path, heard: Heard) -> None:
    log = tmp_path / "deaf.log"
    deaf = part(
        "deaf",
        IGNORES_SIGTERM,
        ready=lambda pid: log.exists() and log.stat().st_size,
        stop_seconds=3600,
    )
    with Supervisor([deaf], tmp_path, heard.echo, heard.changed) as supervisor:
        assert supervisor.start()
        supervisor.request_stop(hurry=True)
    assert all(is_gone(pid) for pid in heard.all_pids())


def test_signals_stop_the_watch_and_are_given_back(tmp_path: Path, heard: Heard) -> None:
    before = signal.getsignal(signal.SIGTERM)
    with Supervisor([part("one", SLEEP)], tmp_path, heard.echo, heard.changed) as supervisor:
        with stop_on_signals(supervisor):
            assert supervisor.start()
            signal.raise_signal(signal.SIGTERM)
            supervisor.watch()
        assert signal.getsignal(signal.SIGTERM) is before


def test_a_second_ctrl_c_kills_at_once(
    tmp_path: Path, heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor_module, "SECOND_PRESS", 0.0)
    log = tmp_path / "deaf.log"
    deaf = part(
        "deaf",
        IGNORES_SIGTERM,
        ready=lambda pid: log.exists() and log.stat().st_size,
        stop_seconds=3600,
    )
    supervisor = Supervisor([deaf], tmp_path, heard.echo, heard.changed)
    with stop_on_signals(supervisor), supervisor:
        assert supervisor.start()
        press = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
        press.start()
        signal.raise_signal(signal.SIGINT)
        supervisor.watch()
    press.join()
    assert all(is_gone(pid) for pid in heard.all_pids())


def test_a_stop_during_the_start_ends_it(tmp_path: Path, heard: Heard) -> None:
    never = part("never", SLEEP, ready=lambda pid: False)
    with Supervisor([never], tmp_path, heard.echo, heard.changed) as supervisor:
        stop_when(supervisor, lambda: bool(heard.pids))
        assert not supervisor.start()
    assert all(is_gone(pid) for pid in heard.all_pids())


def test_all_parts_share_the_session_and_each_leads_a_group(tmp_path: Path, heard: Heard) -> None:
    with Supervisor(
        [part("one", SLEEP), part("two", SLEEP)], tmp_path, heard.echo, heard.changed
    ) as supervisor:
        assert supervisor.start()
        for pid in heard.pids[-1].values():
            assert os.getsid(pid) == os.getsid(0)
            assert os.getpgid(pid) == pid


def test_a_long_log_is_set_aside_at_start(
    tmp_path: Path, heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child_module, "LOG_BYTES", 10)
    (tmp_path / "chatty.log").write_text("a long log of yesterday")
    with Supervisor(
        [part("chatty", "print('today', flush=True);" + SLEEP)], tmp_path, heard.echo
    ) as supervisor:
        assert supervisor.start()
        assert waits_until(lambda: (tmp_path / "chatty.log").read_text() == "today\n")
    assert (tmp_path / "chatty.log.1").read_text() == "a long log of yesterday"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ((1024, 4096), (4096, 4096)),
        ((1024, resource.RLIM_INFINITY), (up.OPEN_FILES, resource.RLIM_INFINITY)),
        ((1024, 2**20), (up.OPEN_FILES, 2**20)),
        ((1024, 1024), None),
        ((2**20, 2**20), None),
        ((resource.RLIM_INFINITY, resource.RLIM_INFINITY), None),
    ],
)
def test_parts_may_open_as_many_files_as_the_system_allows(
    monkeypatch: pytest.MonkeyPatch, before: tuple[int, int], after: tuple[int, int] | None
) -> None:
    limits: list[tuple[int, tuple[int, int]]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: before)
    monkeypatch.setattr(resource, "setrlimit", lambda *each: limits.append(each))
    up.allow_open_files()
    assert limits == ([] if after is None else [(resource.RLIMIT_NOFILE, after)])
