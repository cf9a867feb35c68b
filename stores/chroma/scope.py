"""The Chroma tables and the keyword index of a collection or of one of its tenants."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from callslip.errors import KeywordsLost
from callslip.stores.chroma.filtered import nearest_passing
from callslip.stores.chroma.metadata import chunk_copy, chunk_metadata
from callslip.stores.chroma.table import ChromaWhere, Row, Table
from callslip.stores.fulltext.contract import Entry, Keywords
from callslip.stores.levels import PASSAGE, PASSAGES
from callslip.stores.properties.filters import Where
from callslip.stores.records import ChunkRecord, CollectionSchema, RetrieverHit, Vector, visible
from callslip.stores.ties import best

Tables = Mapping[str, Table]
"""Tables of chunks by vector name; the name of the default vector is empty."""


@dataclass(frozen=True)
class Scope:
    """The tables and the keyword index of a collection, or of one of its tenants.

    Chunks of documents and sections (`parents`) have separate tables: a filter in Chroma reads
    every row, and most searches return passages only.
    """

    passages: Tables
    parents: Tables
    documents: Table
    keywords: Keywords

    @property
    def vectors(self) -> list[Table]:
        """The tables of all vectors."""
        return [*self.passages.values(), *self.parents.values()]

    def rows(
        self, name: str, chunk_ids: Sequence[str], *, include_vector: bool = False
    ) -> list[Row]:
        """The rows of these chunks, in this order; unknown ids are left out."""
        rows = self.passages[name].get(chunk_ids, include_vector=include_vector)
        if len(rows) == len(chunk_ids):
            return rows
        by_id = {row.id: row for row in rows}
        rest = [i for i in chunk_ids if i not in by_id]
        above = self.parents[name].get(rest, include_vector=include_vector)
        by_id |= {row.id: row for row in above}
        return [by_id[i] for i in chunk_ids if i in by_id]

    def ids(self, name: str, having: ChromaWhere | None) -> set[str]:
        """The ids of all chunks that match."""
        return self.passages[name].ids(having) | self.parents[name].ids(having)

    def nearest(
        self, vector: Vector, limit: int, where: Where | None, *, name: str
    ) -> Iterator[RetrieverHit]:
        """The nearest passages and the nearest parents that pass the filter, in undefined order."""
        for tables, rest in self._left(where):
            yield from best(lambda n, t=tables[name], w=rest: self._matches(t, vector, n, w), limit)  # type: ignore[misc]

    def _matches(
        self, table: Table, vector: Vector, count: int, where: Where | None
    ) -> Sequence[RetrieverHit]:
        if where is None:
            return table.nearest(vector, count)
        return nearest_passing(table, self.keywords, vector, count, where)

    def _left(self, where: Where | None) -> list[tuple[Tables, Where | None]]:
        """The tables that may contain matches, each with the filter, or None if all rows match."""
        both = [(self.passages, where), (self.parents, where)]
        for condition in where.every if where else ():
            if condition == PASSAGES and where:
                rest = replace(where, every=tuple(c for c in where.every if c != PASSAGES))
                return [(self.passages, where if rest.every or rest.some else None)]
            if condition.prop == "level" and condition.operator == "==":
                (level,) = condition.values
                return both[:1] if isinstance(level, int | float) and level >= PASSAGE else both[1:]
        return both

    def drop(self) -> None:
        """Remove all tables, then the keyword index: an index without tables does not count."""
        with self.keywords.undisturbed():
            self.documents.drop()
            for table in self.vectors:
                table.drop()
            self.keywords.drop()


def put_chunks(at: Scope, schema: CollectionSchema, chunks: Sequence[ChunkRecord]) -> None:
    """Write chunks into the vector tables and into the keyword index; make a lost index anew."""
    passages = [chunk for chunk in chunks if chunk.level >= PASSAGE]
    parents = [chunk for chunk in chunks if chunk.level < PASSAGE]
    _put_vectors(at.passages, at.parents, schema, passages)
    _put_vectors(at.parents, at.passages, schema, parents)
    in_order = sorted(chunks, key=lambda c: (c.document_id, c.start, c.level))  # alike together
    entries = [Entry(c.chunk_id, c.terms, visible(c), chunk_copy(c)) for c in in_order]
    try:
        at.keywords.upsert(entries)
    except KeywordsLost:
        at.keywords.create()
        at.keywords.upsert(entries)


def _put_vectors(
    to: Tables, other: Tables, schema: CollectionSchema, chunks: Sequence[ChunkRecord]
) -> None:
    """Write passages, or parents, into their tables `to`.

    Removes the named vectors that a chunk no longer has, and the rows of these chunks in `other`.
    """
    if not chunks:
        return
    ids = [chunk.chunk_id for chunk in chunks]
    metadata = [chunk_metadata(chunk, _rescaled(chunk, schema)) for chunk in chunks]
    both = list(zip(chunks, metadata, strict=True))
    to[""].upsert([Row(c.chunk_id, c.vector, c.body, m) for c, m in both])
    for name, table in to.items():
        if name:
            having = [(c, m) for c, m in both if name in c.named]
            table.upsert([Row(c.chunk_id, c.named[name], "", m) for c, m in having])
            table.delete([c.chunk_id for c in chunks if name not in c.named])
    if moved := other[""].ids_among(ids):
        for table in other.values():
            table.delete(moved)


def _rescaled(chunk: ChunkRecord, schema: CollectionSchema) -> dict[str, Vector]:
    """The vectors that Chroma would not return as written: a cosine space scales them to length 1.

    The result is by vector name, without the vectors that have length 1 already.
    """
    vectors = {"": chunk.vector, **chunk.named}
    specs = {name: schema.vector(name) for name in vectors}
    return {
        name: vector
        for name, vector in vectors.items()
        if specs[name].metric == "cosine" and not specs[name].normalized
    }
