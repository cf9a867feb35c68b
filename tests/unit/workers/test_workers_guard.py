"""What happens when the supervisor itself is killed, and how one finds what runs."""

import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from processes import is_gone, waits_until

from callslip.errors import StartError
from callslip.workers.supervision import runfile
from callslip.workers.supervision.runfile import Process, RunFile

SUPERVISOR = """
import os, sys
from pathlib import Path
from callslip.workers.supervision import runfile
from callslip.workers.supervision.child import Part
from callslip.workers.supervision.supervisor import Supervisor

data_dir = Path(sys.argv[1])
run = runfile.RunFile(runfile.Process.of(os.getpid()), "http://server", "redis://b", "http://c")
deaf = '''
import signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
helper = subprocess.Popen([sys.executable, "-ISc", "import time; time.sleep(60)"])
time.sleep(60)
'''
module = "callslip.workers.supervision.guard"
guard = (sys.executable, "-m", module, str(data_dir), str(os.getpid()))
parts = [
    Part("guard", guard, os.environ),
    Part("deaf", (sys.executable, "-ISc", deaf), os.environ),
    Part("mild", (sys.executable, "-ISc", "import time; time.sleep(60)"), os.environ),
]
record = runfile.recorder(run, data_dir, leave_out="guard")
with Supervisor(parts, data_dir, print, record) as supervisor:
    supervisor.start()
    print("started", flush=True)
    supervisor.watch()
"""


