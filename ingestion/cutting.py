"""Cuts the text of a document that is in with other lengths of chunks, and stores nothing.

`preview.py` cuts a text or file that is not in.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import ValidationError

from callslip.config.settings import ChunkingSettings
from callslip.errors import Conflict, DocumentNotFound, InvalidRequest
from callslip.ingestion.artifacts import CHUNKS, EXTRACTED, SECTIONS, Artifact, T
from callslip.ingestion.chunks.chunk import chunk
from callslip.ingestion.context import StepContext
from callslip.ingestion.values import Chunk, Section
from callslip.models.embedders.choice import embedder_of
from callslip.stores.ledger import DocumentRecord, Step

TARGET = 0.9
"""The target length as a share of the longest chunk, as in the settings' defaults."""

SHORTEST = 32
"""The least value of the longest chunk, in tokens."""


@dataclass(frozen=True)
class Cut:
    """The chunks of a document's live version, and those that other lengths make of its text."""

    chunking: ChunkingSettings
    now: Sequence[Chunk]
    then: Sequence[Chunk]


def cut_otherwise(
    context: StepContext, record: DocumentRecord, most: int | None, overlap: int | None
) -> Cut:
    """Cut the live version into chunks of at most `most` tokens that share at most `overlap`.

    The longest chunk is what the embedder of the collection reads, if that is less than `most`.
    None keeps the length that the version has.

    Raises InvalidRequest if the lengths contradict each other, Conflict if the newest version is
    not live, and DocumentNotFound if its text is not stored.
    """
    newest = record.newest
    if record.deleted_at is not None or not newest.size:
        raise DocumentNotFound(f"document {record.document_id!r} has no text to cut")
    if newest.version != record.live_version:
        raise Conflict(
            f"version {newest.version} of document {record.document_id} is not live",
            hint="Wait until it is, and try again.",
        )
    collection = context.ledger.collections.get(record.collection)
    reads = embedder_of(collection.embedder, context.embedder, context.previous).max_tokens
    own = newest.chunking
    present = ChunkingSettings(**own) if own else context.settings.chunking
    chunking = _lengths(present, most, overlap, reads)
    extracted = _artifact(context, record, "extract", EXTRACTED)
    sections: list[Section] = _artifact(context, record, "sectionize", SECTIONS)
    then = chunk(
        extracted.text,
        sections,
        context.tokenizer,
        chunking,
        record.document_id,
        extracted.blocks,
        codes=context.settings.language_codes,
    )
    now: list[Chunk] = _artifact(context, record, "chunk", CHUNKS)
    return Cut(chunking, now, then)


def _lengths(
    present: ChunkingSettings, most: int | None, overlap: int | None, reads: int
) -> ChunkingSettings:
    longest = present.max_tokens if most is None else min(most, reads)
    target = present.target_tokens if most is None else max(SHORTEST, round(longest * TARGET))
    shared = min(present.overlap_tokens, target // 2) if overlap is None else overlap
    try:
        return ChunkingSettings(target_tokens=target, max_tokens=longest, overlap_tokens=shared)
    except ValidationError as error:
        detail = str(error.errors()[0]["msg"]).removeprefix("Value error, ")
        raise InvalidRequest(f"chunks of {longest} tokens that share {shared}: {detail}") from None


def _artifact(context: StepContext, record: DocumentRecord, step: Step, kind: Artifact[T]) -> T:
    name = context.ledger.documents.artifact(record.document_id, record.newest.version, step)
    try:
        if name is not None:
            return kind.load(context.blobs.read(record.document_id, name))
    except FileNotFoundError:
        pass
    raise DocumentNotFound(
        f"the text of document {record.document_id!r} is gone",
        hint="`callslip audit --repair` extracts that of the live version again.",
    )
