"""A commit as a tree of files, and the interpreter that runs it."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from benchmarks.machine import ROOT, git
from callslip.errors import EvaluationError
from callslip.evals.tables import tell

LOCKS = ("requirements.lock", "requirements-dev.lock")


@dataclass(frozen=True)
class Checkout:
    """A clone at one commit, with the interpreter of its environment."""

    commit: str
    folder: Path
    python: str

    @property
    def environ(self) -> dict[str, str]:
        """The variables with which the interpreter imports the packages of this clone."""
        return {"PYTHONPATH": str(self.folder)}

    def run(self, *arguments: str) -> str:
        """Run the interpreter on the clone and return what it prints."""
        environ = {**os.environ, **self.environ}
        command = (self.python, *arguments)
        return subprocess.run(
            command, check=True, env=environ, cwd=self.folder, capture_output=True, text=True
        ).stdout.strip()


def commit_of(revision: str | None, root: Path = ROOT) -> str:
    """Return the commit of a revision; without one, of the checkout as it is.

    Changed tracked files make a commit of their own, which no branch has. Raises EvaluationError if
    there is no such commit.
    """
    try:
        if revision is None:
            return git(root, "stash", "create") or git(root, "rev-parse", "HEAD")
        return git(root, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
    except subprocess.CalledProcessError as error:
        raise EvaluationError(
            f"git knows no commit {revision!r}", hint="Name a commit, a tag or a branch."
        ) from error


def clone(commit: str, folder: Path, root: Path = ROOT) -> None:
    """Put the files of a commit into `folder`, which must not exist. Copies no object of git."""
    git(root, "clone", "--quiet", "--shared", "--no-checkout", str(root), str(folder))
    git(folder, "checkout", "--quiet", "--detach", commit)


def prepare(commit: str, folder: Path) -> Checkout:
    """Clone a commit and find an environment for it: this one if the lock files are the same.

    Otherwise `make install` of the clone makes one from its own lock files.
    """
    clone(commit, folder)
    python = sys.executable
    if any((folder / name).read_bytes() != (ROOT / name).read_bytes() for name in LOCKS):
        tell(f"{commit[:12]} has other lock files: installing an environment for it")
        install = ("make", "-C", str(folder), "install", f"PYTHON={sys.executable}")
        subprocess.run(install, check=True, stdout=sys.stderr)
        python = str(folder / ".venv" / "bin" / "python")
    checkout = Checkout(commit, folder, python)
    compile_modules(checkout)
    module = checkout.run("-c", "import callslip; print(callslip.__file__)")
    if not Path(module).is_relative_to(folder):
        raise EvaluationError(f"{python} imports {module} instead of {folder}")
    return checkout


def compile_modules(checkout: Checkout) -> None:
    """Compile the clone's modules, else the first start would; its libraries are compiled."""
    checkout.run("-m", "compileall", "-q", "-x", r"[/\\]\.venv[/\\]", ".")
