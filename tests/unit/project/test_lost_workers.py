"""A run of tests in which processes are lost."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import lost_workers
import pytest
from schedule import GroupScheduling
from xdist.remote import Producer

CONFTEST = """
from pathlib import Path

import lost_workers
import pytest
from schedule import GroupScheduling
from xdist.remote import Producer
import schedule

def pytest_xdist_make_scheduler(config, log):
    return schedule.GroupScheduling(config, log, Path(__file__).parent)

def pytest_testnodedown(node, error):
    if error:
        print(lost_workers.end_of(node))
"""

FILES = {
    "test_a": "def test_a(): pass",
    "test_b": "def test_b(): pass",
    "test_c": "import os\ndef test_ends(): os._exit(3)\ndef test_c(): pass",
    "test_d": "def test_d(): pass",
    "test_e": "import os, signal\ndef test_is_killed(): os.kill(os.getpid(), signal.SIGKILL)",
    "test_f": "def test_f(): pass",
}


def test_others_do_what_lost_workers_left_and_it_is_said_how_each_ended(tmp_path: Path) -> None:
    for name, text in {"conftest": CONFTEST, **FILES}.items():
        (tmp_path / f"{name}.py").write_text(text)
    paths = os.pathsep.join((str(Path(lost_workers.__file__).parent), str(tmp_path)))
    run = subprocess.run(
        (sys.executable, "-m", "pytest", "-n", "1", "-p", "xdist", "-p", "no:cacheprovider"),
        cwd=tmp_path,
        env=os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert " 2 failed, 5 passed in " in run.stdout, run.stdout
    assert "[gw0] process " in run.stdout
    assert " ended with exit code 3\n" in run.stdout
    assert " was ended by signal 9 (Killed)\n" in run.stdout


class Worker:
    """What is sent to a worker; a lost one takes nothing."""

    def __init__(self, name: str, *, lost: bool = False) -> None:
        self.gateway = SimpleNamespace(id=name)
        self.shutting_down = False
        self.sent: list[int] = []
        self._lost = lost

    def send_runtest_some(self, tests: Sequence[int]) -> None:
        if self._lost:
            raise OSError("cannot send (already closed?)")
        self.sent += tests

    def shutdown(self) -> None:
        self.shutting_down = True


@pytest.fixture
def scheduling(tmp_path: Path) -> Any:
    config = SimpleNamespace(option=SimpleNamespace(), getvalue=lambda _: ["popen"] * 2)
    return GroupScheduling(config, Producer("log", enabled=False), tmp_path)  # type: ignore[arg-type]


def test_what_a_worker_was_to_do_that_is_lost_at_this_moment_is_done_by_others(
    scheduling: Any,
) -> None:
    lost, other = Worker("gw0", lost=True), Worker("gw1")
    for worker in (lost, other):
        scheduling.add_node(worker)
        scheduling.add_node_collection(worker, [f"test_{name}.py::test" for name in "abcdef"])
    scheduling.schedule()
    assert scheduling.remove_node(lost) == "test_a.py::test"
    for number in other.sent:  # grows with what it has done
        scheduling.mark_test_complete(other, number)
    assert (sorted(other.sent), other.shutting_down) == ([1, 2, 3, 4, 5], True)


def test_a_new_worker_that_collects_other_tests_ends_the_run(scheduling: Any) -> None:
    workers = Worker("gw0"), Worker("gw1")
    for worker in workers:
        scheduling.add_node(worker)
        scheduling.add_node_collection(worker, ["test_a.py::test", "test_b.py::test"])
    scheduling.schedule()
    scheduling.remove_node(workers[0])
    new = Worker("gw2")
    scheduling.add_node(new)
    with pytest.raises(RuntimeError, match="gw2 collected other tests"):
        scheduling.add_node_collection(new, ["test_a.py::test"])
