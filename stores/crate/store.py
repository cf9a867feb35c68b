"""The CrateDB store: each chunk is one row, with its vectors, its texts and its properties."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, TypeVar

from stores.atoms import FLAG, NUMBER, TEXT
from stores.batching import slices, write
from stores.checks import sound_chunks, sound_documents
from stores.contract import Store
from stores.crate import legs, queries
from stores.crate.columns import names
from stores.crate.connection import Connection, Sql
from stores.crate.places import Place, Places
from stores.crate.rows import (
    chunk_bytes,
    chunk_columns,
    chunk_row,
    document_key,
    document_row,
    stored_chunk,
    stored_document,
)
from stores.crate.tables import Layout, check_name, upsert, vector_column
from stores.crate.where import EVERYTHING, NOTHING, marks, translate
from stores.filters import Where
from stores.fusion import Candidate
from stores.metrics import Metric
from stores.records import (
    BatchOutcome,
    ChunkRecord,
    CollectionSchema,
    DocumentRecord,
    LegHit,
    Scalar,
    StoredChunk,
    Value,
    Vector,
    under,
    visible,
    visible_in,
)
from stores.schemas import check_schema

T = TypeVar("T")

ROWS_PER_CALL = 1000
BYTES_PER_CALL = 8_000_000
"""CrateDB refuses a request of more than 100 MB, and holds several in memory at once."""

IDS_PER_CALL = 1000

_DOCUMENT_COLUMNS = ("id", "table_name", "document_id", "record")


class CrateStore(Store):
    """A collection is a table, each tenant's one of its own: apart in index and statistics.

    Nothing is connected before the first call. What is written is refreshed before it is
    acknowledged, so that every later query sees it.
    """

    kind = "crate"
    indexed = frozenset[Metric]({"cosine", "l2-squared"})

    def __init__(self, connection: Connection, layout: Layout) -> None:
        self._connection = connection
        self._layout = layout
        self._places = Places(self._connection, layout)

    def ping(self) -> None:
        self._connection.ping()

    def close(self) -> None:
        self._connection.close()

    def check_names(self, collection: str, tenant: str = "") -> None:
        check_name(collection)
        check_name(tenant)

    def ensure_schema(self, schema: CollectionSchema) -> None:
        check_schema(schema)
        self._places.create(schema)

    def schema(self, collection: str) -> CollectionSchema:
        return self._places.schema(collection)

    def collections(self) -> list[str]:
        return self._places.collections()

    def drop_collection(self, collection: str) -> None:
        self._places.drop(collection)

    def ensure_tenant(self, collection: str, tenant: str) -> None:
        self._places.create_tenant(collection, tenant)

    def drop_tenant(self, collection: str, tenant: str) -> None:
        self._places.drop_tenant(collection, tenant)

    def tenants(self, collection: str) -> list[str]:
        return self._places.tenants(collection)

    def forget(self, collection: str) -> None:
        self._places.forget(collection)

    # Writing

    def batch_upsert_documents(
        self, collection: str, documents: Sequence[DocumentRecord], *, tenant: str = ""
    ) -> BatchOutcome:
        at = self._places.existing(collection, tenant)
        good, failed = sound_documents(documents)
        rows = [document_row(at.name, document) for document in good]
        table = self._layout.documents

        def put(some: Sequence[list[object]]) -> dict[str, str]:
            return self._put(table, _DOCUMENT_COLUMNS, "id", some, [str(row[2]) for row in some])

        cut = slices(
            rows, count=ROWS_PER_CALL, size=BYTES_PER_CALL, size_of=lambda row: len(str(row[3]))
        )
        return write(cut, put, lambda row: str(row[2]), failed=failed)

    def batch_upsert_chunks(
        self, collection: str, chunks: Sequence[ChunkRecord], *, tenant: str = ""
    ) -> BatchOutcome:
        schema = self._places.existing(collection, tenant).schema
        good, failed = sound_chunks(chunks, schema)
        columns = chunk_columns(schema)

        def put(some: Sequence[ChunkRecord]) -> dict[str, str]:
            return self._places.on(collection, tenant, lambda at: put_at(at, some))

        def put_at(at: Place, some: Sequence[ChunkRecord]) -> dict[str, str]:
            known = at.columns.making(names(visible(chunk) for chunk in some))
            rows = [chunk_row(chunk, schema, tenant, known) for chunk in some]
            return self._put(at.table, columns, "chunk_id", rows, [c.chunk_id for c in some])

        cut = slices(good, count=ROWS_PER_CALL, size=BYTES_PER_CALL, size_of=chunk_bytes)
        return write(cut, put, lambda chunk: chunk.chunk_id, failed=failed)

    def delete_chunks(self, collection: str, chunk_ids: Iterable[str], *, tenant: str = "") -> None:
        ids = list(dict.fromkeys(chunk_ids))

        def delete(at: Place) -> None:
            for some in _batches(ids):
                self._run(f'DELETE FROM {at.table} WHERE "chunk_id" = ANY(?)', some)
            self._run(f"REFRESH TABLE {at.table}")

        self._places.on(collection, tenant, delete)

    def delete_document(self, collection: str, document_id: str, *, tenant: str = "") -> None:
        documents = self._layout.documents

        def delete(at: Place) -> None:
            self._run(f'DELETE FROM {at.table} WHERE "document_id" = ?', document_id)
            key = document_key(at.name, document_id)
            self._run(f'DELETE FROM {documents} WHERE "id" = ?', key)
            self._run(f"REFRESH TABLE {at.table}, {documents}")

        self._places.on(collection, tenant, delete)

    # Searching

    def build_where(self, where: Where) -> Sql:
        return translate(where, lambda mark, name: f"{mark}:{name}")

    def nearest(
        self,
        collection: str,
        vector: Vector,
        limit: int,
        where: Where | None = None,
        *,
        tenant: str = "",
        vector_name: str = "",
    ) -> list[LegHit]:
        def search(at: Place, condition: Sql | None) -> list[LegHit]:
            return legs.nearest(self._connection, at, vector, limit, condition, vector_name)

        return self._matching(collection, tenant, where, search) or []

    def keyword_query(
        self,
        collection: str,
        terms: str,
        limit: int,
        where: Where | None = None,
        *,
        tenant: str = "",
    ) -> list[LegHit]:
        def search(at: Place, condition: Sql | None) -> list[LegHit]:
            return legs.keyword(
                self._connection, queries.keyword(at.table, terms, limit, condition)
            )

        if limit < 1:
            return []
        return self._matching(collection, tenant, where, search) or []

    def native_query(
        self,
        collection: str,
        vector: Vector,
        terms: str,
        limit: int,
        where: Where | None,
        *,
        tenant: str,
        vector_name: str,
        method: Metric | None,
        horizon: float | None,
        pool: int,
        alpha: float,
    ) -> list[Candidate]:
        """Reciprocal rank fusion with k = 60; both legs weigh the same, whatever `alpha` says."""
        self._indexed(collection, vector, vector_name, method)

        def search(at: Place, condition: Sql | None) -> list[Candidate]:
            found = legs.fused(
                self._connection,
                at,
                vector,
                partial(queries.keyword, at.table, terms),
                pool,
                condition,
                vector_name,
                horizon,
            )
            return found[: max(limit, 0)]

        return self._matching(collection, tenant, where, search) or []

    # Reading

    def get_chunks(
        self,
        collection: str,
        chunk_ids: Sequence[str],
        *,
        tenant: str = "",
        include_vector: bool = False,
        include_terms: bool = False,
    ) -> list[StoredChunk]:
        vectors = '"vectors"' if include_vector else "NULL"
        terms = '"terms"' if include_terms else "NULL"

        def read(at: Place) -> dict[str, StoredChunk]:
            found: dict[str, StoredChunk] = {}
            for some in _batches(list(dict.fromkeys(chunk_ids))) or [[]]:
                rows = self._run(
                    f'SELECT "chunk_id", "content_fs", "record", {vectors}, {terms}'
                    f' FROM {at.table} WHERE "chunk_id" = ANY(?)',
                    some,
                )
                for id_, body, record, held, written in rows:
                    found[id_] = stored_chunk(id_, body, record, vectors=held, terms=written)
            return found

        found = self._places.on(collection, tenant, read)
        return [found[id_] for id_ in chunk_ids if id_ in found]

    def properties(
        self, collection: str, chunk_ids: Sequence[str], props: Iterable[str], *, tenant: str = ""
    ) -> dict[str, dict[str, Value]]:
        wanted = frozenset(props)
        records = self._column("record", collection, chunk_ids, tenant)
        return {i: under(wanted, visible_in(json.loads(record))) for i, record in records.items()}

    def terms(
        self, collection: str, chunk_ids: Sequence[str], *, tenant: str = ""
    ) -> dict[str, str]:
        return self._column("terms", collection, chunk_ids, tenant)

    def _column(
        self, name: str, collection: str, chunk_ids: Sequence[str], tenant: str
    ) -> dict[str, str]:
        def read(at: Place) -> dict[str, str]:
            found: dict[str, str] = {}
            for some in _batches(list(dict.fromkeys(chunk_ids))) or [[]]:
                rows = self._run(
                    f'SELECT "chunk_id", "{name}" FROM {at.table} WHERE "chunk_id" = ANY(?)', some
                )
                found |= dict(rows)
            return found

        return self._places.on(collection, tenant, read)

    def get_documents(
        self, collection: str, document_ids: Sequence[str], *, tenant: str = ""
    ) -> list[DocumentRecord]:
        at = self._places.existing(collection, tenant)
        found: dict[str, DocumentRecord] = {}
        for some in _batches(list(dict.fromkeys(document_ids))):
            rows = self._run(
                f'SELECT "document_id", "record" FROM {self._layout.documents} WHERE "id" = ANY(?)',
                [document_key(at.name, id_) for id_ in some],
            )
            found |= {id_: stored_document(id_, record) for id_, record in rows}
        return [found[id_] for id_ in document_ids if id_ in found]

    def find_ids(
        self, collection: str, where: Where | None = None, *, tenant: str = ""
    ) -> list[str]:
        return sorted(self._matching(collection, tenant, where, self._ids) or [])

    def chunk_ids(
        self, collection: str, document_id: str | None = None, *, tenant: str = ""
    ) -> dict[str, set[str]]:
        among = None if document_id is None else Sql('"document_id" = ?', (document_id,))
        everyone = set(self._places.on(collection, tenant, lambda at: self._ids(at, among)))
        halves = {"vector": everyone, "keyword": set(everyone)}
        for name in self.schema(collection).named:

            def having(at: Place, name: str = name) -> list[str]:
                held = Sql(f'"{vector_column(at.schema, name)}" IS NOT NULL')
                return self._ids(at, queries.both([among, held]))

            halves[f"vector:{name}"] = set(self._places.on(collection, tenant, having))
        return halves

    def document_ids(self, collection: str, *, tenant: str = "") -> set[str]:
        def read(at: Place) -> set[str]:
            chunks = self._run(f'SELECT "document_id" FROM {at.table} GROUP BY "document_id"')
            documents = self._run(
                f'SELECT "document_id" FROM {self._layout.documents} WHERE "table_name" = ?',
                at.name,
            )
            return {id_ for (id_,) in [*chunks, *documents]}

        return self._places.on(collection, tenant, read)

    def count(self, collection: str, where: Where | None = None, *, tenant: str = "") -> int:
        def read(at: Place, condition: Sql | None) -> int:
            clause, args = _where(condition)
            ((number,),) = self._run(f"SELECT COUNT(*) FROM {at.table}{clause}", *args)
            return int(number)

        return self._matching(collection, tenant, where, read) or 0

    def aggregate_group_by(
        self, collection: str, prop: str, where: Where | None = None, *, tenant: str = ""
    ) -> list[tuple[Scalar, int]]:
        def read(at: Place, condition: Sql | None) -> Counter[tuple[str, Scalar]]:
            columns = at.columns.having({(TEXT, prop), (NUMBER, prop), (FLAG, prop)})
            found: Counter[tuple[str, Scalar]] = Counter()
            for kind in (TEXT, NUMBER, FLAG):
                for column in filter(None, (columns.find(m, prop) for m in (kind, kind.upper()))):
                    for value, count in self._groups(at, column, condition):
                        found[kind, value] += count
            return found

        found = self._matching(collection, tenant, where, read) or Counter()
        ranked = sorted(found.items(), key=lambda group: (-group[1], group[0]))
        return [(value, count) for (_, value), count in ranked]

    def _groups(
        self, at: Place, column: str, condition: Sql | None
    ) -> Iterable[tuple[Scalar, int]]:
        """The values in a column with their counts; those of lists are counted here."""
        held = queries.both([Sql(f"{column} IS NOT NULL"), condition])
        clause, args = _where(held)
        if column.split("'")[1] in ("text", "number", "flag"):
            rows = self._run(
                f"SELECT {column}, COUNT(*) FROM {at.table}{clause} GROUP BY {column}", *args
            )
            return [(_value(value), count) for value, count in rows]
        rows = self._run(f"SELECT {column} FROM {at.table}{clause}", *args)
        lists = (value if isinstance(value, list) else [value] for (value,) in rows)
        return Counter(_value(member) for members in lists for member in members).items()

    # Statements

    def _run(self, text: str, *args: object) -> list[list[Any]]:
        return self._connection.run(Sql(text, args))

    def _put(
        self,
        table: str,
        columns: Sequence[str],
        key: str,
        rows: Sequence[Sequence[object]],
        ids: Sequence[str],
    ) -> dict[str, str]:
        """Write rows; the reasons of those that were refused, by id."""
        refused = self._connection.run_many(upsert(table, columns, key), rows)
        self._run(f"REFRESH TABLE {table}")
        return {ids[place]: reason for place, reason in refused.items()}

    def _matching(
        self,
        collection: str,
        tenant: str,
        where: Where | None,
        act: Callable[[Place, Sql | None], T],
    ) -> T | None:
        """Do something with the rows that match; None where it is plain that none does."""

        def run(at: Place) -> T | None:
            if where is None:
                return act(at, None)
            condition = translate(where, at.columns.having(marks(where)).find)
            if condition == NOTHING:
                return None
            return act(at, None if condition == EVERYTHING else condition)

        return self._places.on(collection, tenant, run)

    def _ids(self, at: Place, condition: Sql | None) -> list[str]:
        clause, args = _where(condition)
        return [id_ for (id_,) in self._run(f'SELECT "chunk_id" FROM {at.table}{clause}', *args)]


def _where(condition: Sql | None) -> tuple[str, tuple[object, ...]]:
    return (f" WHERE {condition.text}", condition.args) if condition else ("", ())


def _value(value: object) -> Scalar:
    """A value as groups give it: whole numbers as integers."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str | float | int):
        return value
    raise TypeError(type(value))


def _batches(ids: Sequence[str]) -> list[Sequence[str]]:
    return [ids[start : start + IDS_PER_CALL] for start in range(0, len(ids), IDS_PER_CALL)]
