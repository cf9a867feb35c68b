"""Reads the chunks of a document's live version in order of their positions."""

from collections.abc import Iterable
from typing import NamedTuple

from sqlalchemy import ColumnElement, Select, and_, func, or_, select

from callslip.readers import Reader
from callslip.stores.ledger.base import schema
from callslip.stores.ledger.base.database import Database
from callslip.stores.ledger.base.readable import readable
from callslip.stores.ledger.documents.chunks import Span

_C, _D = schema.chunks.c, schema.documents.c

_start, _end = func.coalesce(_C.start, -1), func.coalesce(_C.end, -1)


class ChunkRow(NamedTuple):
    """A chunk of a live version. `span` is None if only the store has its position."""

    chunk_id: str
    span: Span | None


class After(NamedTuple):
    """The position behind which a page begins: that of the last chunk before it."""

    start: int
    end: int
    chunk_id: str

    @classmethod
    def of(cls, row: ChunkRow) -> "After":
        """The position of a chunk."""
        start, end = row.span or (-1, -1)
        return cls(start, end, row.chunk_id)


class ChunkRows:
    """Reads rows of chunks. A longer chunk comes before those that begin at the same position."""

    def __init__(self, database: Database, reader: Reader | None = None) -> None:
        self._database, self._reader = database, reader

    def page(
        self, document_id: str, *, after: After | None = None, limit: int, parents: bool = False
    ) -> list[ChunkRow]:
        """A page of the passages of a live version; with `parents`, of sections and document too.

        Provided chunks count as passages, whatever their levels are.
        """
        query = self._live(document_id, parents=parents)
        query = query.order_by(_start, _end.desc(), _C.chunk_id).limit(limit)
        return self._rows(query if after is None else query.where(_behind(after)))

    def passages(self, document_id: str) -> list[ChunkRow]:
        """Every passage of the live version."""
        return self._rows(self._live(document_id, parents=False))

    def count(self, document_id: str, *, parents: bool = False) -> int:
        """The number of chunks that all pages have together."""
        live = self._live(document_id, parents=parents).subquery()
        with self._database.reading() as connection:
            return connection.scalar(select(func.count()).select_from(live)) or 0

    def _rows(self, query: Select[str, int, int]) -> list[ChunkRow]:
        with self._database.reading() as connection:
            return list(_spanned(connection.execute(query).all()))

    def _live(self, document_id: str, *, parents: bool) -> Select[str, int, int]:
        query = (
            select(_C.chunk_id, _C.start, _C.end)
            .join(schema.documents, _D.document_id == _C.document_id)
            .where(_C.document_id == document_id, _D.deleted_at.is_(None))
            .where(readable(self._reader), _C.first_version <= _D.live_version)
            .where(or_(_C.last_version.is_(None), _C.last_version >= _D.live_version))
        )
        return query if parents else query.where(_C.text_hash != "")


def _behind(after: After) -> ColumnElement[bool]:
    return or_(
        _start > after.start,
        and_(_start == after.start, _end < after.end),
        and_(_start == after.start, _end == after.end, _C.chunk_id > after.chunk_id),
    )


def _spanned(rows: Iterable[tuple[str, int | None, int | None]]) -> Iterable[ChunkRow]:
    for chunk_id, start, end in rows:
        yield ChunkRow(chunk_id, None if start is None or end is None else (start, end))
