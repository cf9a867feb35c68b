"""What the stores should hold, document by document, for whoever compares."""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Row, Select, exists, func, or_, select

from stores.ledger import schema
from stores.ledger.chunks import IDS_PER_STATEMENT, THERE
from stores.ledger.database import Database
from stores.ledger.records import Step

_D, _V, _S, _C = schema.documents.c, schema.versions.c, schema.steps.c, schema.chunks.c
_L, _M, _P = schema.collections.c, schema.moves.c, schema.copies.c

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


class Files(NamedTuple):
    """What a live version was made of: the hash of its original, the artifact with its text.

    No artifact where the document came with an archive that had none.
    """

    sha256: str
    text: str | None


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

    def chunks(self, collection: str, tenant: str, chunk_ids: Iterable[str]) -> set[str]:
        """Those of the chunks that a store may hold of this collection and tenant."""
        query = select(_C.chunk_id).join(schema.documents, _D.document_id == _C.document_id)
        place = {"collection": collection, "tenant": tenant}
        return self._among(query.where(THERE), _C.chunk_id, chunk_ids, place)

    def documents(self, collection: str, tenant: str, document_ids: Iterable[str]) -> set[str]:
        """Those of the documents that a store may hold of this collection and tenant."""
        query = select(_D.document_id).where(THERE, _D.removed_at.is_(None))
        place = {"collection": collection, "tenant": tenant}
        return self._among(query, _D.document_id, document_ids, place)

    def ever_held(self, collection: str, document_ids: Iterable[str]) -> set[str]:
        """Those of the documents that are the collection's, or were."""
        query = select(_D.document_id).where(_D.collection.concat("") == collection)
        return self._among(query, _D.document_id, document_ids)

    def owners(self, document_ids: Iterable[str]) -> set[str]:
        """Those of the documents that may have files."""
        query = select(_D.document_id).where(_D.removed_at.is_(None))
        return self._among(query, _D.document_id, document_ids)

    def _among(
        self,
        query: Select[str],
        column: ColumnElement[str],
        ids: Iterable[str],
        values: Mapping[str, str] = MappingProxyType({}),
    ) -> set[str]:
        found: set[str] = set()
        with self._database.reading() as connection:
            for some in _batches(ids):
                found |= set(connection.scalars(query.where(column.in_(some)), values))
        return found

    def count(self, collection: str | None = None) -> int:
        """How many documents there are that are not removed."""
        query = select(func.count()).select_from(schema.documents).where(_D.removed_at.is_(None))
        if collection is not None:
            query = query.where(_D.collection == collection)
        with self._database.reading() as connection:
            return connection.scalar(query) or 0

    def moving(self, collection: str) -> bool:
        """Whether a move or an import is under way, or was broken off: it writes beside this.

        A lease that ran out is neither where it was held by one who copied nothing elsewhere.
        """
        copied = exists().where(_P.collection == collection)
        moved = exists().where(
            _M.collection == collection,
            _L.name == _M.collection,
            or_(_M.lease_until > time.time(), _M.switched, _M.store != _L.store),
        )
        with self._database.reading() as connection:
            return bool(connection.scalar(select(or_(copied, moved))))

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

    def files(self) -> Iterator[dict[str, Files]]:
        """The files that there should be of every live document, in pages, by document id."""
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
        """The same of those of these documents that are live."""
        found: dict[str, Files] = {}
        with self._database.reading() as connection:
            for ids in _batches(document_ids):
                rows = connection.execute(_files_query().where(_D.document_id.in_(ids)))
                found |= {row.document_id: Files(row.sha256, row.artifact) for row in rows}
        return found


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
