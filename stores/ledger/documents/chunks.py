"""The chunks of each document version in the ledger, which decide what a search may return."""

import json
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import (
    ColumnElement,
    Connection,
    bindparam,
    column,
    delete,
    exists,
    func,
    insert,
    or_,
    select,
    update,
)
from sqlalchemy.exc import IntegrityError

from callslip.errors import Conflict, TransientError
from callslip.readers import Reader
from callslip.stores.ledger.base import schema
from callslip.stores.ledger.base.database import Database
from callslip.stores.ledger.base.locks import lock_document
from callslip.stores.ledger.base.memory_tables import forget_document
from callslip.stores.ledger.base.readable import readable
from callslip.stores.ledger.base.records import Claim
from callslip.stores.ledger.documents.pages import PageTable
from callslip.stores.ledger.documents.progress import claimed_row

_C, _D, _S = schema.chunks.c, schema.documents.c, schema.steps.c

IDS_PER_STATEMENT = 500
"""Bound values per statement; SQLite allows 32,766, older versions of SQLite 999."""


# Statements of the hot path are built once: building one costs more than running it.
_OF_DOCUMENT = (
    select(_C.chunk_id, _C.first_version, _C.last_version, _C.start, _C.end)
    .where(_C.document_id == bindparam("document_id"))
    .order_by(_C.first_version)
)
_LIVE = (
    select(_C.chunk_id, _C.document_id, _C.start, _C.end, _D.live_version)
    .join(schema.documents, _D.document_id == _C.document_id)
    .where(_D.deleted_at.is_(None), _C.first_version <= _D.live_version)
    .where(or_(_C.last_version.is_(None), _C.last_version >= _D.live_version))
)
# The columns are concatenated with an empty text, so that SQLite looks up the few ids instead of
# scanning the whole scope by its index, which is ten times slower for 200 of 100,000 chunks.
THERE = (_D.collection.concat("") == bindparam("collection")) & (
    _D.tenant.concat("") == bindparam("tenant")
)
"""The condition that a document, whose id the statement has, is in this collection and tenant."""
_SEEN = _LIVE.where(_C.chunk_id.in_(bindparam("chunk_ids", expanding=True)))
_SEEN_THERE = _SEEN.where(THERE)
# SQLite gets the ids as one value: to write and to bind 300 took as long as to find them.
_LISTED = _LIVE.where(
    _C.chunk_id.in_(select(column("value")).select_from(func.json_each(bindparam("chunk_ids"))))
)
_LISTED_THERE = _LISTED.where(THERE)
_FIRST = (
    select(_C.chunk_id)
    .join(schema.documents, _D.document_id == _C.document_id)
    .where(THERE, _D.deleted_at.is_(None), _C.first_version <= _D.live_version)
    .where(or_(_C.last_version.is_(None), _C.last_version >= _D.live_version))
    .order_by(_C.chunk_id)
    .limit(bindparam("most"))
)
_INSERT = insert(schema.chunks)
_PUT = update(schema.chunks).where(
    _C.chunk_id == bindparam("of_chunk"), _C.first_version == bindparam("since")
)

_PUT_PAGES = (
    update(schema.versions)
    .where(
        schema.versions.c.document_id == bindparam("of_document"),
        schema.versions.c.version == bindparam("of_version"),
    )
    .values(pages=bindparam("pages_of", type_=schema.versions.c.pages.type))
)

Span = tuple[int, int]
"""The position of a chunk in the text of its version: `text[start:end]`."""


class Seen(NamedTuple):
    """A chunk of a live version. `span` is None if only the store records the position."""

    document_id: str
    span: Span | None
    version: int


class Expected(NamedTuple):
    """The chunks (id → hash of the text) that a version is about to store, and where they stand."""

    claim: Claim
    text_hashes: Mapping[str, str]
    spans: Mapping[str, Span] = {}
    pages: PageTable | None = None


