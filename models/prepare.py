"""What the local model needs beside its weights file, built once and kept in a folder."""

import os
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock

from models.weights import SHA256, Weights

_BUILD = 2
"""Raised when onnx_graph or tokens write something else from the same weights."""


@dataclass(frozen=True)
class PreparedModel:
    """Files that stay as they are, named by what they are built from."""

    graph: Path
    pieces: Path


def prepare(models_dir: Path) -> PreparedModel:
    """Build the ONNX graph and the SentencePiece model where they are missing (seconds, once).

    Several processes may call it at once: one builds, the others wait. A file is whole or absent.
    Raises SettingsError when the weights are missing or are other ones.
    """
    stem = f"e5-small-{SHA256[:8]}-{_BUILD}"
    model = PreparedModel(models_dir / f"{stem}.onnx", models_dir / f"{stem}.spm")
    if not _complete(model):
        models_dir.mkdir(parents=True, exist_ok=True)
        with FileLock(models_dir / f"{stem}.lock"):
            if not _complete(model):
                _build(model)
    return model


def _complete(model: PreparedModel) -> bool:
    return model.graph.exists() and model.pieces.exists()


def _build(model: PreparedModel) -> None:
    from models import onnx_graph, pieces  # a second of imports that only this needs

    weights = Weights.of_wheel()
    _write(model.pieces, pieces.serialize(weights))
    _write(model.graph, onnx_graph.serialize(weights))


def _write(path: Path, content: bytes) -> None:
    temporary = path.with_name(path.name + ".tmp")  # under the lock it is ours, or a dead process's
    with temporary.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
