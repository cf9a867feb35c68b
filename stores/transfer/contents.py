"""Chunks as an archive keeps them: lines of JSON, and their vectors as arrays."""

import io
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
from pydantic import Field, TypeAdapter

from stores.records import ChunkRecord, Vector
from stores.transfer.parcel import PLAIN

_Number = Annotated[int, Field(ge=0, lt=2**31)]


@dataclass(frozen=True)
class Line:
    """A chunk but for its vectors; its document is the one whose line it is."""

    chunk_id: Annotated[str, Field(min_length=1, max_length=64)]
    body: str
    terms: str
    parent_id: str
    section: str
    heading: str
    title: str
    filename: str
    lang: str
    level: _Number
    ordinal: _Number
    start: _Number
    end: _Number
    properties: dict[str, Any]


@dataclass(frozen=True)
class Content:
    """The bytes of chunks.jsonl and of vectors.npz; the names of vectors in the arrays' order."""

    lines: bytes
    vectors: bytes
    vector_names: tuple[str, ...]


_LINE = TypeAdapter(Line)


def encode(chunks: Sequence[ChunkRecord]) -> Content:
    """Write chunks down.

    The array `vectors` has shape (chunks, dimension). Vectors of the n-th name are `named-n`, those
    of the chunks at the places in `rows-n`.
    """
    lines = b"".join(_LINE.dump_json(_line(chunk)) + b"\n" for chunk in chunks)
    names = tuple(sorted({name for chunk in chunks for name in chunk.named}))
    arrays: dict[str, npt.NDArray[Any]] = {}
    if chunks:
        arrays["vectors"] = np.stack([chunk.vector for chunk in chunks], dtype=np.float32)
    for n, name in enumerate(names):
        rows = [row for row, chunk in enumerate(chunks) if name in chunk.named]
        arrays[f"rows-{n}"] = np.array(rows, np.int64)
        arrays[f"named-{n}"] = np.stack([chunks[row].named[name] for row in rows], dtype=np.float32)
    file = io.BytesIO()
    np.savez(file, **arrays)  # type: ignore[arg-type]  # of names that are no parameters
    return Content(lines, file.getvalue(), names)


def decode(content: Content, document_id: str) -> list[ChunkRecord]:
    """Read chunks back; ValueError or KeyError where anything does not fit."""
    lines = [_LINE.validate_json(line, strict=True) for line in content.lines.splitlines()]
    arrays = _arrays(content.vectors)
    none = np.zeros((0, 0), np.float32)
    vectors = _of_floats(arrays.get("vectors"), len(lines)) if lines else none
    named: list[dict[str, Vector]] = [{} for _ in lines]
    for n, name in enumerate(content.vector_names):
        rows = arrays[f"rows-{n}"]
        if rows.dtype != np.int64 or rows.ndim != 1:
            raise ValueError("rows are not numbers of lines")
        for row, vector in zip(rows, _of_floats(arrays[f"named-{n}"], len(rows)), strict=True):
            if not 0 <= row < len(lines):
                raise ValueError("a row is no line's")
            named[row][name] = vector
    return [
        ChunkRecord(**line.__dict__, document_id=document_id, vector=vector, named=own)
        for line, vector, own in zip(lines, vectors, named, strict=True)
    ]


def _line(chunk: ChunkRecord) -> Line:
    plain = {name: getattr(chunk, name) for name in PLAIN if name != "document_id"}
    return Line(**plain | {"terms": chunk.terms, "properties": dict(chunk.properties)})


def _arrays(content: bytes) -> dict[str, npt.NDArray[Any]]:
    """Read arrays that are no larger than their bytes: a compressed one could be of any size."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as held:
            files = held.infolist()
            if any(file.compress_type != zipfile.ZIP_STORED for file in files):
                raise ValueError("an array is compressed")
            if sum(file.file_size for file in files) > len(content):
                raise ValueError("an array is there more than once")
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            found = {name: arrays[name] for name in arrays.files}
    except Exception as error:  # at hostile bytes zipfile and numpy raise a dozen kinds
        raise ValueError("vectors.npz cannot be read") from error
    if not all(isinstance(array, np.ndarray) for array in found.values()):
        raise ValueError("vectors.npz holds what is no array")
    return found


def _of_floats(array: npt.NDArray[Any] | None, count: int) -> npt.NDArray[np.float32]:
    if array is None or array.dtype != np.float32 or array.ndim != 2 or len(array) != count:
        raise ValueError("vectors do not fit the chunks")
    return array