class Chunks:
    """Records for each chunk the range of document versions that contain it.

    The stores delete a chunk whose range is empty. If the position of a chunk in the text differs
    between versions, the chunk has a row for each position. So an edit at the top of a text moves
    the chunks below it in one step, without a write to the store.
    """

    def __init__(self, database: Database, reader: Reader | None = None) -> None:
        self._database, self._reader = database, reader

    def expect(
        self,
        claim: Claim,
        text_hashes: Mapping[str, str],
        spans: Mapping[str, Span] | None = None,
        pages: PageTable | None = None,
    ) -> None:
        """Record the chunks (id → hash of the text) that a version is about to store.

        Call it before the store is written, so that the ledger knows every chunk in a store. The
        chunks are invisible until the version goes live. Without spans, chunks keep their recorded
        positions. With `pages`, records the pages of the version's text. Idempotent.

        Raises LeaseLost if the claim no longer has the step: otherwise chunks of a late worker
        would be visible in a newer live version. Raises TransientError while a store still deletes
        one of the chunks. Raises Conflict if a chunk belongs to another document, which is possible
        only with ids from clients.
        """
        _raise(self.expect_all([Expected(claim, text_hashes, spans or {}, pages)]))

    def expect_all(self, expected: Sequence[Expected]) -> list[TransientError | None]:
        """Record the chunks of several versions as `expect` does, in one transaction.

        Returns for each version None, or the error for which nothing is recorded of it. Raises
        Conflict, and records nothing, if a chunk of any of them belongs to another document.
        """
        failed: list[TransientError | None] = [None] * len(expected)
        in_order = sorted(range(len(expected)), key=lambda n: expected[n].claim.document_id)
        try:
            with self._database.writing() as connection:
                for number in in_order:  # every transaction locks documents in this order
                    try:
                        _expect(connection, expected[number])
                    except TransientError as error:  # raised before any change
                        failed[number] = error
        except IntegrityError:
            raise _not_free("a chunk") from None
        return failed

    def seen(
        self, chunk_ids: Sequence[str], *, collection: str = "", tenant: str = ""
    ) -> dict[str, Seen]:
        """The chunks among these that belong to a live version of a readable document.

        With `collection`, only the chunks of that collection and tenant.
        """
        visible: dict[str, Seen] = {}
        if self._database.is_sqlite:
            query = _LISTED_THERE if collection else _LISTED
        else:
            query = _SEEN_THERE if collection else _SEEN
        if self._reader is not None:
            query = query.where(readable(self._reader))
        scope = {"collection": collection, "tenant": tenant} if collection else {}
        with self._database.reading() as connection:
            for start in range(0, len(chunk_ids), IDS_PER_STATEMENT):
                some: Any = list(chunk_ids[start : start + IDS_PER_STATEMENT])
                some = json.dumps(some) if self._database.is_sqlite else some
                rows = connection.execute(query, {"chunk_ids": some, **scope}).all()
                for chunk_id, document_id, start_at, end_at, version in rows:
                    span = None if start_at is None else (start_at, end_at)
                    visible[chunk_id] = Seen(document_id, span, version)
        return visible

    def visible(
        self, chunk_ids: Sequence[str], *, collection: str = "", tenant: str = ""
    ) -> dict[str, str]:
        """Like `seen`, but returns chunk id → document id."""
        visible = self.seen(chunk_ids, collection=collection, tenant=tenant)
        return {chunk_id: seen.document_id for chunk_id, seen in visible.items()}

    def first_visible(self, collection: str, tenant: str, most: int) -> list[str]:
        """The first of the chunk ids that a search of this collection and tenant may see."""
        scope = {"collection": collection, "tenant": tenant, "most": most}
        with self._database.reading() as connection:
            return list(connection.scalars(_FIRST.where(readable(self._reader)), scope))

    def live_ids(self, document_id: str) -> set[str]:
        """Ids of the chunks of a document's live version."""
        with self._database.reading() as connection:
            ids = connection.scalars(
                select(_C.chunk_id)
                .join(schema.documents, _D.document_id == _C.document_id)
                .where(_C.document_id == document_id, _C.first_version <= _D.live_version)
                .where(readable(self._reader))
                .where(or_(_C.last_version.is_(None), _C.last_version >= _D.live_version))
            )
            return set(ids)

    def check_free(self, chunk_ids: Sequence[str], document_id: str | None) -> None:
        """Raise Conflict if a chunk belongs to another document than this one, of any reader.

        `expect` would not see it if it came with a later version of the other document.
        """
        with self._database.reading() as connection:
            for start in range(0, len(chunk_ids), IDS_PER_STATEMENT):
                some = _C.chunk_id.in_(chunk_ids[start : start + IDS_PER_STATEMENT])
                others = select(_C.chunk_id).where(some, _C.document_id != (document_id or ""))
                if (other := connection.scalar(others.limit(1))) is not None:
                    raise _not_free(f"chunk {other!r}")

    def end(self, document_id: str) -> set[str]:
        """End the chunks that neither the live version nor a newer one contains; return their ids.

        No version may expect an ended chunk until the stores have deleted it and `forget` has
        dropped its row. Otherwise a new version would lose a chunk that it has just stored again.
        Returns nothing while a step of the live version has a lease: its owner may be deleting the
        chunks that it has hidden, and may store them again after that.
        """
        mine = _C.document_id == document_id
        with self._database.writing() as connection:
            document = lock_document(connection, document_id)
            if document is None or document.live_version is None:
                return set()
            running = (_S.document_id == document_id) & (_S.version == document.live_version)
            leased = running & (_S.state == "running") & (_S.lease_until > time.time())
            if connection.scalar(select(exists().where(leased))):
                return set()
            over = _C.last_version < document.live_version
            needed = select(_C.chunk_id).where(mine, or_(_C.last_version.is_(None), ~over))
            connection.execute(
                delete(schema.chunks).where(mine, over, _C.chunk_id.in_(needed.scalar_subquery()))
            )
            connection.execute(update(schema.chunks).where(mine, over).values(last_version=0))
            return set(connection.scalars(select(_C.chunk_id).where(mine, over)))

    def hide_others(self, claim: Claim, left: Collection[str]) -> set[str]:
        """End the chunks of a claimed live version that are not among these; return their ids.

        Only the owner of the claim may then delete them from the store and `forget` them. Raises
        LeaseLost if the claim no longer owns the step.
        """
        with self._database.writing() as connection:
            claimed_row(connection, claim)
            rows = connection.execute(_OF_DOCUMENT, {"document_id": claim.document_id}).all()
            open_ = {row.chunk_id for row in rows if row.last_version is None}
            gone = sorted(open_.difference(left))
            for start in range(0, len(gone), IDS_PER_STATEMENT):
                some = _C.chunk_id.in_(gone[start : start + IDS_PER_STATEMENT])
                mine = (_C.document_id == claim.document_id) & _C.last_version.is_(None)
                connection.execute(update(schema.chunks).where(mine, some).values(last_version=0))
        return set(gone)

    def forget(self, document_id: str, chunk_ids: Iterable[str] | None = None) -> None:
        """Drop the rows of ended chunks, or of all chunks of a document, once no store has them.

        Also deletes the cached vectors of their texts. The chunk memory stays as long as the
        document, because a later version may contain the chunk again.
        """
        mine = _C.document_id == document_id
        with self._database.writing() as connection:
            if chunk_ids is None:
                _drop_rows(connection, mine)
                forget_document(connection, document_id)
                return
            ids = list(chunk_ids)
            for start in range(0, len(ids), IDS_PER_STATEMENT):
                some = _C.chunk_id.in_(ids[start : start + IDS_PER_STATEMENT])
                _drop_rows(connection, mine & some & (_C.last_version < _C.first_version))


