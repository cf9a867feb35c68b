"""Cuts the text of a document that is in with other lengths of chunks, and stores nothing.

`files.py` cuts a text or file that is not in.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from callslip.config.settings import ChunkingSettings
from callslip.errors import DocumentNotFound
from callslip.ingestion.artifacts import CHUNKS, EXTRACTED, SECTIONS, Artifact, T, stored
from callslip.ingestion.chunks.chunk import chunk
from callslip.ingestion.chunks.lengths import lengths
from callslip.ingestion.context import StepContext
from callslip.ingestion.values import Chunk, Section
from callslip.stores.ledger import DocumentRecord, Step
from callslip.stores.ledger.documents.versions import check_file, check_newest


@dataclass(frozen=True)
class Cut:
    """The chunks of a document's live version, and those that other lengths make of its text."""

    chunking: ChunkingSettings
    now: Sequence[Chunk]
    then: Sequence[Chunk]


def cut_otherwise(
    context: StepContext, record: DocumentRecord, named: Mapping[str, int | None]
) -> Cut:
    """Cut the live version into chunks with these lengths, which are named as in `lengths`.

    None keeps the length that the version has. With the lengths of the version the chunks are its
    own, whose cuts may be those of earlier versions.

    Raises InvalidRequest if a length is impossible, Conflict if the newest version is not live or
    has no file, and DocumentNotFound if its text is not stored.
    """
    newest = record.newest
    if record.deleted_at is not None:
        raise DocumentNotFound(f"document {record.document_id!r} was deleted")
    check_file(newest.size)
    check_newest(newest.version, newest.version, record.live_version)
    reads = context.embedder_of(context.ledger.collections.get(record.collection)).max_tokens
    own = newest.chunking
    present = ChunkingSettings(**own) if own else context.settings.chunking
    chunking = lengths(present, reads, **named)
    now: list[Chunk] = _read(context, record, "chunk", CHUNKS)
    if chunking == present:
        return Cut(chunking, now, now)
    extracted = _read(context, record, "extract", EXTRACTED)
    sections: list[Section] = _read(context, record, "sectionize", SECTIONS)
    then = chunk(
        extracted.text,
        sections,
        context.tokenizer,
        chunking,
        record.document_id,
        extracted.blocks,
        codes=context.settings.language_codes,
    )
    return Cut(chunking, now, then)


def _read(context: StepContext, record: DocumentRecord, step: Step, kind: Artifact[T]) -> T:
    made = stored(context.backend, record.document_id, record.newest.version, step, kind)
    if made is None:
        raise DocumentNotFound(
            f"the text of document {record.document_id!r} is gone",
            hint="`callslip audit --repair` extracts that of the live version again.",
        )
    return made
