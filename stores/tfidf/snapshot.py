"""A fit on disk: arrays and JSON, never a pickle; each file is written once.

A snapshot is a folder that one rename publishes complete, and that never changes. Its largest
arrays are mapped into memory, so that all processes share them.
"""

import json
import os
import shutil
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from scipy import sparse

from callslip.stores.records import CollectionSchema
from callslip.stores.tfidf.cells import Cells
from callslip.stores.tfidf.grams import Model, Postings
from callslip.stores.tfidf.nearest import Vectors
from callslip.stores.tfidf.table import Keys

FORMAT = 2

_MAPPED = ("indices", "data")
"""The arrays of the postings that are files of their own, with check sums."""


class SnapshotDamaged(Exception):
    """The files of a snapshot are missing, damaged or of another schema."""


@dataclass(frozen=True)
class Block:
    """Chunks that are searched together: their keys (ascending), postings and vectors by name."""

    keys: Keys
    postings: Postings
    vectors: Mapping[str, Vectors]


def save(folder: Path, model: Model, block: Block) -> None:
    """Write a snapshot into a folder that already contains its vectors (`vectors_file`)."""
    matrix = block.postings.matrix
    names = sorted(block.vectors)
    arrays = {
        "keys": block.keys,
        "grams": model.grams,
        "idf": model.idf,
        "indptr": matrix.indptr,
    }
    for i, name in enumerate(names):
        vectors = block.vectors[name]
        arrays |= {f"slots{i}": vectors.slots, f"lengths{i}": vectors.lengths}
        if vectors.cells:
            cells = vectors.cells
            arrays |= {f"centroids{i}": cells.centroids, f"starts{i}": cells.starts}
            arrays |= {f"even{i}": np.array(cells.even)}
    np.savez(folder / "index.npz", allow_pickle=False, **arrays)
    sums = {}
    for name in _MAPPED:
        array = getattr(matrix, name)
        np.save(folder / f"{name}.npy", array, allow_pickle=False)
        sums[name] = zlib.crc32(array)
    about = {"format": FORMAT, "vectors": names, "words": list(model.words), "sums": sums}
    (folder / "words.json").write_text(json.dumps(about, ensure_ascii=False), encoding="utf-8")


def publish(draft: Path, folder: Path) -> None:
    """Rename a draft to its final name after all its files are on the disk."""
    for path in draft.iterdir():
        _sync(path)
    _sync(draft)
    draft.rename(folder)
    _sync(folder.parent)


def vectors_file(folder: Path, names: Mapping[str, object], name: str) -> Path:
    """The path of the vectors of this name; `names` are the names of all vectors."""
    return folder / f"vectors{sorted(names).index(name)}.npy"


def load(folder: Path, schema: CollectionSchema) -> tuple[Model, Block]:
    """Read a snapshot; vectors are mapped into memory. Raises SnapshotDamaged."""
    try:
        with (
            (folder / "index.npz").open("rb") as file,
            np.load(file, allow_pickle=False) as archive,
        ):
            arrays = {name: archive[name] for name in archive.files}
        about = json.loads((folder / "words.json").read_text(encoding="utf-8"))
        keys, grams, idf = arrays["keys"], arrays["grams"], arrays["idf"]
        _check(about["format"] == FORMAT, "format")
        _check(len(keys) > 0 and keys.dtype == np.int64 and bool((np.diff(keys) > 0).all()), "keys")
        _check(len(idf) == len(grams), "idf")
        for name in _MAPPED:
            arrays[name] = _mapped(folder / f"{name}.npy")
            _check(zlib.crc32(arrays[name]) == about["sums"][name], name)
        matrix = sparse.csc_array(
            (arrays["data"], arrays["indices"], arrays["indptr"]), shape=(len(keys), len(grams))
        )
        matrix.check_format(full_check=True)
        words = {word: number for number, word in enumerate(about["words"])}
        postings = Postings(grams, matrix)
        vectors = _vectors(folder, schema, arrays, about["vectors"])
        return Model(words, grams, idf, len(keys)), Block(keys, postings, vectors)
    except (OSError, ValueError, LookupError, TypeError, EOFError, BadZipFile, zlib.error) as error:
        raise SnapshotDamaged(f"{type(error).__name__}: {error}") from error


def _vectors(
    folder: Path, schema: CollectionSchema, arrays: Mapping[str, Any], names: list[str]
) -> dict[str, Vectors]:
    _check(names == sorted({"": None, **schema.named}), "names")
    vectors = {}
    for i, name in enumerate(names):
        slots, long = arrays[f"slots{i}"], arrays[f"lengths{i}"]
        rows = _mapped(folder / f"vectors{i}.npy")
        shape = (len(slots), schema.vector(name).dimension)
        _check(rows.shape == shape and rows.dtype == np.float32 and len(long) == len(slots), "rows")
        _check(bool(((slots >= 0) & (slots < len(arrays["keys"]))).all()), "slots")
        cells = None
        if f"centroids{i}" in arrays:
            cells = Cells(arrays[f"centroids{i}"], arrays[f"starts{i}"], bool(arrays[f"even{i}"]))
            _check(cells.centroids.shape == (len(cells.starts) - 1, shape[1]), "centroids")
            bounds = np.diff(cells.starts, prepend=0, append=len(rows))
            _check(bool((bounds >= 0).all()) and bounds[0] == bounds[-1] == 0, "cells")
        vectors[name] = Vectors(slots, rows, long, cells)
    return vectors


def _mapped(path: Path) -> Any:
    return np.asarray(np.lib.format.open_memmap(path, mode="r"))


def discard(root: Path, keep: str | None) -> None:
    """Remove all snapshots but `keep`, and all drafts; readers continue with their open files."""
    for path in root.iterdir():
        if path.is_dir() and path.name != keep:
            shutil.rmtree(path, ignore_errors=True)


def _check(holds: bool, what: str) -> None:
    if not holds:
        raise ValueError(f"its {what} do not fit")


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
