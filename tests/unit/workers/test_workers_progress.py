"""When a part is hung, by a clock of the test's own; then over a real little process."""

import os
import signal
import sys
import threading
import time
from pathlib import Path

import click
import pytest

from callslip.workers.supervision import progress as progress_module
from callslip.workers.supervision import supervisor as supervisor_module
from callslip.workers.supervision.child import Part
from callslip.workers.supervision.progress import QUIET, RECOVERY, Progress
from callslip.workers.supervision.supervisor import Supervisor

SLEEP = (sys.executable, "-ISc", "import time; time.sleep(60)")


def test_a_part_is_hung_when_its_patience_is_over() -> None:
    progress = Progress(8.0, now=100.0)
    assert not progress.is_hung(108.0)
    assert progress.is_hung(108.1)
    progress.show(105.0)
    assert not progress.is_hung(113.0)
    assert progress.is_hung(113.1)
    assert progress.silence(113.0) == 8.0


def test_an_older_proof_of_progress_changes_nothing() -> None:
    progress = Progress(8.0, now=100.0)
    progress.show(90.0)
    assert progress.silence(101.0) == 1.0


def test_an_excused_part_has_time_to_recover_and_then_its_own_patience_again() -> None:
    progress = Progress(8.0, now=100.0)
    progress.excuse(107.0)
    assert not progress.is_hung(107.0 + RECOVERY)
    assert progress.is_hung(107.1 + RECOVERY)
    progress.show(120.0)
    assert progress.is_hung(128.1)


def test_a_part_excuses_others_long_before_it_is_hung_itself() -> None:
    progress = Progress(8.0, now=100.0)
    assert not progress.is_quiet(100.0 + QUIET)
    assert progress.is_quiet(100.1 + QUIET)
    assert not progress.is_hung(100.1 + QUIET)


class Watched:
    """A supervisor in a thread-free loop, whose parts prove progress as the test says."""

    def __init__(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(progress_module, "PROBE_EVERY", 0.01)
        monkeypatch.setattr(progress_module, "QUIET", 0.1)
        self.seen: dict[str, bool | None] = {"server": True, "worker": True}
        self.lines: list[str] = []
        self.log = tmp_path / "up.log"
        server, worker = (
            Part(name, SLEEP, os.environ, works=lambda pid, n=name: self.seen[n], patience=patience)  # type: ignore[misc]
            for name, patience in (("server", 0.4), ("worker", 0.2))
        )
        worker = Part(**{**worker.__dict__, "after": ("server",)})
        self.supervisor = Supervisor([server, worker], tmp_path, self.hear)

    def hear(self, line: str) -> None:
        self.lines.append(click.unstyle(line))
        if "after its end" in line:
            name = line.split()[0]
            self.seen[name] = True
            self.supervisor.request_stop()

    def ends(self) -> list[str]:
        return [line.split()[0] for line in self.lines if "killed after" in line]

    def watch(self, seconds: float = 20.0) -> None:
        bound = threading.Timer(seconds, self.supervisor.request_stop)
        bound.start()
        self.supervisor.watch()
        bound.cancel()


@pytest.fixture
def watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Watched:
    return Watched(tmp_path, monkeypatch)


def test_a_hung_part_is_killed_started_again_and_reported(watched: Watched) -> None:
    with watched.supervisor as supervisor:
        assert supervisor.start()
        watched.seen["worker"] = False
        watched.watch()
    assert watched.ends() == ["worker"]
    logged = watched.log.read_text()
    assert "UTC worker hung: no progress for 0." in logged
    assert "starting it again in 0.5 s" in logged


def test_a_part_whose_server_hangs_is_excused_and_only_the_server_is_restarted(
    watched: Watched,
) -> None:
    with watched.supervisor as supervisor:
        assert supervisor.start()
        watched.seen["server"] = False
        time.sleep(0.12)
        watched.seen["worker"] = None
        watched.watch()
    assert watched.ends() == ["server"]


def test_a_supervisor_that_stood_still_itself_restarts_nothing(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor_module, "LONG_TICK", 0.3)
    with watched.supervisor as supervisor:
        assert supervisor.start()
        watched.seen = {"server": False, "worker": False}
        time.sleep(0.5)
        threading.Timer(0.01, watched.seen.update, [{"server": True, "worker": True}]).start()
        watched.watch(0.3)
    assert watched.ends() == []


def test_a_named_part_is_restarted_with_the_reason(watched: Watched) -> None:
    with watched.supervisor as supervisor:
        assert supervisor.start()
        supervisor.restart("server", "3 writes in a row timed out")
        watched.watch()
    assert watched.ends() == ["server"]
    assert "UTC server 3 writes in a row timed out; killed after" in watched.log.read_text()


def test_an_unknown_part_cannot_be_restarted(watched: Watched) -> None:
    with pytest.raises(KeyError):
        watched.supervisor.restart("no-such-part", "")


def test_a_stopped_process_is_killed_for_good(watched: Watched) -> None:
    pids: dict[str, int] = {}
    watched.supervisor._changed = pids.update
    with watched.supervisor as supervisor:
        assert supervisor.start()
        before = pids["worker"]
        os.kill(before, signal.SIGSTOP)
        watched.seen["worker"] = False
        watched.watch()
    assert pids["worker"] != before
