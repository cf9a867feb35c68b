"""The store of attached tables, with the search and read methods of the contract."""

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, TypeVar

import numpy as np

from callslip.stores.attached.read_only import ReadOnlyStore
from callslip.stores.crate import queries, retrievers
from callslip.stores.crate.attached.checks import missing
from callslip.stores.crate.attached.fields import Field, Fields, read_fields, shown
from callslip.stores.crate.attached.filters import translate
from callslip.stores.crate.connection import ColumnMissing, Connection, RelationMissing, Sql
from callslip.stores.crate.filters import EVERYTHING, NOTHING
from callslip.stores.fusion import Candidate
from callslip.stores.ledger import ATTACHED, Attachment, Ledger
from callslip.stores.levels import PASSAGE
from callslip.stores.metrics import Metric
from callslip.stores.properties.filters import Where
from callslip.stores.records import (
    CollectionSchema,
    RetrieverHit,
    Scalar,
    StoredChunk,
    Vector,
)

T = TypeVar("T")

IDS_PER_CALL = 1000

_READ = '"_id", "hierarchy", "title_fs", "content_fs", "content_pretty", "ref", "metadata"'


@dataclass(frozen=True)
class _Scope:
    schema: CollectionSchema
    attachment: Attachment
    key: ClassVar[str] = "_id"

    @property
    def table(self) -> str:
        return self.attachment.table


