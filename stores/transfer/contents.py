"""Encodes chunks for an archive, as lines of JSON and NumPy arrays of vectors, and decodes them."""

import io
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
from pydantic import Field, TypeAdapter

from callslip.stores.records import ChunkRecord, Vector
from callslip.stores.transfer.bundle import PLAIN

_Number = Annotated[int, Field(ge=0, lt=2**31)]


@dataclass(frozen=True)
class Line:
    """One line of chunks.jsonl: a chunk without its vectors and without its document id.

    Archives of an earlier release lack the last four fields.
    """

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
    created_at: str = ""
    updated_at: str = ""
    pretty: str = ""
    anchor: str = ""


@dataclass(frozen=True)
class Content:
    """The bytes of chunks.jsonl and of vectors.npz, and the vector names in array order."""

    lines: bytes
    vectors: bytes
    vector_names: tuple[str, ...]


_LINE = TypeAdapter(Line)


def encode(chunks: Sequence[ChunkRecord]) -> Content:
    """Encode chunks.

    The array `vectors` has shape (chunks, dimension). For the n-th vector name, `named-n` has the
    vectors, shape (rows, dimension), and `rows-n` has the indices of their chunks, shape (rows,).
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
    np.savez(file, **arrays)  # type: ignore[arg-type]  # the names are not parameters
    return Content(lines, file.getvalue(), names)


def decode(content: Content, document_id: str) -> list[ChunkRecord]:
    """Decode chunks. Raises ValueError or KeyError if lines and arrays do not fit each other."""
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
    """Read uncompressed arrays only: a compressed array could expand to any size in memory."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            files = archive.infolist()
            if any(file.compress_type != zipfile.ZIP_STORED for file in files):
                raise ValueError("an array is compressed")
            if sum(file.file_size for file in files) > len(content):
                raise ValueError("an array is there more than once")
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            values = {name: arrays[name] for name in arrays.files}
    except Exception as error:  # zipfile and numpy raise a dozen kinds for hostile bytes
        raise ValueError("vectors.npz cannot be read") from error
    if not all(isinstance(array, np.ndarray) for array in values.values()):
        raise ValueError("vectors.npz holds what is no array")
    return values


def _of_floats(array: npt.NDArray[Any] | None, count: int) -> npt.NDArray[np.float32]:
    if array is None or array.dtype != np.float32 or array.ndim != 2 or len(array) != count:
        raise ValueError("vectors do not fit the chunks")
    return array
