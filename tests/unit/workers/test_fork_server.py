"""Parts that are forks of a process with loaded modules."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from processes import is_gone, waits_until

from callslip.errors import StartError
from callslip.workers import fork_server
from callslip.workers.supervision import forking
from callslip.workers.supervision import progress as progress_module
from callslip.workers.supervision import supervisor as supervisor_module
from callslip.workers.supervision.child import Part
from callslip.workers.supervision.supervisor import Supervisor

pytestmark = pytest.mark.skipif(not forking.is_supported(), reason="only Linux has a fork server")

SERVER = """
import loaded, os, socket, sys, time
from callslip.workers.fork_server import become, serve

def load():
    while not os.path.exists(sys.argv[1]):
        time.sleep(0.01)

with socket.socket(fileno=0) as connection:
    request = serve(connection, load)
    if request is not None:
        connection.detach()
if request is not None:
    become(request)
"""

LOADED = "import os; MINE = os.getpid()"

SHOWS = """
import loaded, os, subprocess, sys, time
leads = os.getpgid(0) == os.getpid()
print(sys.argv[1:], os.environ["ONE"], "OTHER" in os.environ, os.getcwd(), os.nice(0), leads)
print(os.getppid(), loaded.MINE, sys.stdin.read() == "", open("/proc/self/comm").read().strip())
helper = subprocess.Popen([sys.executable, "-ISc", "import time; time.sleep(60)"])
print(helper.pid, flush=True)
time.sleep(60)
"""


class Parts:
    """A fork server and a part that it forks, in a folder."""

    def __init__(self, folder: Path, *, patience: float = 10.0, loads: bool = True) -> None:
        """With `loads`, the server has loaded the rest at once, otherwise when `rest` exists."""
        self.rest = folder / "rest"
        if loads:
            self.rest.touch()
        (folder / "loaded.py").write_text(LOADED)
        (folder / "shows.py").write_text(SHOWS)
        self.folder, self.forks = folder, forking.Forks()
        self.pids: dict[str, int] = {}
        self.lines: list[str] = []
        env = {**os.environ, "PYTHONPATH": str(folder), "OTHER": "1"}
        self.server = Part(
            "server",
            (sys.executable, "-c", SERVER, str(self.rest)),
            env,
            ready=lambda pid: self.forks.is_ready(),
            works=lambda pid: self.forks.is_open(),
            patience=patience,
            stdin=self.forks.connect,
        )
        self.part = Part(
            "part",
            (sys.executable, "-m", "shows", "--word", "é"),
            {"ONE": "1"},
            after=("server",),
            cwd=folder,
            forks=self.forks,
        )

    def changed(self, pids: Mapping[str, int]) -> None:
        self.pids = dict(pids)

    def supervised(self) -> Supervisor:
        logs = self.folder / "logs"
        return Supervisor([self.server, self.part], logs, self.lines.append, self.changed)

    def shown(self) -> list[str]:
        log = self.folder / "logs" / "part.log"
        assert waits_until(lambda: log.exists() and log.read_text().count("\n") % 3 == 0)
        return log.read_text().splitlines()[-3:]


def test_a_fork_has_what_its_server_loaded_and_the_rest_of_a_program_of_its_own(
    tmp_path: Path,
) -> None:
    parts = Parts(tmp_path)
    with parts.supervised() as supervisor:
        assert supervisor.start()
        assert waits_until(lambda: (tmp_path / "logs" / "part.log").read_text().count("\n") == 3)
        first, second, helper = parts.shown()
        assert first == f"['--word', 'é'] 1 False {tmp_path} {os.nice(0)} True"
        assert second == f"{os.getpid()} {parts.pids['server']} True callslip part"
    assert waits_until(lambda: is_gone(int(helper)))
    assert not parts.pids


def test_a_killed_fork_is_replaced_and_what_it_leaves_is_ended(tmp_path: Path) -> None:
    parts = Parts(tmp_path)
    with parts.supervised() as supervisor:
        assert supervisor.start()
        assert waits_until(lambda: (tmp_path / "logs" / "part.log").read_text().count("\n") == 3)
        killed, helper = parts.pids["part"], int(parts.shown()[2])
        watching = threading.Thread(target=supervisor.watch)
        watching.start()
        os.kill(killed, signal.SIGKILL)
        assert waits_until(lambda: parts.pids.get("part", killed) != killed)
        assert waits_until(lambda: not psutil.pid_exists(helper))  # also no zombie of this process
        supervisor.request_stop()
        watching.join()
    assert any("ended by signal 9" in line for line in parts.lines)


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_parts_outlive_the_server_and_a_new_one_forks_the_next(
    tmp_path: Path, number: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forking, "ANSWER_SECONDS", supervisor_module.LONG_TICK + 0.5)
    parts = Parts(tmp_path, patience=2.0)
    with parts.supervised() as supervisor:
        assert supervisor.start()
        before = dict(parts.pids)
        watching = threading.Thread(target=supervisor.watch)
        watching.start()
        os.kill(before["server"], number)
        if number == signal.SIGKILL:
            assert waits_until(lambda: parts.pids.get("server", 0) not in {0, before["server"]})
            assert parts.pids["part"] == before["part"]
        time.sleep(0.2)
        os.kill(before["part"], signal.SIGKILL)
        assert waits_until(
            lambda: {parts.pids.get(name, 0) for name in before}.isdisjoint({0, *before.values()}),
            seconds=30,
        )
        supervisor.request_stop()
        watching.join()


def test_early_parts_are_forked_before_the_server_loads_the_rest(tmp_path: Path) -> None:
    parts = Parts(tmp_path, loads=False)
    early = replace(parts.part, name="early", early=True)
    supervisor = Supervisor(
        [parts.server, early, parts.part], tmp_path / "logs", parts.lines.append, parts.changed
    )
    with supervisor:
        starting = threading.Thread(target=supervisor.start)
        starting.start()
        assert waits_until(lambda: any("early" in line for line in parts.lines))
        time.sleep(5 * supervisor_module.TICK)
        assert set(parts.pids) == {"server", "early"}
        parts.rest.touch()
        starting.join(30)
        assert set(parts.pids) == {"server", "early", "part"}


def test_a_server_that_does_not_load_the_rest_in_time_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forking, "LOAD_SECONDS", 0.5)
    parts = Parts(tmp_path, patience=1.0, loads=False)
    with parts.supervised() as supervisor:
        with pytest.raises(StartError, match="server"):  # at the start; later it is replaced
            supervisor.start()
        assert "part" not in parts.pids
        parts.rest.touch()
        watching = threading.Thread(target=supervisor.watch)
        watching.start()
        assert waits_until(lambda: set(parts.pids) == {"server", "part"})
        supervisor.request_stop()
        watching.join()


def test_a_fork_that_hangs_is_noticed_while_the_server_is_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress_module, "PROBE_EVERY", 0.01)
    monkeypatch.setattr(progress_module, "QUIET", 0.1)
    parts = Parts(tmp_path, patience=60.0)
    parts.server = replace(parts.server, works=lambda pid: False)
    parts.part = replace(parts.part, works=lambda pid: False, patience=0.5)
    with parts.supervised() as supervisor:
        assert supervisor.start()
        watching = threading.Thread(target=supervisor.watch)
        watching.start()
        waits_until(lambda: any("hung: no progress" in line for line in parts.lines), seconds=20)
        supervisor.request_stop()
        watching.join()
    assert any("hung: no progress" in line for line in parts.lines)


def test_a_fork_of_which_nobody_can_be_told_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    program = (sys.executable, "-ISc", "import time; time.sleep(10)")
    ours, theirs = socket.socketpair()
    with subprocess.Popen(program, process_group=0) as fork, theirs:

        def closes() -> int:
            ours.close()
            return fork.pid

        monkeypatch.setattr(fork_server, "_fork", closes)
        ours.sendall(b"{}\n")
        assert fork_server.serve(theirs) is None
        assert fork.wait(10) == -signal.SIGKILL


def test_a_server_forks_although_signals_of_ended_children_were_ignored(tmp_path: Path) -> None:
    parts = Parts(tmp_path)
    ignores = ("env", "--ignore-signal=CHLD", *parts.server.argv)
    parts.server = replace(parts.server, argv=ignores)
    with parts.supervised() as supervisor:
        assert supervisor.start()


def test_a_failed_start_names_the_log_of_the_server_too(tmp_path: Path) -> None:
    parts = Parts(tmp_path)
    parts.part = replace(parts.part, cwd=tmp_path / "missing", ready=lambda pid: False)
    with pytest.raises(StartError) as raised, parts.supervised() as supervisor:
        supervisor.start()
    assert str(tmp_path / "logs" / "server.log") in raised.value.advice


@pytest.mark.parametrize("has_read", [True, False])
def test_a_server_that_closes_its_connection_can_fork_nothing(has_read: bool) -> None:
    forks = forking.Forks()
    with forks.connect() as server:
        server.sendall(forking.READY)
        assert forks.is_ready()
        forks.load()
        if has_read:
            assert server.recv(100)
    assert not forks.may_fork(early=True)
    assert not forks.is_open()
    forks.close()
