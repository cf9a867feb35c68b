"""Chunks with what keyword search and filters need to know of them."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from ingestion.parts import Chunk, EnrichedChunk
from models.language import lang


class Analyzer(Protocol):
    """What keyword indexes and queries share; `models.analyzer.Analyzer` is one."""

    def analyze(self, text: str) -> str:
        """The terms of a text, separated by spaces."""
        ...


def enrich(
    text: str,
    chunks: Sequence[Chunk],
    analyzer: Analyzer,
    known: Mapping[str, str] | None = None,
) -> list[EnrichedChunk]:
    """Add the terms and the language of each chunk's own text; title and heading stay apart.

    `known` are terms by chunk id that this analyzer gave before: the same id is the same text.
    """
    enriched = []
    for chunk in chunks:
        content = text[chunk.start : chunk.end]
        terms = (known or {}).get(chunk.chunk_id)
        if terms is None:
            terms = analyzer.analyze(content)
        enriched.append(EnrichedChunk(chunk, lang(content), terms))
    return enriched
