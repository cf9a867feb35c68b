"""Rows in one Chroma collection, with the limits and checks that Chroma's own calls lack."""

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal

import numpy as np
from chromadb.api.collection_configuration import CreateHNSWConfiguration
from chromadb.api.models.Collection import Collection

from callslip.errors import NotFound
from callslip.stores.batching import slices
from callslip.stores.chroma.connection import Connection, Missing
from callslip.stores.chroma.metadata import RECORD
from callslip.stores.chroma.names import NEW, OLD
from callslip.stores.chroma.pieces import joined, keys_of, pieces, unpacked
from callslip.stores.fulltext.contract import Check
from callslip.stores.metrics import Metric
from callslip.stores.records import RetrieverHit, Vector

HNSW: CreateHNSWConfiguration = {
    "max_neighbors": 32,
    "ef_construction": 200,
    "ef_search": 300,
    "sync_threshold": 100,
}
"""Recall@100 for 20,000 vectors of dimension 384: 1.00 on clustered vectors, 0.85 on random ones
(0.30 with Chroma's defaults).

A call that writes reads the log of the rows that the graph file lacks. With the default
`sync_threshold` of 1000, writing one row takes 9 to 32 ms; with 100, always 10 ms. Writing many
rows at once is as fast.
"""

IDS_PER_CALL = 5000
"""Chroma's SQLite accepts at most 32,766 variables in a statement."""

LARGE_ROWS, LARGE_SYNC = 50_000, 1000
"""The rows from which a table is large, and its `sync_threshold`.

Each time, Chroma passes over all vectors of the graph and writes all ids to the disk anew, at
415,000 rows 35 MB.
"""

ROWS_PER_COPY = 1000

BYTES_PER_CALL = 8_000_000
"""Chroma refuses a request of more than 40 MB."""

NUMBER_BYTES = 20
"""The most bytes of a float as JSON."""

ChromaWhere = Mapping[str, object]
"""A filter over metadata in Chroma's own form."""


_SPACES: Mapping[Metric, Literal["cosine", "ip", "l2"]] = {
    "cosine": "cosine",
    "dot": "ip",
    "l2-squared": "l2",
}
"""Chroma's names of metrics. Vectors of another metric are in an l2 space that is not searched."""


TEXT = "text"
"""The key of the metadata with the text of a row, compressed, in rows of an earlier version.

Chroma has an index of what it calls a row's document for searches in texts, which nothing here
makes, so a document took five times its size. Still earlier rows have their text there.
"""


@dataclass(frozen=True)
class Row:
    """A vector, a text and metadata under an id. The metadata may have a record, which is JSON."""

    id: str
    vector: Vector | None
    text: str
    metadata: Mapping[str, object]
    keys: frozenset[str] = frozenset()
    """The keys of Chroma's metadata, in a row that was read."""
    is_document: bool = False
    """Whether the text is stored as Chroma's document."""


