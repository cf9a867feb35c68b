"""Reads from the ledger which chunks and files each document should have, for the audit."""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Row, Select, exists, func, or_, select

from callslip.stores.ledger.base import schema
from callslip.stores.ledger.base.database import Database
from callslip.stores.ledger.base.records import Step
from callslip.stores.ledger.documents.chunks import IDS_PER_STATEMENT, THERE

_D, _V, _S, _C = schema.documents.c, schema.versions.c, schema.steps.c, schema.chunks.c
_L, _M, _P = schema.collections.c, schema.moves.c, schema.copies.c

DOCUMENTS_PER_PAGE = 200
"""Documents per read; a document of 100 pages has about 200 chunks."""


@dataclass(frozen=True)
class Item:
    """One document that is not removed.

    A store may have the `known` chunks and must have the `live` ones; `live` is empty if no version
    is live. If `settled` is false, a worker is writing or deleting chunks of the document.
    """

    document_id: str
    live_version: int | None
    settled: bool
    live: frozenset[str]
    known: frozenset[str]


class Files(NamedTuple):
    """The files of a live version: the hash of its original, and the artifact with its text.

    A document imported from an archive without extracted text has no artifact.
    """

    sha256: str
    text: str | None


class Inventory:
    """Reads the expected contents. Each statement sees the state of the ledger at its own time."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def pages(self, collection: str, tenant: str) -> Iterator[list[Item]]:
        """Every document of a collection, or of one of its tenants, that is not removed."""
        last = ""
        while True:
            query = (
                select(_D.document_id)
                .where(_D.collection == collection, _D.tenant == tenant)
                .where(_D.removed_at.is_(None), _D.document_id > last)
                .order_by(_D.document_id)
                .limit(DOCUMENTS_PER_PAGE)
            )
            with self._database.reading() as connection:
                ids = list(connection.scalars(query))
            if not ids:
                return
            last = ids[-1]
            yield list(self.items(ids).values())

    def items(self, document_ids: Sequence[str]) -> dict[str, Item]:
        """The documents with these ids that are not removed, by id."""
        items: dict[str, Item] = {}
        for ids in _batches(document_ids):
            items |= self._items(ids)
        return items

    def _items(self, ids: list[str]) -> dict[str, Item]:
        same = _V.document_id == _D.document_id
        queued = exists().where(same, _V.state == "queued")
        leased = exists().where(
            _S.document_id == _D.document_id, _S.state == "running", _S.lease_until > time.time()
        )
        query = select(
            _D.document_id, _D.live_version, _D.deleted_at, or_(queued, leased).label("busy")
        ).where(_D.document_id.in_(ids), _D.removed_at.is_(None))
        columns = (_C.document_id, _C.chunk_id, _C.first_version, _C.last_version)
        with self._database.reading() as connection:
            documents = connection.execute(query.order_by(_D.document_id)).all()
            rows = connection.execute(select(*columns).where(_C.document_id.in_(ids))).all()
        chunks: dict[str, list[Any]] = {}
        for row in rows:
            chunks.setdefault(row.document_id, []).append(row)
        return {
            d.document_id: Item(
                d.document_id,
                d.live_version,
                settled=d.deleted_at is None and not d.busy,
                live=frozenset(
                    c.chunk_id
                    for c in chunks.get(d.document_id, ())
                    if d.deleted_at is None and _is_live(c, d.live_version)
                ),
                known=frozenset(c.chunk_id for c in chunks.get(d.document_id, ())),
            )
            for d in documents
        }

    def chunks(self, collection: str, tenant: str, chunk_ids: Iterable[str]) -> set[str]:
        """The chunks among these that a store may have for this collection and tenant."""
        query = select(_C.chunk_id).join(schema.documents, _D.document_id == _C.document_id)
        scope = {"collection": collection, "tenant": tenant}
        return self._among(query.where(THERE), _C.chunk_id, chunk_ids, scope)

    def documents(self, collection: str, tenant: str, document_ids: Iterable[str]) -> set[str]:
        """The documents among these that a store may have for this collection and tenant."""
        query = select(_D.document_id).where(THERE, _D.removed_at.is_(None))
        scope = {"collection": collection, "tenant": tenant}
        return self._among(query, _D.document_id, document_ids, scope)

    def ever_stored(self, collection: str, document_ids: Iterable[str]) -> set[str]:
        """The documents among these that belong or belonged to the collection."""
        query = select(_D.document_id).where(_D.collection.concat("") == collection)
        return self._among(query, _D.document_id, document_ids)

    def owners(self, document_ids: Iterable[str]) -> set[str]:
        """The documents among these that may have files."""
        query = select(_D.document_id).where(_D.removed_at.is_(None))
        return self._among(query, _D.document_id, document_ids)

    def _among(
        self,
        query: Select[str],
        column: ColumnElement[str],
        ids: Iterable[str],
        values: Mapping[str, str] = MappingProxyType({}),
    ) -> set[str]:
        known: set[str] = set()
        with self._database.reading() as connection:
            for some in _batches(ids):
                known |= set(connection.scalars(query.where(column.in_(some)), values))
        return known

    def count(self, collection: str | None = None) -> int:
        """The number of documents that are not removed."""
        query = select(func.count()).select_from(schema.documents).where(_D.removed_at.is_(None))
        if collection is not None:
            query = query.where(_D.collection == collection)
        with self._database.reading() as connection:
            return connection.scalar(query) or 0

    def published_since(self, store: str, since: float) -> list[str]:
        """The collections of a store with a live version that was published at or after a time."""
        query = (
            select(_D.collection)
            .distinct()
            .join(schema.versions, (_V.document_id == _D.document_id))
            .join(schema.collections, _L.name == _D.collection)
            .where(_V.version == _D.live_version, _V.finished_at >= since)
            .where(_D.deleted_at.is_(None), _L.store == store, _L.deleted_at.is_(None))
            .order_by(_D.collection)
        )
        with self._database.reading() as connection:
            return list(connection.scalars(query))

    def moving(self, collection: str) -> bool:
        """Whether a move or an import of the collection is running or was interrupted.

        An expired lease does not count if its owner copied nothing to another store.
        """
        copied = exists().where(_P.collection == collection, _P.document_id != schema.LEFT_COPY)
        moved = exists().where(
            _M.collection == collection,
            _L.name == _M.collection,
            or_(_M.lease_until > time.time(), _M.switched, _M.store != _L.store),
        )
        with self._database.reading() as connection:
            return bool(connection.scalar(select(or_(copied, moved))))

    def artifacts(self, document_id: str, version: int) -> dict[Step, str]:
        """The artifact names of a version, by step."""
        with self._database.reading() as connection:
            rows = connection.execute(
                select(_S.step, _S.artifact).where(
                    _S.document_id == document_id,
                    _S.version == version,
                    _S.artifact.is_not(None),
                )
            )
            return {row.step: row.artifact for row in rows}

    def files(self) -> Iterator[dict[str, Files]]:
        """The expected files of every live document, in pages, by document id."""
        last = ""
        while True:
            query = _files_query().where(_D.document_id > last)
            with self._database.reading() as connection:
                rows = connection.execute(
                    query.order_by(_D.document_id).limit(DOCUMENTS_PER_PAGE)
                ).all()
            if not rows:
                return
            last = rows[-1].document_id
            yield {row.document_id: Files(row.sha256, row.artifact) for row in rows}

    def files_of(self, document_ids: Iterable[str]) -> dict[str, Files]:
        """The expected files of the documents among these that are live, by id."""
        known: dict[str, Files] = {}
        with self._database.reading() as connection:
            for ids in _batches(document_ids):
                rows = connection.execute(_files_query().where(_D.document_id.in_(ids)))
                known |= {row.document_id: Files(row.sha256, row.artifact) for row in rows}
        return known


def _files_query() -> Select[str, str, str | None]:
    live = (_V.document_id == _D.document_id) & (_V.version == _D.live_version)
    extract = (
        (_S.document_id == _D.document_id)
        & (_S.version == _D.live_version)
        & (_S.step == "extract")
    )
    return (
        select(_D.document_id, _V.sha256, _S.artifact)
        .join(schema.versions, live)
        .outerjoin(schema.steps, extract)
        .where(_D.deleted_at.is_(None))
    )


def _is_live(chunk: Row[Any], version: int | None) -> bool:
    first, last = chunk.first_version, chunk.last_version
    return version is not None and first <= version and (last is None or last >= version)


def _batches(ids: Iterable[str]) -> Iterator[list[str]]:
    listed = list(ids)
    for start in range(0, len(listed), IDS_PER_STATEMENT):
        yield listed[start : start + IDS_PER_STATEMENT]
