"""Builds chunks for documents and sections above their passages, so that a search can return them.

There are three levels, whatever the depth of the headings, so that level -1, the lowest, contains
every passage; the path of a section shows its depth. Each vector of a parent is the mean of those
of its passages, which needs no embedding; its terms are those of its passages.
docs/quality.md has the measured effect.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from callslip.ingestion.chunks.chunk_ids import Ids
from callslip.ingestion.values import Chunk
from callslip.stores.levels import DOCUMENT, PASSAGE, SECTION
from callslip.stores.records import ChunkRecord, DocumentRecord, Vector

LONGEST = 20_000
"""The maximum number of characters of a parent's text: fits a language model and every store.

A longer section becomes several sections, so that each passage is within its parent. The text of a
longer document is its beginning; its vector is the mean of all passages.
"""


def with_parents(
    document: DocumentRecord, text: str, chunks: Sequence[Chunk], passages: Sequence[ChunkRecord]
) -> list[ChunkRecord]:
    """Return the document, its sections, and its passages with their parents, in this order.

    `passages` are the records of `chunks`. The body of a parent is `text[start:end]`, too.
    """
    if not passages:
        return []
    ids = Ids(document.document_id)
    top = _parent(document, text, passages, ids, level=DOCUMENT, ordinal=0)
    sections: list[ChunkRecord] = []
    placed: list[ChunkRecord] = []
    for run in _runs(chunks, passages):
        section = _parent(document, text, run, ids, level=SECTION, ordinal=len(sections))
        sections.append(replace(section, parent_id=top.chunk_id))
        placed += [replace(p, level=PASSAGE, parent_id=section.chunk_id) for p in run]
    return [top, *sections, *placed]


def _runs(chunks: Sequence[Chunk], passages: Sequence[ChunkRecord]) -> Iterator[list[ChunkRecord]]:
    """Yield passages of one stretch, as many as a section may contain."""
    run: list[ChunkRecord] = []
    stretch = 0
    for chunk, passage in zip(chunks, passages, strict=True):
        if run and (chunk.stretch != stretch or chunk.end - run[0].start > LONGEST):
            yield run
            run = []
        stretch = chunk.stretch
        run.append(passage)
    yield run


def _parent(
    document: DocumentRecord,
    text: str,
    passages: Sequence[ChunkRecord],
    ids: Ids,
    *,
    level: int,
    ordinal: int,
) -> ChunkRecord:
    first = passages[0]
    start, end = first.start, _within(passages)[-1].end
    section = first.section if level == SECTION else ""
    return ChunkRecord(
        chunk_id=ids.of(str(level), section, text[start:end]),
        document_id=document.document_id,
        body=text[start:end],
        terms=terms_of(passages),
        vector=mean_of([p.vector for p in passages]),
        named={name: mean_of([p.named[name] for p in passages]) for name in first.named},
        section=section,
        heading=first.heading if level == SECTION else "",
        title=document.title,
        filename=document.filename,
        lang=Counter(p.lang for p in passages).most_common(1)[0][0],
        level=level,
        ordinal=ordinal,
        start=start,
        end=end,
        properties=document.properties,
    )


def _within(passages: Sequence[ChunkRecord]) -> list[ChunkRecord]:
    """The passages in the text of their parent, which has at most LONGEST characters."""
    first = passages[0]
    return [first, *(p for p in passages[1:] if p.end - first.start <= LONGEST)]


def terms_of(passages: Sequence[ChunkRecord]) -> str:
    """Return the terms of the parent of these passages: those of the passages in its text."""
    return " ".join(p.terms for p in _within(passages) if p.terms)


def mean_of(vectors: Sequence[Vector]) -> Vector:
    """Return the normalized sum of the vectors; the first vector if their sum is zero."""
    if len(vectors) == 1:
        return vectors[0]
    total: Vector = np.stack(vectors).sum(axis=0)
    length = float(np.linalg.norm(total))
    return total / np.float32(length) if length > 0 else vectors[0]
