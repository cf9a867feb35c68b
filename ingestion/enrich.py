"""Chunks with what keyword search and filters need to know of them."""

from collections.abc import Sequence
from typing import Protocol

from ingestion.parts import Chunk, EnrichedChunk
from models.language import lang


class Analyzer(Protocol):
    """What keyword indexes and queries share; `models.analyzer.Analyzer` is one."""

    def analyze(self, text: str) -> str:
        """The terms of a text, separated by spaces."""
        ...


def enrich(text: str, chunks: Sequence[Chunk], analyzer: Analyzer) -> list[EnrichedChunk]:
    """Add the terms and the language of each chunk's own text; title and heading stay apart."""
    enriched = []
    for chunk in chunks:
        content = chunk.read(text)
        enriched.append(EnrichedChunk(chunk, lang(content), analyzer.analyze(content)))
    return enriched
