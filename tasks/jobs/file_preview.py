"""The job that cuts a text or file for a preview in an ingest worker."""

import base64
from itertools import islice
from typing import Any

from callslip.ingestion.chunks.lengths import lengths
from callslip.ingestion.pages.units import page_table
from callslip.ingestion.previews.files import preview
from callslip.ingestion.values import Chunk
from callslip.messages.chunks import ChunksPreview, PreviewedChunk
from callslip.messages.search import Span
from callslip.retrieval.ranking.hits import pages_of
from callslip.tasks.composition import Context


def cut(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """Cut a file, and return a `ChunksPreview` as JSON.

    `request` has the `content` in base64, the `filename`, the name of the `collection`, the
    `lengths` by name, null for those of the settings, the `limit` of chunks to return, and of the
    collection `json_fields` and `scrub`. Raises InvalidRequest if a length is impossible.
    """
    reads = context.steps.embedder_of(context.ledger.collections.get(request["collection"]))
    chunking = lengths(context.settings.chunking, reads.max_tokens, **request["lengths"])
    content, filename = base64.b64decode(request["content"]), request["filename"]
    more = {name: request[name] for name in ("json_fields", "scrub")}
    made = preview(context.steps, content, filename, chunking, **more)
    text, pages = made.extracted.text, page_table(made.extracted)

    def message(each: Chunk) -> PreviewedChunk:
        return PreviewedChunk(
            ordinal=each.ordinal,
            section=each.section,
            heading=each.heading,
            text=text[each.start : each.end],
            header=each.header_of(text),
            span=Span(start=each.start, end=each.end),
            pages=pages_of(pages, each.start, each.end),
            tokens=each.tokens,
        )

    return ChunksPreview(
        filename=filename,
        media_type=made.extracted.media_type,
        title=made.extracted.title,
        length=len(text),
        sections=len(made.sections),
        warnings=list(made.extracted.warnings),
        target_tokens=chunking.target_tokens,
        max_tokens=chunking.max_tokens,
        overlap_tokens=chunking.overlap_tokens,
        count=len(made.chunks),
        tokens=sum(each.tokens for each in made.chunks),
        chunks=[message(each) for each in islice(made.chunks, request["limit"])],
    ).model_dump(mode="json")
