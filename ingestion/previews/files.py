"""Cuts a text or file that is not in as ingestion would, and stores nothing.

`documents.py` cuts a document that is in with other lengths.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from callslip.config.settings import ChunkingSettings
from callslip.ingestion.chunks.chunk import chunk
from callslip.ingestion.context import StepContext
from callslip.ingestion.enrich.scrub import masked_extract
from callslip.ingestion.sections.sectionize import sectionize
from callslip.ingestion.values import Chunk, ExtractedText, Section


@dataclass(frozen=True)
class Preview:
    """A text with its sections and chunks."""

    extracted: ExtractedText
    sections: list[Section]
    chunks: list[Chunk]


def preview(
    context: StepContext,
    content: bytes,
    filename: str,
    chunking: ChunkingSettings,
    *,
    json_fields: Mapping[str, str],
    scrub: bool = False,
) -> Preview:
    """Read a file in the child process with its limits, and cut its text.

    With `scrub`, the text is without personal data. Raises the errors of extraction.
    """
    codes = context.settings.language_codes
    extracted = context.extractor.extract(content, filename, json_fields)
    if scrub:
        extracted = masked_extract(extracted)
    sections = sectionize(extracted, codes)
    cut = chunk(
        extracted.text,
        sections,
        context.tokenizer,
        chunking,
        "preview",
        extracted.blocks,
        codes=codes,
    )
    return Preview(extracted, sections, cut)
