"""What the stores should hold, document by document, for whoever compares."""

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row, exists, func, or_, select

from stores.ledger import schema
from stores.ledger.chunks import IDS_PER_STATEMENT
from stores.ledger.database import Database
from stores.ledger.records import Step

_D, _V, _S, _C = schema.documents.c, schema.versions.c, schema.steps.c, schema.chunks.c

DOCUMENTS_PER_PAGE = 200
"""Documents read at once; one of 100 pages has some 200 chunks."""


@dataclass(frozen=True)
class Item:
    """One document that is not removed.

    `known` chunks may be in a store, `live` ones must be: none of them where nothing is live.
    Unless it is `settled` its chunks come or go just now.
    """

    document_id: str
    live_version: int | None
    settled: bool
    live: frozenset[str]
    known: frozenset[str]


class Inventory:
    """Reading what there should be. Each statement sees the ledger as it is at its time."""

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
        """Those of the documents that are not removed, by id."""
        found: dict[str, Item] = {}
        for ids in _batches(document_ids):
            found |= self._items(ids)
        return found

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

    def chunks(self, chunk_ids: Iterable[str]) -> set[str]:
        """Those of the chunks that a store may hold."""
        known: set[str] = set()
        with self._database.reading() as connection:
            for ids in _batches(chunk_ids):
                known |= set(connection.scalars(select(_C.chunk_id).where(_C.chunk_id.in_(ids))))
        return known

    def documents(self, document_ids: Iterable[str], *, removed: bool = False) -> set[str]:
        """Those of the documents that a store may hold; with `removed` also those that none may."""
        known: set[str] = set()
        with self._database.reading() as connection:
            for ids in _batches(document_ids):
                query = select(_D.document_id).where(_D.document_id.in_(ids))
                known |= set(
                    connection.scalars(query if removed else query.where(_D.removed_at.is_(None)))
                )
        return known

    def count(self, collection: str | None = None) -> int:
        """How many documents there are that are not removed."""
        query = select(func.count()).select_from(schema.documents).where(_D.removed_at.is_(None))
        if collection is not None:
            query = query.where(_D.collection == collection)
        with self._database.reading() as connection:
            return connection.scalar(query) or 0

    def moving(self, collection: str) -> bool:
        """Whether a move or an import is under way, or was broken off: it writes beside this."""
        with self._database.reading() as connection:
            return any(
                connection.scalar(select(exists().where(table.c.collection == collection)))
                for table in (schema.moves, schema.copies)
            )

    def artifacts(self, document_id: str, version: int) -> dict[Step, str]:
        """The names of what each step of a version put out."""
        with self._database.reading() as connection:
            rows = connection.execute(
                select(_S.step, _S.artifact).where(
                    _S.document_id == document_id,
                    _S.version == version,
                    _S.artifact.is_not(None),
                )
            )
            return {row.step: row.artifact for row in rows}

    def with_files(self, document_ids: Iterable[str] | None = None) -> set[str]:
        """Live documents, or those of them among these, whose steps left files."""
        query = (
            select(_D.document_id)
            .distinct()
            .join(schema.steps, _S.document_id == _D.document_id)
            .where(_D.deleted_at.is_(None), _D.live_version.is_not(None))
            .where(_S.artifact.is_not(None))
        )
        found: set[str] = set()
        with self._database.reading() as connection:
            if document_ids is None:
                return set(connection.scalars(query))
            for ids in _batches(document_ids):
                found |= set(connection.scalars(query.where(_D.document_id.in_(ids))))
        return found


def _is_live(chunk: Row[Any], version: int | None) -> bool:
    first, last = chunk.first_version, chunk.last_version
    return version is not None and first <= version and (last is None or last >= version)


def _batches(ids: Iterable[str]) -> Iterator[list[str]]:
    listed = list(ids)
    for start in range(0, len(listed), IDS_PER_STATEMENT):
        yield listed[start : start + IDS_PER_STATEMENT]