def test_a_killed_supervisor_leaves_no_process(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", SUPERVISOR, str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as supervisor:
        assert supervisor.stdout
        assert any("started" in line for line in supervisor.stdout)
        family = psutil.Process(supervisor.pid)
        assert waits_until(lambda: len(family.children(recursive=True)) == 4)
        pids = [child.pid for child in family.children(recursive=True)]
        supervisor.send_signal(signal.SIGKILL)
    assert waits_until(lambda: all(map(is_gone, pids)))
    run = runfile.read(tmp_path)
    assert run
    assert not run.is_running()


def test_leftovers_are_ended_though_their_leader_is_gone(tmp_path: Path) -> None:
    orphan = "print(__import__('os').getpid(), flush=True); __import__('time').sleep(60)"
    leader = f"import subprocess, sys; subprocess.Popen([sys.executable, '-ISc', {orphan!r}])"
    with subprocess.Popen(
        [sys.executable, "-ISc", leader], stdout=subprocess.PIPE, text=True, process_group=0
    ) as process:
        assert process.stdout
        part = Process.of(process.pid)
        pid = int(process.stdout.readline())
        process.wait()
        assert not is_gone(pid)
        runfile.end_leftovers(RunFile(part, "", "", "", {"leader": part}))
        assert waits_until(lambda: is_gone(pid))


def test_a_reused_process_id_is_left_alone() -> None:
    with subprocess.Popen(
        [sys.executable, "-ISc", "input()"], stdin=subprocess.PIPE, process_group=0
    ) as other:
        earlier = Process(other.pid, Process.of(other.pid).started - 3600)
        runfile.end_leftovers(RunFile(earlier, "", "", "", {"part": earlier}))
        assert other.poll() is None
        other.kill()


@contextmanager
def waiting(code: str = "") -> Iterator[subprocess.Popen[str]]:
    """A process with a group of its own that waits until it is ended."""
    argv = [sys.executable, "-ISc", f"{code}\nprint(flush=True)\ninput()"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(argv, process_group=0, text=True, **pipes) as process:
        assert process.stdout
        process.stdout.readline()
        yield process
        process.kill()


def set_clock(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Set the system's clock: the time of its boot, to which psutil adds, moves with it."""
    create_time, boot_time = psutil.Process.create_time, psutil.boot_time
    monkeypatch.setattr(psutil.Process, "create_time", lambda self: create_time(self) + seconds)
    monkeypatch.setattr(psutil, "boot_time", lambda: boot_time() + seconds)


needs_boot_id = pytest.mark.skipif(
    not Path("/proc/sys/kernel/random/boot_id").exists(),
    reason="only Linux tells the start of a process since the boot",
)


@needs_boot_id
@pytest.mark.parametrize("seconds", [-3600, 3600, 1e9])
def test_a_clock_that_is_set_leaves_no_part_running(
    monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    with waiting() as part:
        me, its = Process.of(os.getpid()), Process.of(part.pid)
        set_clock(monkeypatch, seconds)
        assert me.is_alive()
        assert its.is_alive()
        assert not its.is_replaced()
        runfile.end_leftovers(RunFile(me, "", "", "", {"part": its}))
        assert part.wait(5) == -signal.SIGTERM


@needs_boot_id
def test_a_part_that_runs_on_keeps_its_start_when_the_clock_is_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    me = Process.of(os.getpid())
    record = runfile.recorder(RunFile(me, "", "", ""), tmp_path, leave_out="guard")
    with waiting() as first, waiting() as second:
        record({"chroma": first.pid, "api": second.pid})
        set_clock(monkeypatch, 3600)
        record({"chroma": first.pid, "api": os.getpid()})
        run = runfile.read(tmp_path)
        assert run
        assert Process.of(first.pid).started - run.parts["chroma"].started > 3500
        assert run.parts["api"] == Process.of(os.getpid())


@needs_boot_id
def test_what_an_earlier_boot_left_is_no_process_of_now() -> None:
    with waiting() as other:
        earlier = replace(Process.of(other.pid), boot="of an earlier boot")
        assert not earlier.is_alive()
        assert earlier.is_replaced()
        runfile.end_leftovers(RunFile(earlier, "", "", "", {"part": Process.of(other.pid)}))
        assert other.poll() is None


@needs_boot_id
def test_the_start_is_read_behind_any_name_of_a_process() -> None:
    with waiting("open('/proc/self/comm', 'w').write('x) S 1 (y) 2')") as process:
        assert psutil.Process(process.pid).name() == "x) S 1 (y) 2"
        since_boot = psutil.Process(process.pid).create_time() - psutil.boot_time()
        ticks = Process.of(process.pid).ticks
        assert ticks == round(since_boot * os.sysconf("SC_CLK_TCK"))


def test_a_run_file_of_an_earlier_version_is_understood(tmp_path: Path) -> None:
    with waiting() as part:
        me, its = (
            {"pid": pid, "started": psutil.Process(pid).create_time()}
            for pid in (os.getpid(), part.pid)
        )
        urls = {"api_url": "http://server", "broker_url": "", "chroma_url": None}
        written = {"supervisor": me, "parts": {"api": its}, "chroma_tenant": None, **urls}
        (tmp_path / runfile.NAME).write_text(json.dumps(written))
        run = runfile.read(tmp_path)
        assert run
        assert run.is_running()
        assert run.parts["api"].is_alive()
        runfile.end_left(tmp_path)
        assert part.wait(5) == -signal.SIGTERM
        assert not run.parts["api"].is_alive()


def test_the_run_file_is_read_back_and_belongs_to_its_owner(tmp_path: Path) -> None:
    me = Process.of(os.getpid())
    run = RunFile(me, "http://server", "redis://:secret@broker", "http://chroma", {"api": me})
    run.write(tmp_path)
    assert runfile.read(tmp_path) == run
    assert run.is_running()
    assert stat.S_IMODE((tmp_path / runfile.NAME).stat().st_mode) == 0o600
    runfile.remove(tmp_path)
    assert runfile.read(tmp_path) is None


def test_parts_are_ended_though_the_run_file_is_empty(tmp_path: Path) -> None:
    (tmp_path / runfile.NAME).touch()
    sleep = [sys.executable, "-ISc", "import time; time.sleep(60)"]
    mine, other = (
        subprocess.Popen(sleep, env={**os.environ, runfile.MARK: of}, process_group=0)
        for of in (str(tmp_path), f"{tmp_path}-other")
    )
    try:
        runfile.end_left(tmp_path)
        assert mine.wait(5) == -signal.SIGTERM
        assert other.poll() is None
    finally:
        for process in (mine, other):
            process.kill()
            process.wait()


@pytest.mark.parametrize(
    "content", [b"", b"{", b"\xff\xfe", b"[]", b"{}", b'{"supervisor": null, "parts": {}}']
)
def test_a_damaged_run_file_is_said_in_a_sentence(tmp_path: Path, content: bytes) -> None:
    (tmp_path / runfile.NAME).write_bytes(content)
    with pytest.raises(StartError, match=r"run\.json.* is empty or damaged") as raised:
        runfile.read(tmp_path)
    assert "ends what is left" in raised.value.advice
    with (
        runfile.locked(tmp_path),
        pytest.raises(StartError, match=r"runs in .* already\."),
        runfile.locked(tmp_path),
    ):
        pass


def test_a_second_start_says_who_runs_there(tmp_path: Path) -> None:
    me = Process.of(os.getpid())
    with runfile.locked(tmp_path):
        RunFile(me, "http://server:8765", "", "").write(tmp_path)
        with (
            pytest.raises(StartError, match=rf"process {me.pid} at http://server:8765"),
            runfile.locked(tmp_path),
        ):
            pass
    with runfile.locked(tmp_path):
        pass
