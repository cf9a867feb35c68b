"""A run of tests in which processes are lost."""

import os
import subprocess
import sys
from pathlib import Path

import lost_workers

CONFTEST = """
from pathlib import Path

import lost_workers
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
