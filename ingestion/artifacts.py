"""Step artifacts: their names, their serialization, and their counters for the status."""

import hashlib
import io
import json
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
import zstandard
from pydantic import TypeAdapter

from callslip.errors import StoreDown
from callslip.ingestion.values import Chunk, Enriched, ExtractedText, Section
from callslip.stores.backend import Backend
from callslip.stores.ledger import Step
from callslip.stores.records import Vector

T = TypeVar("T")

FORMAT = "6"
"""Part of every artifact's name. Raise it if a code change alters the output of a step."""

LEVEL = 6
"""The level of compression. A higher one takes longer and saves little more."""

_ZLIB = b"\x78"
"""The first byte of what zlib has compressed, as earlier versions did; JSON begins with `[` or `{`.
"""


@dataclass(frozen=True)
class Artifact(Generic[T]):
    """The serialization of one step's output, its counters, and what the step left out."""

    dump: Callable[[T], bytes]
    load: Callable[[bytes], T]
    counts: Callable[[T], dict[str, int]]
    warnings: Callable[[T], tuple[str, ...]] = lambda _: ()


def artifact_name(step: str, /, *sources: str, **matters: Any) -> str:
    """Return an artifact name: hashes of the settings that affect the step and of its input."""
    return f"{_how(step, matters)}{_digest(sources, size=16)}"


def made_alike(name: str, step: str, /, **matters: Any) -> bool:
    """Whether the artifact of this name was computed with these settings, from any input."""
    return name.startswith(_how(step, matters))


def stored(
    backend: Backend, document_id: str, version: int, step: Step, kind: Artifact[T]
) -> T | None:
    """Return the output of a version's step; None if it is not stored or damaged.

    Raises StoreDown if the blob store does not answer.
    """
    name = backend.ledger.documents.artifact(document_id, version, step)
    if name is None:
        return None
    try:
        return kind.load(backend.blobs.read(document_id, name))
    except (FileNotFoundError, ValueError):
        return None


def stored_if_up(
    backend: Backend, document_id: str, version: int, step: Step, kind: Artifact[T]
) -> T | None:
    """Return the same, and None if the blob store does not answer: for what can be left out."""
    try:
        return stored(backend, document_id, version, step, kind)
    except StoreDown:
        return None


def _how(step: str, matters: dict[str, Any]) -> str:
    return f"{step}-{_digest([FORMAT, matters], size=6)}-"


def _digest(value: object, *, size: int) -> str:
    encoded = json.dumps(value, sort_keys=True, ensure_ascii=True).encode()
    return hashlib.blake2b(encoded, digest_size=size).hexdigest()


def _json(adapter: TypeAdapter[T], counts: Callable[[T], dict[str, int]]) -> Artifact[T]:
    return _compressed(adapter.dump_json, adapter.validate_json, counts)


def _compressed(
    dump: Callable[[T], bytes],
    load: Callable[[bytes], T],
    counts: Callable[[T], dict[str, int]],
    warnings: Callable[[T], tuple[str, ...]] = lambda _: (),
) -> Artifact[T]:
    """Compress JSON; read compressed JSON, and that which earlier versions stored as it is."""

    def packed(value: T) -> bytes:
        return zstandard.ZstdCompressor(LEVEL, write_checksum=True).compress(dump(value))

    def unpacked(content: bytes) -> T:
        try:
            if content.startswith(_ZLIB):
                content = zlib.decompress(content)
            elif content.startswith(zstandard.FRAME_HEADER):
                content = zstandard.decompress(content)
        except (zlib.error, zstandard.ZstdError) as error:
            raise ValueError(f"a damaged artifact: {error}") from error
        return load(content)

    return Artifact(packed, unpacked, counts, warnings)


def _dump_vectors(vectors: Mapping[str, Vector]) -> bytes:
    """Write the default vectors as .npy; with named ones, an .npz of all in order, and `names`."""
    file = io.BytesIO()
    if vectors.keys() == {""}:
        np.save(file, vectors[""], allow_pickle=False)
    else:
        np.savez(file, *vectors.values(), names=np.array(list(vectors)))
    return file.getvalue()


def _load_vectors(content: bytes) -> Mapping[str, Vector]:
    loaded = np.load(io.BytesIO(content), allow_pickle=False)
    if isinstance(loaded, np.ndarray):
        return {"": loaded}
    with loaded:
        return {str(name): loaded[f"arr_{n}"] for n, name in enumerate(loaded["names"])}


def _text_counts(text: ExtractedText) -> dict[str, int]:
    counts = {"chars": len(text.text), "pages": len(text.pages)}
    left_out = sum(each.left_out is not None for each in text.corrections)
    more = {
        "tables": sum(block.kind == "table" for block in text.blocks),
        "files": len(text.attachments),
        "corrections": len(text.corrections) - left_out,
        "corrections_left_out": left_out,
    }
    return counts | {name: count for name, count in more.items() if count}


_TEXT = TypeAdapter(ExtractedText)
EXTRACTED = _compressed(
    lambda text: _TEXT.dump_json(text, exclude={"attachments": {"__all__": {"content"}}}),
    _TEXT.validate_json,
    _text_counts,
    lambda text: text.warnings,
)
SECTIONS = _json(TypeAdapter(list[Section]), lambda sections: {"sections": len(sections)})
CHUNKS = _json(
    TypeAdapter(list[Chunk]),
    lambda chunks: {"chunks": len(chunks), "tokens": sum(c.tokens for c in chunks)},
)
_ENRICHED = TypeAdapter(Enriched)
ENRICHED = _compressed(
    _ENRICHED.dump_json,
    _ENRICHED.validate_json,
    lambda e: {
        "chunks": len(e.chunks),
        "terms": sum(c.terms.count(" ") + 1 for c in e.chunks),
        "entities": len(e.properties.get("entities", ())),
    },
    lambda e: e.warnings,
)
VECTORS = Artifact(_dump_vectors, _load_vectors, lambda vectors: {"vectors": len(vectors[""])})
"""The vectors of the chunks by vector name, shape (chunks, dimension); the default one has the name
"".
"""
