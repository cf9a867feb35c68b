"""Child documents in the ledger: the attachments of a mail, the files of a ZIP archive.

The row of a child has the id of its parent and the newest version of the parent that contains it.
A child is deleted with its parent, or when a version of the parent that no longer contains it goes
live. If a client submits a document with the child's name, the child becomes independent.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, func, select, update

from callslip.errors import Conflict
from callslip.stores.ledger.base import schema
from callslip.stores.ledger.base.database import Database
from callslip.stores.ledger.base.fair_queue import withdraw
from callslip.stores.ledger.base.records import Claim, VersionRecord
from callslip.stores.ledger.outbox import events

IDS_PER_STATEMENT = 500

_D, _V = schema.documents.c, schema.versions.c


@dataclass(frozen=True)
class Position:
    """The position of a document in a tree of nested documents.

    `contents` are the SHA-256 hashes of its own bytes and of the documents that contain it, `depth`
    is the number of the latter. `documents` and `size` (bytes) count all documents of the outermost
    document's tree, without the children of this one.
    """

    depth: int
    contents: frozenset[str]
    documents: int
    size: int


class ChildDocuments:
    """Reads the relations between parent and child documents."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def position(self, document_id: str) -> Position:
        """The position of a document in its tree, read without a lock."""
        with self._database.reading() as connection:
            line = list(_line(connection, document_id))
            others = [
                row.document_id
                for row in below(connection, [line[-1]])
                if row.parent_id != document_id
            ]
            contents = connection.scalars(
                select(_V.sha256).where(_V.document_id.in_(line), _V.state.in_(("queued", "live")))
            )
            return Position(
                len(line) - 1, frozenset(contents), len(others), _size(connection, others)
            )

    def taken(self, parent: VersionRecord, name: str) -> bool:
        """Whether the name belongs to a document in the parent's scope that is not its child."""
        with self._database.reading() as connection:
            other = connection.execute(
                select(_D.parent_id).where(
                    _D.collection == parent.collection,
                    _D.tenant == parent.tenant,
                    _D.name == name,
                    _D.deleted_at.is_(None),
                )
            ).one_or_none()
        return other is not None and other.parent_id != parent.document_id

    def unwanted(self, document_id: str, version: int) -> set[str]:
        """Names of children of this version that a client deleted; they must stay deleted.

        Includes those of the versions right before it that have the same file: an edit, a
        correction or a rollback makes a version that contains the children anew.
        """
        of = select(_V.sha256).where(_V.document_id == document_id, _V.version == version)
        other = select(func.coalesce(func.max(_V.version), 0)).where(
            _V.document_id == document_id,
            _V.version < version,
            _V.sha256 != of.scalar_subquery(),
        )
        with self._database.reading() as connection:
            return set(
                connection.scalars(
                    select(_D.name).where(
                        _D.parent_id == document_id,
                        _D.parent_version > other.scalar_subquery(),
                        _D.parent_version <= version,
                        _D.deleted_at.is_not(None),
                    )
                )
            )


def columns(parent: Claim | None) -> dict[str, Any]:
    """The columns of a document's row that name its parent."""
    if parent is None:
        return {"parent_id": None, "parent_version": None}
    return {"parent_id": parent.document_id, "parent_version": parent.version}


def adopt(connection: Connection, document_id: str, parent: Claim | None) -> None:
    """Update or clear an existing document's parent. Raises Conflict if `parent` is another one."""
    mine = select(_D.parent_id).where(_D.document_id == document_id)
    if parent is not None and connection.scalar(mine) != parent.document_id:
        raise Conflict(f"document {document_id} has the name and is of another origin")
    connection.execute(
        update(schema.documents)
        .where(_D.document_id == document_id)
        .where(_D.parent_id.is_not(None))
        .values(**columns(parent))
    )


def hide_below(connection: Connection, document_ids: Iterable[str], now: float) -> None:
    """Mark all descendants of deleted documents as deleted, parents first: the order of locks."""
    above = list(document_ids)
    while above:
        above = [
            row.document_id
            for ids in _batches(above)
            for row in connection.execute(
                _hidden(now).where(_D.parent_id.in_(ids)).returning(_D.document_id)
            )
        ]
        _gone(connection, above, now)


def hide_vanished(connection: Connection, claim: Claim, now: float) -> None:
    """Mark the children that only older versions contain as deleted."""
    gone = connection.scalars(
        _hidden(now)
        .where(_D.parent_id == claim.document_id, _D.parent_version < claim.version)
        .returning(_D.document_id)
    ).all()
    _gone(connection, list(gone), now)
    hide_below(connection, gone, now)


def _gone(connection: Connection, document_ids: list[str], now: float) -> None:
    """Remove deleted documents from the queue, and record an event for each."""
    for ids in _batches(document_ids):
        withdraw(connection, _D.document_id.in_(ids), now)
        events.add_deleted(connection, _D.document_id.in_(ids), now)


def _hidden(now: float) -> Any:
    return update(schema.documents).where(_D.deleted_at.is_(None)).values(deleted_at=now)


def _line(connection: Connection, document_id: str) -> Iterator[str]:
    """The ids of the document and of its ancestors, innermost first, as far as they exist here.

    An archive made by hand may contain a cycle of parents.
    """
    at: str | None = document_id
    met: set[str] = set()
    while at is not None and at not in met:
        met.add(at)
        yield at
        parent = connection.scalar(select(_D.parent_id).where(_D.document_id == at))
        at = connection.scalar(select(_D.document_id).where(_D.document_id == parent))


def below(connection: Connection, document_ids: list[str]) -> Iterator[Row[str, str | None]]:
    """The id and the parent of each document within these that is not deleted."""
    level, met = document_ids, set(document_ids)
    while level:
        children = [
            row
            for ids in _batches(level)
            for row in connection.execute(
                select(_D.document_id, _D.parent_id).where(
                    _D.parent_id.in_(ids), _D.deleted_at.is_(None)
                )
            )
            if row.document_id not in met
        ]
        met |= {row.document_id for row in children}
        yield from children
        level = [row.document_id for row in children]


def _size(connection: Connection, document_ids: list[str]) -> int:
    """The total size in bytes of the newest versions of these documents."""
    newest: dict[str, int] = {}
    for ids in _batches(document_ids):
        rows = connection.execute(
            select(_V.document_id, _V.size).where(_V.document_id.in_(ids)).order_by(_V.version)
        )
        newest |= {row.document_id: row.size for row in rows}
    return sum(newest.values())


def _batches(ids: list[str]) -> Iterator[list[str]]:
    for start in range(0, len(ids), IDS_PER_STATEMENT):
        yield ids[start : start + IDS_PER_STATEMENT]
