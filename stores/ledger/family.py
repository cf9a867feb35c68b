"""Documents that came within others: a mail's attachments, the files of a ZIP.

A child remembers its parent and the newest version of it that brought it. It goes when its parent
goes, or when a version of the parent goes live that does not bring it any more. Whoever submits a
document of its name makes it a document of its own.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, select, update

from callslip.errors import Conflict
from stores.ledger import events, schema
from stores.ledger.database import Database
from stores.ledger.records import Claim, VersionRecord
from stores.ledger.turns import withdraw

IDS_PER_STATEMENT = 500

_D, _V = schema.documents.c, schema.versions.c


@dataclass(frozen=True)
class Place:
    """Where a document stands among files within files.

    `contents` are the hashes of its own bytes and of all that it lies within, `depth` how many
    those are without its own. `documents` and `size` (bytes) are of all that the outermost one
    brought, but for the children of this one.
    """

    depth: int
    contents: frozenset[str]
    documents: int
    size: int


class Family:
    """Looking at parents and children."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def place(self, document_id: str) -> Place:
        """Where a document stands; of no use to keep two from being worked on at once."""
        with self._database.reading() as connection:
            line = list(_line(connection, document_id))
            others = [
                row.document_id
                for row in _below(connection, [line[-1]])
                if row.parent_id != document_id
            ]
            contents = connection.scalars(
                select(_V.sha256).where(_V.document_id.in_(line), _V.state.in_(("queued", "live")))
            )
            return Place(len(line) - 1, frozenset(contents), len(others), _size(connection, others))

    def taken(self, parent: VersionRecord, name: str) -> bool:
        """Whether a document beside the parent has the name that is not its child."""
        with self._database.reading() as connection:
            found = connection.execute(
                select(_D.parent_id).where(
                    _D.collection == parent.collection,
                    _D.tenant == parent.tenant,
                    _D.name == name,
                    _D.deleted_at.is_(None),
                )
            ).one_or_none()
        return found is not None and found.parent_id != parent.document_id

    def unwanted(self, document_id: str, version: int) -> set[str]:
        """Names of children of this version that were deleted by themselves: they stay so."""
        with self._database.reading() as connection:
            return set(
                connection.scalars(
                    select(_D.name).where(
                        _D.parent_id == document_id,
                        _D.parent_version == version,
                        _D.deleted_at.is_not(None),
                    )
                )
            )


def columns(parent: Claim | None) -> dict[str, Any]:
    """What a document's row says of its parent."""
    if parent is None:
        return {"parent_id": None, "parent_version": None}
    return {"parent_id": parent.document_id, "parent_version": parent.version}


def adopt(connection: Connection, document_id: str, parent: Claim | None) -> None:
    """Let a document that is there already be the parent's, or nobody's; Conflict if another's."""
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
    """Hide all that came within deleted documents, from the top down as every lock is taken."""
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
    """Hide the children that only older versions brought."""
    gone = connection.scalars(
        _hidden(now)
        .where(_D.parent_id == claim.document_id, _D.parent_version < claim.version)
        .returning(_D.document_id)
    ).all()
    _gone(connection, list(gone), now)
    hide_below(connection, gone, now)


def _gone(connection: Connection, document_ids: list[str], now: float) -> None:
    """What follows for documents that were just hidden: they wait no longer, and it is told."""
    for ids in _batches(document_ids):
        withdraw(connection, _D.document_id.in_(ids), now)
        events.add_deleted(connection, _D.document_id.in_(ids), now)


def _hidden(now: float) -> Any:
    return update(schema.documents).where(_D.deleted_at.is_(None)).values(deleted_at=now)


def _line(connection: Connection, document_id: str) -> Iterator[str]:
    """The document and what it lies within, outwards; a parent that is not here is none.

    An archive that was made by hand may have two that lie within each other.
    """
    at: str | None = document_id
    met: set[str] = set()
    while at is not None and at not in met:
        met.add(at)
        yield at
        parent = connection.scalar(select(_D.parent_id).where(_D.document_id == at))
        at = connection.scalar(select(_D.document_id).where(_D.document_id == parent))


def _below(connection: Connection, document_ids: list[str]) -> Iterator[Row[str, str | None]]:
    level, met = document_ids, set(document_ids)
    while level:
        found = [
            row
            for ids in _batches(level)
            for row in connection.execute(
                select(_D.document_id, _D.parent_id).where(
                    _D.parent_id.in_(ids), _D.deleted_at.is_(None)
                )
            )
            if row.document_id not in met
        ]
        met |= {row.document_id for row in found}
        yield from found
        level = [row.document_id for row in found]


def _size(connection: Connection, document_ids: list[str]) -> int:
    """Bytes of the newest version of each."""
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