class Table:
    """A Chroma collection. Its methods raise the error of `missing` if there is none."""

    def __init__(
        self, connection: Connection, name: str, missing: Missing, metric: Metric = "cosine"
    ) -> None:
        self._connection = connection
        self._name = name
        self._old, self._new = name + OLD, name + NEW
        self._missing = missing
        self._space = _SPACES.get(metric, "l2")

    def create(self, about: Mapping[str, str], rows: int = 0) -> None:
        """Create the collection with `about` as its metadata if it is missing. Idempotent.

        `rows` is the number of rows that it will have, if that is known.
        """
        with self._connection.answering():
            self._connection.client().get_or_create_collection(
                self._name,
                metadata=dict(about),
                configuration={
                    "hnsw": {**HNSW, "space": self._space, "sync_threshold": _sync_of(rows)}
                },
                embedding_function=None,
            )
        self.refresh()

    def drop(self) -> None:
        """Remove the collection, and what a killed `rewrite` left of it. Idempotent."""
        for name in (self._old, self._new, self._name):  # `restore` would bring the old one back
            self._connection.drop(name)

    def rewrite(self, check: Check) -> None:
        """Write the collection anew, because Chroma's graph keeps the vectors of deleted rows.

        Readers find the old one until the new one is complete and takes its name. The same call
        continues after a kill. Nothing else may add or delete rows meanwhile: raises what `check`
        raises, before the call removes or renames anything.
        """
        check()
        self.restore()
        self._connection.drop(self._old)
        self._connection.drop(self._new)
        copy = Table(self._connection, self._new, self._missing)
        copy._space = self._space
        ids = sorted(self.ids(None))
        copy.create({k: str(v) for k, v in (self.about() or {}).items()}, len(ids))
        for batch in batches(ids, ROWS_PER_COPY):
            copy.upsert(self.get(batch, include_vector=True))
        check()
        self._rename(self._name, self._old)
        self._rename(self._new, self._name)
        self._connection.drop(self._old)

    def fit(self) -> None:
        """Set after how many rows the server writes the graph to the disk, by the table's size.

        The server reads the value when it loads the graph: so it applies from its next start on.
        """
        wanted = _sync_of(self._call("count"))

        def change(collection: Collection) -> None:
            if collection.configuration_json["hnsw"]["sync_threshold"] == wanted:
                return
            with warnings.catch_warnings():  # of a table without an embedding function
                warnings.simplefilter("ignore", DeprecationWarning)
                collection.modify(configuration={"hnsw": {"sync_threshold": wanted}})

        self._on(change)

    def restore(self) -> None:
        """Give the old collection its name back if `rewrite` was killed between its two renames.

        Nothing else may rewrite the collection meanwhile.
        """
        names = self._connection.names()
        if self._name not in names and self._old in names:
            self._rename(self._old, self._name)

    def _rename(self, name: str, to: str) -> None:
        with self._connection.answering():
            self._connection.client().get_collection(name, embedding_function=None).modify(name=to)
        self._connection.forget(name)
        self._connection.forget(to)

    def refresh(self) -> None:
        """Discard the cached handle: another process may have created the collection again."""
        self._connection.forget(self._name)

    def exists(self) -> bool:
        """Whether the server has the collection; it is asked anew."""
        self.refresh()
        try:
            self.about()
        except NotFound:
            return False
        return True

    def about(self) -> Mapping[str, str]:
        """The metadata of the collection, as provided to `create`."""
        return dict(self._connection.about(self._name, self._missing))

    def upsert(self, rows: Sequence[Row]) -> None:
        """Write rows. A row with an existing id replaces the whole stored row.

        If the vector and text of a row are stored already, only its metadata is written: moving a
        point in Chroma's graph costs many times as much as adding it, even to the same position.
        """
        count = self._connection.rows_per_call()
        for batch in slices(rows, count=count, size=BYTES_PER_CALL, size_of=_bytes):
            there = self.ids_among([row.id for row in batch])
            old = {row.id: row for row in self.get(there, include_vector=True)}
            known = {row.id for row in batch if row.id in old and self._alike(row, old[row.id])}
            documents = {row.id for row in old.values() if row.is_document}
            for emptied in (False, True):
                moved = [
                    row for row in batch if row.id not in known and (row.id in documents) == emptied
                ]
                if moved:
                    self._call(
                        "upsert",
                        ids=[row.id for row in moved],
                        embeddings=[row.vector for row in moved],
                        metadatas=[_replacing(row, old.get(row.id)) for row in moved],
                        **({"documents": [""] * len(moved)} if emptied else {}),
                    )
            if restated := [row for row in batch if row.id in known]:
                self._call(
                    "update",
                    ids=[row.id for row in restated],
                    metadatas=[_replacing(row, old[row.id]) for row in restated],
                )

    def get(self, ids: Sequence[str], *, include_vector: bool = False) -> list[Row]:
        """Read the rows of these ids, in this order; unknown ids are left out."""
        rows: dict[str, Row] = {}
        include = ["metadatas", "documents", *(["embeddings"] if include_vector else [])]
        for batch in batches(dict.fromkeys(ids), IDS_PER_CALL):
            got = self._call("get", ids=batch, include=include)
            for i, id_ in enumerate(got["ids"]):
                vector = np.asarray(got["embeddings"][i], np.float32) if include_vector else None
                metadata = dict(got["metadatas"][i] or {})
                keys, document = frozenset(metadata), got["documents"][i]
                text = _text(metadata, document or "")
                rows[id_] = Row(id_, vector, text, metadata, keys, bool(document))
        return [rows[id_] for id_ in ids if id_ in rows]

    def ids(self, where: ChromaWhere | None) -> set[str]:
        """The ids of all rows that match."""
        matching: set[str] = set()
        while True:
            page = self._call(
                "get", where=where, include=[], limit=IDS_PER_CALL, offset=len(matching)
            )["ids"]
            matching |= set(page)
            if len(page) < IDS_PER_CALL:
                return matching

    def ids_among(self, ids: Sequence[str]) -> list[str]:
        """The ids among these, at most one batch, that exist."""
        known: list[str] = self._call("get", ids=list(ids), include=[])["ids"]
        return known

    def nearest(
        self, vector: Vector, count: int, where: ChromaWhere | None = None
    ) -> list[RetrieverHit]:
        """The nearest rows that match, best first."""
        got = self._call(
            "query",
            query_embeddings=[np.asarray(vector, np.float32)],
            n_results=count,
            where=where,
            include=["distances"],
        )
        pairs = zip(got["ids"][0], got["distances"][0], strict=True)
        at_zero = 0.0 if self._space == "l2" else 1.0  # `ip` is 1 minus the inner product
        return [RetrieverHit(id_, at_zero - distance) for id_, distance in pairs]

    def delete(self, ids: Iterable[str]) -> None:
        """Remove rows. Ignores unknown ids."""
        for batch in batches(ids, IDS_PER_CALL):
            self._call("delete", ids=batch)

    def delete_where(self, where: ChromaWhere) -> None:
        """Remove all rows that match."""
        self._call("delete", where=where)

    def _call(self, method: str, **arguments: object) -> Any:
        """Call a method by name: the client's generated signatures accept only its own types."""
        return self._on(lambda at: getattr(at, method)(**arguments))

    def _on(self, act: Any) -> Any:
        return self._connection.on(self._name, self._missing, act)

    def _alike(self, row: Row, stored: Row) -> bool:
        """Tell whether text and vector are equal; in a cosine space, text and direction."""
        if row.vector is None or stored.vector is None or row.text != stored.text:
            return False
        if self._space != "cosine":
            return bool(np.array_equal(row.vector, stored.vector))
        unit = row.vector / np.linalg.norm(row.vector)
        return np.allclose(unit, stored.vector / np.linalg.norm(stored.vector), rtol=0, atol=1e-6)


