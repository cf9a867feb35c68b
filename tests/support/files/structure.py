"""Checks of the sections, chunks and parents of a text."""

import numpy as np

from callslip.config.settings import ChunkingSettings
from callslip.ingestion.chunks.chunk import chunk
from callslip.ingestion.sections.hierarchy import LONGEST, with_parents
from callslip.ingestion.sections.sectionize import sectionize
from callslip.ingestion.values import Chunk, ExtractedText, Section
from callslip.models.e5.tokens import Tokenizer
from callslip.stores.records import ChunkRecord, DocumentRecord

LENGTHS = [
    ChunkingSettings(),
    ChunkingSettings(target_tokens=800, max_tokens=900, overlap_tokens=100),
    ChunkingSettings(target_tokens=32, max_tokens=32, overlap_tokens=0),
]


def check_structure(extracted: ExtractedText, tokenizer: Tokenizer) -> None:
    """Its sections tile it; its chunks are their spans, and nest."""
    sections = sectionize(extracted)
    check_sections(extracted, sections)
    for lengths in LENGTHS:
        chunks = chunk(extracted.text, sections, tokenizer, lengths, "d", extracted.blocks)
        check_chunks(extracted, sections, chunks, lengths)
        check_tables(extracted, chunks, tokenizer, lengths)
        check_parents(extracted, chunks)


def check_sections(extracted: ExtractedText, sections: list[Section]) -> None:
    """They tile the text in order, with paths of their own and parents that come before them."""
    assert "".join(extracted.text[s.start : s.end] for s in sections) == extracted.text
    assert [s.order for s in sections] == list(range(len(sections)))
    by_path = {s.path: s for s in sections}
    assert len(by_path) == len(sections)
    for section in sections:
        if section.parent is not None:
            assert by_path[section.parent].order < section.order
            assert by_path[section.parent].level == section.level - 1


def check_chunks(
    extracted: ExtractedText,
    sections: list[Section],
    chunks: list[Chunk],
    lengths: ChunkingSettings,
) -> None:
    """Each is its span, of bounded length, in a section; together they hold all that is seen."""
    text = extracted.text
    seen = bytearray(len(text))
    for number, found in enumerate(chunks):
        content = text[found.start : found.end]
        assert found.ordinal == number
        assert content == content.strip() != ""
        assert found.read(text).endswith(content)
        assert found.tokens <= lengths.max_tokens
        seen[found.start : found.end] = b"\1" * len(content)
    assert all(s or c.isspace() for s, c in zip(seen, text, strict=True))
    assert len({c.chunk_id for c in chunks}) == len(chunks)
    assert {c.section for c in chunks} <= {s.path for s in sections}


def check_tables(
    extracted: ExtractedText, chunks: list[Chunk], tokenizer: Tokenizer, lengths: ChunkingSettings
) -> None:
    """A block that fits is in one chunk whole, unless a section begins in it."""
    text = extracted.text
    for block in extracted.blocks:
        if tokenizer.count(text[block.start : block.end]) > lengths.max_tokens * 0.9:
            continue
        inside = text[block.start : block.end].strip()
        assert any(inside in text[c.start : c.end] for c in chunks)


def check_parents(extracted: ExtractedText, chunks: list[Chunk]) -> None:
    """Every parent is its span and holds its passages."""
    text, vector = extracted.text, np.ones(2, np.float32)
    passages = [
        ChunkRecord(c.chunk_id, "d", text[c.start : c.end], "", vector, start=c.start, end=c.end)
        for c in chunks
    ]
    records = with_parents(DocumentRecord("d", "", ""), text, chunks, passages)
    by_id = {record.chunk_id: record for record in records}
    assert len(by_id) == len(records)
    for record in records:
        assert text[record.start : record.end] == record.body
        if record.level == 2:
            parent = by_id[record.parent_id]
            assert parent.start <= record.start
            assert record.end <= parent.end
            assert len(parent.body) <= max(LONGEST, len(record.body))
