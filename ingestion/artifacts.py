"""What each step puts out, how it is kept, and what of it the status shows."""

import hashlib
import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
from pydantic import TypeAdapter

from ingestion.parts import Chunk, Enriched, ExtractedText, Section
from stores.records import Vector

T = TypeVar("T")

FORMAT = "2"
"""Part of every artifact's name: raise it when a step's code changes what it puts out."""


@dataclass(frozen=True)
class Artifact(Generic[T]):
    """How the output of one step becomes bytes and back, and its numbers."""

    dump: Callable[[T], bytes]
    load: Callable[[bytes], T]
    counts: Callable[[T], dict[str, int]]


def artifact_name(step: str, source: str, **matters: Any) -> str:
    """The name of a step's output: a hash of its input's name and of the settings that matter."""
    told = json.dumps([FORMAT, step, source, matters], sort_keys=True, ensure_ascii=True)
    return f"{step}-{hashlib.blake2b(told.encode(), digest_size=16).hexdigest()}"


def _json(adapter: TypeAdapter[T], counts: Callable[[T], dict[str, int]]) -> Artifact[T]:
    return Artifact(adapter.dump_json, adapter.validate_json, counts)


def _dump_vectors(vectors: Vector) -> bytes:
    file = io.BytesIO()
    np.save(file, vectors, allow_pickle=False)
    return file.getvalue()


def _load_vectors(content: bytes) -> Vector:
    vectors: Vector = np.load(io.BytesIO(content), allow_pickle=False)
    return vectors


def _text_counts(text: ExtractedText) -> dict[str, int]:
    counts = {"chars": len(text.text), "pages": len(text.pages), "warnings": len(text.warnings)}
    return counts | ({"files": len(text.attachments)} if text.attachments else {})


_TEXT = TypeAdapter(ExtractedText)
EXTRACTED = Artifact(
    lambda text: _TEXT.dump_json(text, exclude={"attachments": {"__all__": {"content"}}}),
    _TEXT.validate_json,
    _text_counts,
)
SECTIONS = _json(TypeAdapter(list[Section]), lambda sections: {"sections": len(sections)})
CHUNKS = _json(
    TypeAdapter(list[Chunk]),
    lambda chunks: {"chunks": len(chunks), "tokens": sum(c.tokens for c in chunks)},
)
ENRICHED = _json(
    TypeAdapter(Enriched),
    lambda e: {
        "chunks": len(e.chunks),
        "terms": sum(c.terms.count(" ") + 1 for c in e.chunks),
        "entities": len(e.properties.get("entities", ())),
        "warnings": len(e.warnings),
    },
)
VECTORS = Artifact(_dump_vectors, _load_vectors, lambda vectors: {"vectors": len(vectors)})
