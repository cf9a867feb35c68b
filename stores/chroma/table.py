"""Rows in one Chroma collection: what Chroma's calls lack to be safe to build on."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from chromadb.api.collection_configuration import CreateHNSWConfiguration

from callslip.errors import Conflict
from stores.chroma.connection import Connection, answering
from stores.chroma.where import ChromaWhere
from stores.contract import LegHit, Vector

HNSW: CreateHNSWConfiguration = {
    "space": "cosine",
    "max_neighbors": 32,
    "ef_construction": 200,
    "ef_search": 300,
    "sync_threshold": 100,
}
"""Recall@100 at 20,000 × 384: 1.00 on clustered vectors, .85 on random ones (by default .30).

A call that writes reads the log of what its graph file lacks: at the default of 1000 rows, writing
one row takes 9 to 32 ms, at 100 always 10; writing many at once is as fast.
"""

IDS_PER_CALL = 5000
"""SQLite under Chroma takes 32,766 variables in a statement."""

BYTES_PER_CALL = 8_000_000
"""Chroma refuses a request of more than 40 MB."""

NUMBER_BYTES = 20
"""A float as JSON, at most."""


@dataclass(frozen=True)
class Row:
    """A vector, a text and metadata under an id."""

    id: str
    vector: Vector | None
    text: str
    metadata: Mapping[str, object]


class Table:
    """A Chroma collection; `collection` is what its users call it and errors name."""

    def __init__(self, connection: Connection, name: str, collection: str) -> None:
        self._connection = connection
        self._name = name
        self._collection = collection
        self._rows_per_call = 0

    def create(self, dimension: int) -> None:
        """Make it where it is missing. Idempotent; raises Conflict at another dimension."""
        with answering():
            self._connection.client().get_or_create_collection(
                self._name,
                metadata={"dimension": dimension},
                configuration={"hnsw": HNSW},
                embedding_function=None,
            )
        self.refresh()
        if self.dimension() != dimension:
            raise Conflict(
                f"Collection {self._collection} has {self.dimension()} dimensions,"
                f" not {dimension}.",
                hint="Vectors of another embedder need a collection of their own.",
            )

    def drop(self) -> None:
        """Remove it. Idempotent."""
        self._connection.drop(self._name)

    def refresh(self) -> None:
        """Forget what is known of it: another process may have made it anew."""
        self._connection.forget(self._name)

    def dimension(self) -> int:
        """The dimension that its schema was made with."""
        return int(self._on(lambda at: at.metadata["dimension"]))

    def upsert(self, rows: Sequence[Row]) -> None:
        """Write rows; the same id again replaces the whole row.

        Of a row whose vector and text are stored already only the metadata is written: moving a
        point of Chroma's graph costs many times what adding it did, even to where it was.
        """
        for batch in self._slices(rows):
            old = {row.id: row for row in self.get([row.id for row in batch], include_vector=True)}
            known = {row.id for row in batch if row.id in old and _alike(row, old[row.id])}
            if moved := [row for row in batch if row.id not in known]:
                self._call(
                    "upsert",
                    ids=[row.id for row in moved],
                    embeddings=[row.vector for row in moved],
                    documents=[row.text for row in moved],
                    metadatas=[_replacing(row, old.get(row.id)) for row in moved],
                )
            if restated := [row for row in batch if row.id in known]:
                self._call(
                    "update",
                    ids=[row.id for row in restated],
                    metadatas=[_replacing(row, old[row.id]) for row in restated],
                )

    def get(self, ids: Sequence[str], *, include_vector: bool = False) -> list[Row]:
        """Read the rows of these ids, in this order; unknown ids are left out."""
        found: dict[str, Row] = {}
        include = ["metadatas", "documents", *(["embeddings"] if include_vector else [])]
        for batch in batches(dict.fromkeys(ids), IDS_PER_CALL):
            got = self._call("get", ids=batch, include=include)
            for i, id_ in enumerate(got["ids"]):
                vector = np.asarray(got["embeddings"][i], np.float32) if include_vector else None
                found[id_] = Row(id_, vector, got["documents"][i], got["metadatas"][i])
        return [found[id_] for id_ in ids if id_ in found]

    def ids(self, where: ChromaWhere) -> set[str]:
        """The ids of all rows that match."""
        return set(self._call("get", where=where, include=[])["ids"])

    def nearest(self, vector: Vector, count: int, where: ChromaWhere | None) -> list[LegHit]:
        """The nearest rows that match by cosine similarity, best first."""
        got = self._call(
            "query",
            query_embeddings=[np.asarray(vector, np.float32)],
            n_results=count,
            where=where,
            include=["distances"],
        )
        pairs = zip(got["ids"][0], got["distances"][0], strict=True)
        return [LegHit(id_, 1.0 - distance) for id_, distance in pairs]

    def delete(self, ids: Iterable[str]) -> None:
        """Remove rows. Unknown ids are nothing to do."""
        for batch in batches(ids, IDS_PER_CALL):
            self._call("delete", ids=batch)

    def delete_where(self, where: ChromaWhere) -> None:
        """Remove all rows that match."""
        self._call("delete", where=where)

    def _slices(self, rows: Sequence[Row]) -> Iterator[list[Row]]:
        """Cut a batch by the server's limits on rows and on bytes."""
        self._rows_per_call = self._rows_per_call or self._max_batch()
        slice_: list[Row] = []
        size = 0
        for row in rows:
            size += _bytes(row)
            if slice_ and (size > BYTES_PER_CALL or len(slice_) == self._rows_per_call):
                yield slice_
                slice_, size = [], _bytes(row)
            slice_.append(row)
        if slice_:
            yield slice_

    def _max_batch(self) -> int:
        with answering():
            return self._connection.client().get_max_batch_size()

    def _call(self, method: str, **arguments: object) -> Any:
        """Call the collection by name: its generated signatures know only its own types."""
        return self._on(lambda at: getattr(at, method)(**arguments))

    def _on(self, act: Any) -> Any:
        return self._connection.on(self._name, self._collection, act)


def batches(items: Iterable[str], size: int) -> Iterator[list[str]]:
    """Cut into lists of this size; the last may be shorter."""
    iterator = iter(items)
    while batch := list(islice(iterator, size)):
        yield batch


def _bytes(row: Row) -> int:
    """About what a row takes in a request."""
    texts = [row.text, *(value for value in row.metadata.values() if isinstance(value, str))]
    numbers = 0 if row.vector is None else len(row.vector)
    return NUMBER_BYTES * numbers + sum(len(text.encode()) for text in texts)


def _alike(row: Row, stored: Row) -> bool:
    """Tell whether text and direction are the same; Chroma gives back what it made unit length."""
    if row.vector is None or stored.vector is None or row.text != stored.text:
        return False
    unit = row.vector / np.linalg.norm(row.vector)
    return np.allclose(unit, stored.vector / np.linalg.norm(stored.vector), rtol=0, atol=1e-6)


def _replacing(row: Row, stored: Row | None) -> dict[str, object]:
    """Metadata that also removes the old keys: Chroma merges, and only None deletes a key."""
    return {**dict.fromkeys(stored.metadata if stored else ()), **row.metadata}
