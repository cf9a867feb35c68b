"""The systems, and the environment of each: a folder with what its requirements name."""

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from callslip.errors import StartError
from callslip.evals.tables import tell

ROOT = Path(__file__).resolve().parents[2]
REQUIREMENTS = Path(__file__).parent / "requirements"
CACHE = ROOT / "var" / "peers"
"""Environments, built once, and the graph of the embedder; git ignores it."""


@dataclass(frozen=True)
class System:
    """A system of the comparison."""

    name: str
    module: str
    """Of `benchmarks.peers.chains`."""
    environment: str
    """The name of its requirements; empty for Callslip, which has the environment of this run."""
    python: str = ""
    """The interpreter that its packages need, if it is another one than that of this run."""


SYSTEMS: Mapping[str, System] = {
    each.name: each
    for each in (
        System("callslip", "callslip_chain", ""),
        System("haystack", "haystack_chain", "haystack"),
        System("hayhooks", "hayhooks_chain", "haystack"),
        System("langchain", "langchain_chain", "langchain"),
        System("llamaindex", "llamaindex_chain", "llamaindex"),
        System("txtai", "txtai_chain", "txtai"),
        System("haiku", "haiku_chain", "haiku", "python3.13"),
    )
}


def interpreter(system: System, cache: Path = CACHE) -> Path:
    """Return the interpreter of the system's environment, which is built if it is missing.

    Raises StartError if it cannot be built.
    """
    if not system.environment:
        return Path(sys.executable)
    files = [REQUIREMENTS / f"{name}.txt" for name in ("embedder", system.environment)]
    folder = cache / "environments" / system.environment
    marker = folder / f"complete-{_digest(files)}"
    python = folder / "bin" / "python"
    if marker.exists():
        return python
    own = shutil.which(system.python) if system.python else sys.executable
    if own is None:
        raise StartError(f"{system.name} needs {system.python}, which is not on the PATH")
    tell(f"building the environment of {system.environment}")
    _run((own, "-m", "venv", "--clear", str(folder)))
    requirements = [word for file in files for word in ("-r", str(file))]
    _run((str(python), "-m", "pip", "install", "--quiet", *requirements))
    marker.touch()
    return python


def command(system: System, python: Path, data: Path, models: Path) -> Sequence[str]:
    """Return the command of the system's process over a folder of data."""
    module = f"benchmarks.peers.chains.{system.module}"
    return (str(python), "-P", "-m", module, str(data), str(models))


def variables(cache: Path = CACHE) -> dict[str, str]:
    """Return the variables of all systems: where Callslip's modules are, and no calls home."""
    path = cache / "path"
    path.mkdir(parents=True, exist_ok=True)
    for package in ("callslip", "benchmarks"):  # the root has modules with common names
        if not (path / package).exists():
            (path / package).symlink_to(ROOT / package)
    quiet = {
        "ANONYMIZED_TELEMETRY": "False",
        "HAYSTACK_TELEMETRY_ENABLED": "False",
        "HF_HUB_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false",
    }
    return dict(os.environ) | quiet | {"PYTHONPATH": str(path)}


def _digest(files: Sequence[Path]) -> str:
    return hashlib.blake2b(b"".join(f.read_bytes() for f in files), digest_size=4).hexdigest()


def _run(arguments: Sequence[str]) -> None:
    try:
        subprocess.run(arguments, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        output = getattr(error, "stderr", "") or str(error)
        raise StartError(f"{' '.join(arguments[:4])} … failed:\n{output[-1000:]}") from error
