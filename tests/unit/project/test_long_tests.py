"""The parts of the long tests: each test is in one of them, and named tests are all run."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import long_forms
import pytest

ROOT = Path(__file__).parents[3]
LONG = """
import pytest


@pytest.mark.long
@pytest.mark.parametrize("n", range(40))
def test_long(n):
    pass


def test_short():
    pass
"""


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """A folder with a suite of forty long cases and a short test, divided as ours is."""
    (tmp_path / "pyproject.toml").write_text(
        '[tool.pytest.ini_options]\ntestpaths = ["tests"]\nmarkers = ["long"]\n'
    )
    (tmp_path / "conftest.py").write_text(
        f"import sys\nsys.path[:0] = {[str(ROOT), *map(str, supported())]!r}\n"
        "import long_forms\n"
        "def pytest_collection_modifyitems(config, items):\n"
        "    part = long_forms.part_of(config)\n"
        "    if part is not None:\n"
        "        long_forms.without_other_parts(items, part)\n"
    )
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_it.py").write_text(LONG)
    return tmp_path


def supported() -> list[Path]:
    return [path for path in (ROOT / "tests" / "support").iterdir() if path.is_dir()]


def collected(suite: Path, *options: str, part: int | None = None) -> set[str]:
    """The ids of the tests that a run has."""
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "--collect-only",
            "-q",
            "-p",
            "no:cacheprovider",
            *options,
        ],
        cwd=suite,
        env={"PATH": os.environ["PATH"], "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        | ({"CALLSLIP_TEST_PART": str(part)} if part else {}),
        capture_output=True,
        text=True,
        check=False,
    )
    return {line for line in done.stdout.splitlines() if "::" in line}


@pytest.mark.long
def test_each_long_test_is_in_one_part_and_the_others_are_in_all(suite: Path) -> None:
    short = "tests/test_it.py::test_short"
    parts = [collected(suite, part=part) for part in range(1, long_forms.PARTS + 1)]
    assert all(short in part for part in parts)
    long = [test for part in parts for test in part if test != short]
    assert len(long) == len(set(long)) == 40
    assert all(len(part) > 1 for part in parts)


@pytest.mark.parametrize(
    "options", [("tests/test_it.py",), ("-k", "long or short"), ("-m", "long")]
)
def test_named_tests_are_all_run(suite: Path, options: tuple[str, ...]) -> None:
    assert len({test for test in collected(suite, *options) if "long" in test}) == 40


@pytest.mark.long
def test_commits_that_follow_each_other_have_the_parts_in_turns(suite: Path) -> None:
    assert len(collected(suite)) == len(collected(suite, part=1))  # outside a clone
    git = shutil.which("git")
    if git is None:
        pytest.skip("git is not installed")
    environ = {"PATH": os.environ["PATH"], "HOME": str(suite)}
    commit = [git, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty"]
    subprocess.run([git, "init", "-q"], cwd=suite, env=environ, check=True)
    seen = []
    for n in range(long_forms.PARTS):
        subprocess.run([*commit, "-m", f"{n}"], cwd=suite, env=environ, check=True)
        seen.append(frozenset(collected(suite)))
    assert set(seen) == {
        frozenset(collected(suite, part=part)) for part in range(1, long_forms.PARTS + 1)
    }
