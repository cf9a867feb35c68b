"""What is built holds the package `callslip` alone, and runs beside modules of any other name.

The wheel is installed into a fresh environment, and used from a folder whose modules have the names
that Callslip's own had before they were in one package.
"""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import pytest
from stack import Stack, new_home

ROOT = Path(__file__).resolve().parents[3]

PACKAGE = ROOT / "callslip"

BUILD = """\
import sys
from setuptools import build_meta
target = sys.argv[1]  # setuptools sets it anew
build_meta.build_wheel(target)
build_meta.build_sdist(target)
"""

THEIRS = (
    *("agent", "api", "benchmarks", "cli", "compat", "config", "evals", "ingestion", "models"),
    *("retrieval", "stores", "tasks", "tests", "tools", "workers"),
)
"""Names of our folders, which are free for other people's modules."""

HOSTILE = """\
import pathlib
pathlib.Path(__file__).with_suffix(".imported").touch()
raise ImportError
"""

COMPATIBLE = """\
import sys
assert "" in sys.path
from callslip.compat.annotator import Dialog, Folder, Links, answers, candidates, process, vectorize
from callslip.compat.crate import attach
from callslip.compat.faq import VectorSearch
from callslip.compat.genie import INVOKERS
print(VectorSearch.__module__, *(invoker.__module__ for invoker in INVOKERS.values()))
print(sys.modules["callslip"].__file__)
"""


@dataclass(frozen=True)
class Built:
    """The two archives that are published."""

    wheel: Path
    sdist: Path


@dataclass(frozen=True)
class Environment:
    """A fresh one; `added` is what the wheel added to the top of its site-packages."""

    python: Path
    site_packages: Path
    added: frozenset[str]

    @property
    def callslip(self) -> Path:
        return self.python.with_name("callslip")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """Built from a copy: setuptools writes beside what it reads."""
    source, target = tmp_path_factory.mktemp("source") / "clone", tmp_path_factory.mktemp("dist")
    unwanted = shutil.ignore_patterns(".*", "__pycache__", "*.egg-info", "build", "dist", "var")
    shutil.copytree(ROOT, source, symlinks=True, ignore=unwanted)
    subprocess.run(
        (sys.executable, "-c", BUILD, str(target)), cwd=source, check=True, capture_output=True
    )
    (wheel,), (sdist,) = target.glob("*.whl"), target.glob("*.tar.gz")
    return Built(wheel, sdist)


@pytest.fixture(scope="module")
def environment(built: Built, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """The wheel, in an environment that borrows what Callslip needs from this one."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False, symlinks=True)
    python = folder / "bin" / "python"
    site_packages = Path(sysconfig.get_path("purelib", "venv", {"base": str(folder)}))
    before = {path.name for path in site_packages.iterdir()}
    subprocess.run(
        (
            *(sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet"),
            *("--no-deps", "--no-index", "--disable-pip-version-check", str(built.wheel)),
        ),
        check=True,
        capture_output=True,
    )
    added = {path.name for path in site_packages.iterdir()} - before
    # A .pth file names a folder, whose own .pth files, such as an editable install's, are not read.
    borrowed = dict.fromkeys((sysconfig.get_path("purelib"), sysconfig.get_path("platlib")))
    (site_packages / "borrowed.pth").write_text("".join(f"{path}\n" for path in borrowed))
    python.with_name("chroma").symlink_to(Path(sys.executable).with_name("chroma"))
    return Environment(python, site_packages, frozenset(added))


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Somebody's folder: each name once as a module, every other one as a package."""
    folder = tmp_path_factory.mktemp("theirs")
    for number, name in enumerate(THEIRS):
        if number % 2:
            (folder / name).mkdir()
            (folder / name / "__init__.py").write_text(HOSTILE)
        else:
            (folder / f"{name}.py").write_text(HOSTILE)
    return folder


@pytest.fixture(scope="module")
def installed(
    environment: Environment,
    theirs: Path,
    tmp_path_factory: pytest.TempPathFactory,
    models_dir: Path,
) -> Iterator[Stack]:
    """The installed Callslip, started in that folder."""
    home = new_home(tmp_path_factory, models_dir)
    stack = Stack(home, callslip=environment.callslip, cwd=theirs)
    stack.environ.pop("PYTHONPATH", None)
    yield stack.start()
    stack.stop()


def files_of_the_package() -> set[str]:
    """What the clone has below callslip/, with what its links lead to."""
    found = set()
    for folder, folders, files in os.walk(PACKAGE, followlinks=True):
        folders[:] = [name for name in folders if name != "__pycache__"]
        found |= {(Path(folder) / name).relative_to(ROOT).as_posix() for name in files}
    return found


@pytest.mark.long
def test_the_wheel_holds_every_file_of_the_package_and_nothing_else(built: Built) -> None:
    with zipfile.ZipFile(built.wheel) as wheel:
        names = {name for name in wheel.namelist() if not name.endswith("/")}
    ours = {name for name in names if name.startswith("callslip/")}
    assert ours == files_of_the_package()
    assert {PurePosixPath(name).parts[0] for name in names - ours} == {"callslip-0.1.0.dist-info"}


def test_the_sdist_holds_the_package_as_files_and_what_describes_it(built: Built) -> None:
    with tarfile.open(built.sdist) as sdist:
        members = [member for member in sdist.getmembers() if not member.isdir()]
    assert all(member.isfile() for member in members)
    names = {PurePosixPath(member.name).relative_to("callslip-0.1.0") for member in members}
    ours = {str(name) for name in names if name.parts[0] == "callslip"}
    assert ours == files_of_the_package()
    assert {name.parts[0] for name in names} == {
        *("callslip", "callslip.egg-info", "pyproject.toml", "setup.cfg"),
        *("LICENSE", "PKG-INFO", "README.md"),
    }


def test_it_adds_one_name_to_site_packages(environment: Environment) -> None:
    assert environment.added == {"callslip", "callslip-0.1.0.dist-info"}


def test_what_is_compatible_with_others_is_imported_beside_modules_of_any_name(
    environment: Environment, theirs: Path
) -> None:
    without = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(
        (str(environment.python), "-c", COMPATIBLE),
        cwd=theirs,
        env=without,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    modules, path = done.stdout.splitlines()
    assert all(name.startswith("callslip.compat.") for name in modules.split())
    assert Path(path) == environment.site_packages / "callslip" / "__init__.py"
    assert not list(theirs.rglob("*.imported"))


@pytest.mark.long
def test_it_runs_takes_in_and_searches_beside_modules_of_any_name(
    installed: Stack, theirs: Path
) -> None:
    (theirs / "leave.md").write_text("# Leave\n\nParental leave lasts three years.\n")

    def callslip(*arguments: str) -> dict[str, object]:
        done = subprocess.run(
            (str(installed.callslip), *arguments, "--url", installed.url, "--json"),
            cwd=theirs,
            env=installed.environ,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr + installed.tails()
        answer: dict[str, object] = json.loads(done.stdout)
        return answer

    assert callslip("ingest", "leave.md", "-c", "theirs")["failed"] == []
    (hit, *_) = callslip("search", "how long is parental leave?", "-c", "theirs")["hits"]
    assert "three years" in hit["text"]
    imported = [str(path.relative_to(theirs)) for path in theirs.rglob("*.imported")]
    assert imported == []