def _expect(connection: Connection, expected: Expected) -> None:
    claim, text_hashes, spans, pages = expected
    claimed_row(connection, claim)
    rows = connection.execute(_OF_DOCUMENT, {"document_id": claim.document_id}).all()
    open_ = (row for row in rows if row.last_version is None)
    known = {row.chunk_id: row for row in open_ if row.first_version <= claim.version}
    ended = (row for row in rows if row.last_version is not None)
    leaving = {row.chunk_id for row in ended if row.last_version < row.first_version}
    if text_hashes.keys() & leaving:
        raise TransientError(f"chunks of {claim.document_id} are leaving the store")
    if pages is not None:
        which = {"of_document": claim.document_id, "of_version": claim.version}
        connection.execute(_PUT_PAGES, which | {"pages_of": pages.as_json()})
    new, moved = [], []
    for chunk_id, text_hash in text_hashes.items():
        row, span = known.get(chunk_id), spans.get(chunk_id)
        if row is not None and span in (None, (row.start, row.end)):
            continue
        start, end = span or (None, None)
        if row is not None and row.first_version == claim.version:
            moved.append({"of_chunk": chunk_id, "since": claim.version, "start": start, "end": end})
            continue
        new.append(
            {
                "chunk_id": chunk_id,
                "first_version": claim.version,
                "document_id": claim.document_id,
                "text_hash": text_hash,
                "start": start,
                "end": end,
            }
        )
    if new:
        connection.execute(_INSERT, new)
    if moved:
        connection.execute(_PUT, moved)


def _not_free(chunk: str) -> Conflict:
    return Conflict(
        f"{chunk} is here already, as another document's",
        hint="Delete that document, or give the chunk another id. What was deleted keeps its ids"
        " until it is removed, which takes a moment.",
    )


def _raise(failed: Sequence[TransientError | None]) -> None:
    for error in failed:
        if error is not None:
            raise error


def _drop_rows(connection: Connection, which: ColumnElement[bool]) -> None:
    hashes = select(_C.text_hash).where(which).scalar_subquery()
    for table in (schema.vectors, schema.token_vectors):
        connection.execute(delete(table).where(table.c.text_hash.in_(hashes)))
    connection.execute(delete(schema.chunks).where(which))
