"""The job that cuts a document's text with other lengths of chunks, in an ingest worker."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from callslip.ingestion.previews.documents import cut_otherwise
from callslip.ingestion.values import Chunk
from callslip.messages.documents import CutChunk, CutCounts, CutPreview
from callslip.tasks.composition import Context

JOB = "chunks.cut"


def cut(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """Cut a document, and return a `CutPreview` as JSON.

    `request` has the `document_id`, the `lengths` by name, null to keep one, and the `limit` of
    chunks to return.
    """
    record = context.ledger.documents.get(request["document_id"])
    steps = replace(context.steps, backend=context.backend)
    made = cut_otherwise(steps, record, request["lengths"])
    same = Counter(c.chunk_id for c in made.now) & Counter(c.chunk_id for c in made.then)
    return CutPreview(
        document_id=record.document_id,
        version=record.newest.version,
        **made.chunking.model_dump(),
        now=_counts(made.now),
        then=_counts(made.then),
        unchanged=same.total(),
        chunks=[
            CutChunk(
                heading=each.heading,
                start=each.start,
                end=each.end,
                tokens=each.tokens,
            )
            for each in islice(made.then, request["limit"])
        ],
    ).model_dump(mode="json")


def _counts(chunks: Sequence[Chunk]) -> CutCounts:
    tokens = [each.tokens for each in chunks]
    return CutCounts(chunks=len(chunks), tokens=sum(tokens), longest=max(tokens, default=0))
