"""Documents and sections as chunks above their passages, so that a search can give them.

Three levels, whatever the depth of the headings, so that -1 is every passage: the path of a section
keeps its depth. A parent is found by what it holds: its vector is the mean of its passages', which
costs no embedding, its terms are theirs. docs/quality.md has what that is worth.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from ingestion.identity import Ids
from ingestion.parts import Chunk
from stores.levels import DOCUMENT, PASSAGE, SECTION
from stores.records import ChunkRecord, DocumentRecord, Vector

LONGEST = 20_000
"""Characters of a parent's text: what a language model reads at once, and any store takes.

A longer section is several, so that each passage lies within its parent. Of a longer document the
text is its beginning; its vector is of the whole.
"""


def with_parents(
    document: DocumentRecord, text: str, chunks: Sequence[Chunk], passages: Sequence[ChunkRecord]
) -> list[ChunkRecord]:
    """The document, its sections, and its passages with their parents, in this order.

    `passages` are the records of `chunks`. Of a parent too, `text[start:end]` is the body.
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
    """Passages of one stretch, as many as a section may hold."""
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
    held = [first, *(p for p in passages[1:] if p.end - first.start <= LONGEST)]
    start, end = first.start, held[-1].end
    section = first.section if level == SECTION else ""
    return ChunkRecord(
        chunk_id=ids.of(str(level), section, text[start:end]),
        document_id=document.document_id,
        body=text[start:end],
        terms=" ".join(p.terms for p in held if p.terms),
        vector=_mean([p.vector for p in passages]),
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


def _mean(vectors: Sequence[Vector]) -> Vector:
    """The direction of the sum; that of the first where they cancel each other."""
    if len(vectors) == 1:
        return vectors[0]
    total: Vector = np.stack(vectors).sum(axis=0)
    length = float(np.linalg.norm(total))
    return total / np.float32(length) if length > 0 else vectors[0]
