"""Builds, once, the files that the local model needs in addition to its weights."""

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock

from callslip.models.e5.weights import SHA256, Weights

_BUILD = 2
"""Incremented when `onnx_graph` or `pieces` change their output for the same weights."""


@dataclass(frozen=True)
class PreparedModel:
    """The paths of the built files, which never change.

    Their names contain the digest of the weights and the build number.
    """

    graph: Path
    pieces: Path


def build_once(file: Path, build: Callable[[], bytes]) -> Path:
    """Write what `build` returns to a file that is missing, and return its path.

    Several processes may call this function at once: one builds, the others wait. The file is
    complete or absent.
    """
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(file.with_suffix(".lock")):
            if not file.exists():
                _write(file, build())
    return file


def prepare(models_dir: Path) -> PreparedModel:
    """Build the ONNX graph and the SentencePiece model in `models_dir` if they are missing.

    A build takes seconds. Raises SettingsError if the weights are missing or are not the expected
    ones.
    """
    model = _paths(models_dir)
    build_once(model.graph, _graph)
    build_once(model.pieces, _pieces)
    return model


def is_prepared(models_dir: Path) -> bool:
    """Return whether the files are built."""
    model = _paths(models_dir)
    return model.graph.exists() and model.pieces.exists()


def _paths(models_dir: Path) -> PreparedModel:
    stem = f"e5-small-{SHA256[:8]}-{_BUILD}"
    return PreparedModel(models_dir / f"{stem}.onnx", models_dir / f"{stem}.spm")


def _graph() -> bytes:
    from callslip.models.e5 import onnx_graph  # imports onnx, which only a build needs

    return onnx_graph.serialize(Weights.of_wheel())


def _pieces() -> bytes:
    from callslip.models.e5 import pieces

    return pieces.serialize(Weights.of_wheel())


def _write(path: Path, content: bytes) -> None:
    temporary = path.with_name(path.name + ".tmp")  # under the lock, no live process writes this
    with temporary.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


if __name__ == "__main__":
    prepare(Path(sys.argv[1]))