def _sync_of(rows: int) -> int:
    return LARGE_SYNC if rows >= LARGE_ROWS else HNSW["sync_threshold"]


def batches(items: Iterable[str], size: int) -> Iterator[list[str]]:
    """Cut items into lists of this size; the last list may be shorter."""
    iterator = iter(items)
    while batch := list(islice(iterator, size)):
        yield batch


def _bytes(row: Row) -> int:
    """The approximate size of a row in a request, in bytes."""
    texts = [row.text, *(value for value in row.metadata.values() if isinstance(value, str))]
    numbers = 0 if row.vector is None else len(row.vector)
    return NUMBER_BYTES * numbers + sum(len(text.encode()) for text in texts)


def _replacing(row: Row, stored: Row | None) -> dict[str, object]:
    """The row's metadata as Chroma's, with its text, and with None for each other stored key.

    Chroma merges metadata, and only None deletes a key.
    """
    rest = {key: value for key, value in row.metadata.items() if key != RECORD}
    packed = pieces(str(row.metadata.get(RECORD, "")), row.text)
    return {**dict.fromkeys(stored.keys if stored else ()), **rest, **packed}


def _text(metadata: dict[str, object], document: str) -> str:
    """Put the record into Chroma's metadata, instead of what has it there; return the row's text.

    `document` is the text in a row that has it nowhere else.
    """
    if keys := keys_of(metadata):
        record, text = joined([str(metadata.pop(key)) for key in keys])
        if record:
            metadata[RECORD] = record
        return text
    record, stored = str(metadata.get(RECORD, "{")), metadata.pop(TEXT, None)
    if not record.startswith("{"):
        metadata[RECORD] = unpacked(record)
    return document if stored is None else unpacked(str(stored))