class AttachedStore(ReadOnlyStore):
    """The id of a chunk is the row's `_id`.

    The keyword retriever passes the words unchanged to the table's own analyzers.
    """

    kind = ATTACHED
    indexed = frozenset[Metric]({"cosine", "l2-squared"})

    def __init__(self, connection: Connection, ledger: Ledger) -> None:
        super().__init__(ledger)
        self._connection = connection
        self._known: dict[Attachment, Fields] = {}

    def ping(self) -> None:
        self._connection.ping()

    def close(self) -> None:
        with closing(self._ledger):
            self._connection.close()

    # Searching

    def build_where(self, where: Where) -> Sql:
        return translate(where, {c.prop: Field(f'"{c.prop}"', "text") for c in where})

    def nearest(
        self,
        collection: str,
        vector: Vector,
        limit: int,
        where: Where | None = None,
        *,
        tenant: str = "",
        vector_name: str = "",
    ) -> list[RetrieverHit]:
        def search(at: _Scope, condition: Sql | None) -> list[RetrieverHit]:
            return retrievers.nearest(self._connection, at, vector, limit, condition, vector_name)

        return self._matching(collection, tenant, where, search) or []

    def keyword_query(
        self,
        collection: str,
        terms: str,
        limit: int,
        where: Where | None = None,
        *,
        tenant: str = "",
    ) -> list[RetrieverHit]:
        def search(at: _Scope, condition: Sql | None) -> list[RetrieverHit]:
            return retrievers.keyword(
                self._connection, queries.words(at.table, at.key, terms, limit, condition)
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
        """Reciprocal rank fusion with k = 60, as in the specification's hybrid query."""
        self._indexed(collection, vector, vector_name, method)

        def search(at: _Scope, condition: Sql | None) -> list[Candidate]:
            best = partial(queries.words, at.table, at.key, terms)
            return retrievers.fused(
                self._connection, at, vector, best, pool, condition, vector_name, horizon
            )

        matches = self._matching(collection, tenant, where, search) or []
        return matches[: max(limit, 0)]

    # Reading

    def property_names(self, collection: str) -> set[str]:
        return self._on(collection, "", lambda at: set(self._fields(at, None)))

    def get_chunks(
        self,
        collection: str,
        chunk_ids: Sequence[str],
        *,
        tenant: str = "",
        include_vector: bool = False,
        include_terms: bool = False,
    ) -> list[StoredChunk]:
        xs = '"xs"' if include_vector else "NULL"

        def read(at: _Scope) -> dict[str, StoredChunk]:
            fields, matches = self._fields(at, set()), {}
            ids = list(dict.fromkeys(chunk_ids))
            for start in range(0, len(ids), IDS_PER_CALL):
                some = ids[start : start + IDS_PER_CALL]
                wanted = f'SELECT {_READ}, {xs} FROM {at.table} WHERE "_id" = ANY(?)'
                for row in self._connection.run(Sql(wanted, (some,))):
                    matches[row[0]] = _chunk(row, fields)
            return matches

        value_of = self._on(collection, tenant, read)
        return [value_of[id_] for id_ in chunk_ids if id_ in value_of]

    def find_ids(
        self, collection: str, where: Where | None = None, *, tenant: str = ""
    ) -> list[str]:
        def read(at: _Scope, condition: Sql | None) -> list[str]:
            rows = self._selected(at, '"_id"', condition)
            return sorted(id_ for (id_,) in rows)

        return self._matching(collection, tenant, where, read) or []

    def count(self, collection: str, where: Where | None = None, *, tenant: str = "") -> int:
        def read(at: _Scope, condition: Sql | None) -> int:
            ((number,),) = self._selected(at, "COUNT(*)", condition)
            return int(number)

        return self._matching(collection, tenant, where, read) or 0

    def aggregate_group_by(
        self, collection: str, prop: str, where: Where | None = None, *, tenant: str = ""
    ) -> list[tuple[Scalar, int]]:
        def read(at: _Scope, condition: Sql | None) -> list[tuple[Scalar, int]]:
            field = self._fields(at, {prop}).get(prop)
            if field is None:
                return []
            rows = self._selected(at, field.sql, condition)
            values: Counter[Scalar] = Counter()
            for (value,) in rows:
                value_of: Any = shown({prop: value}, {prop: field}).get(prop)
                values.update(
                    value_of
                    if isinstance(value_of, list)
                    else []
                    if value_of is None
                    else [value_of]
                )
            return sorted(values.items(), key=lambda group: (-group[1], str(group[0])))

        return self._matching(collection, tenant, where, read) or []

    def count_documents(
        self,
        collection: str,
        prop: str,
        values: Sequence[Scalar],
        where: Where | None = None,
        *,
        tenant: str = "",
    ) -> list[int]:
        """As `Store.count_documents`: each row is a document."""
        rows = self.aggregate_group_by(collection, prop, where, tenant=tenant)
        counts = {(type(value), value): number for value, number in rows}
        return [counts.get((type(value), value), 0) for value in values]

    # Statements

    def _on(self, collection: str, tenant: str, act: Callable[[_Scope], T]) -> T:
        """Call `act` with the scope, and once more if the table's columns have changed.

        Raises TableNotFound if the table or a column is missing.
        """
        record, attachment = self.located(collection, tenant)
        at = _Scope(record.schema, attachment)
        try:
            try:
                return act(at)
            except ColumnMissing:
                self._known.pop(at.attachment, None)
                return act(at)
        except (ColumnMissing, RelationMissing):
            raise missing(at.attachment) from None

    def _matching(
        self,
        collection: str,
        tenant: str,
        where: Where | None,
        act: Callable[[_Scope, Sql | None], T],
    ) -> T | None:
        """Call `act` with the scope and the filter's condition; None if no row can match."""

        def run(at: _Scope) -> T | None:
            if where is None:
                return act(at, None)
            condition = translate(where, self._fields(at, {c.prop for c in where}))
            if condition == NOTHING:
                return None
            return act(at, None if condition == EVERYTHING else condition)

        return self._on(collection, tenant, run)

    def _fields(self, at: _Scope, names: set[str] | None) -> Fields:
        """The fields for filters, read again unless each of these names is in the cache.

        If `names` is None, the fields are always read again.
        """
        known = self._known.get(at.attachment)
        if known is None or names is None or not names <= known.keys():
            known = self._known[at.attachment] = read_fields(self._connection, at.attachment)
        return known

    def _selected(self, at: _Scope, what: str, condition: Sql | None) -> list[list[Any]]:
        clause, args = (f" WHERE {condition.text}", condition.args) if condition else ("", ())
        return self._connection.run(Sql(f"SELECT {what} FROM {at.table}{clause}", args))


def _chunk(row: Sequence[Any], fields: Fields) -> StoredChunk:
    id_, hierarchy, title, content, pretty, ref, metadata, xs = row
    specified = {"hierarchy": hierarchy, "content_pretty": pretty, "ref": ref}
    properties: dict[str, Any] = {k: v for k, v in specified.items() if v is not None}
    return StoredChunk(
        chunk_id=id_,
        document_id=id_,
        body=content or "",
        parent_id="",
        section=hierarchy or "",
        heading="",
        title=title or "",
        filename="",
        lang="",
        level=PASSAGE,
        ordinal=0,
        start=0,
        end=len(content or ""),
        properties=properties | shown(metadata, fields),
        vector=None if xs is None else np.asarray(xs, np.float32),
    )
