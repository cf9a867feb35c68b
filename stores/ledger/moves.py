"""Moving a collection to another store: who moves it, what is copied, when writers must wait.

The mover holds a lease. While it also pauses the collection, no upsert of it can be claimed; a
mover that was killed pauses nothing once its lease has run out.
"""

import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Connection, delete, exists, func, insert, or_, select, update
from sqlalchemy.exc import IntegrityError

from callslip.errors import CollectionNotFound, Conflict, LeaseLost
from stores.ledger import schema
from stores.ledger.attachments import check_ours
from stores.ledger.database import Database
from stores.ledger.locks import lock_document

_M, _P, _D, _S = schema.moves.c, schema.copies.c, schema.documents.c, schema.steps.c
_L = schema.collections.c


@dataclass(frozen=True)
class Move:
    """The right to move a collection. Once switched, `store` is the one with the copy left over."""

    collection: str
    store: str
    switched: bool
    token: str
    lease_seconds: float


class Moves:
    """Leases of movers, and what they have written."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def underway(self, collection: str) -> tuple[str, bool, float] | None:
        """Where to a move was begun, whether it has switched, and until when a mover is on it."""
        with self._database.reading() as connection:
            row = connection.execute(
                select(schema.moves).where(_M.collection == collection)
            ).one_or_none()
        return None if row is None else (row.store, row.switched, row.lease_until)

    def take(self, collection: str, store: str, *, lease_seconds: float) -> Move:
        """Begin a move, or go on with the one that was begun, which may be to another store.

        Conflict while another mover is on it; AttachedReadOnly.
        """
        now, token = time.time(), uuid.uuid4().hex
        lease = {"token": token, "lease_until": now + lease_seconds, "paused": False}
        try:
            with self._database.writing() as connection:
                check_ours(connection, collection)
                row = connection.execute(
                    select(schema.moves).where(_M.collection == collection).with_for_update()
                ).one_or_none()
                if row is None:
                    connection.execute(
                        insert(schema.moves).values(
                            collection=collection, store=store, switched=False, **lease
                        )
                    )
                    return Move(collection, store, False, token, lease_seconds)
                if row.lease_until > now:
                    raise _busy(collection)
                connection.execute(
                    update(schema.moves).where(_M.collection == collection).values(**lease)
                )
                return Move(collection, row.store, row.switched, token, lease_seconds)
        except IntegrityError:
            raise _busy(collection) from None

    def renew(self, move: Move) -> None:
        """Show a sign of life; LeaseLost where it came too late or the collection is gone."""
        with self._database.writing() as connection:
            renew(connection, move)

    def pause(self, move: Move) -> None:
        """From now on no upsert of the collection can be claimed, until the lease is given up."""
        with self._database.writing() as connection:
            _set(connection, move, paused=True)

    def switch(self, move: Move, source: str) -> Move:
        """Make the target the collection's store; what is left over is the source's copy."""
        with self._database.writing() as connection:
            _set(connection, move, store=source, switched=True, paused=False)
            connection.execute(
                update(schema.collections)
                .where(_L.name == move.collection, _L.deleted_at.is_(None))
                .values(store=move.store)
            )
            _drop_copies(connection, move.collection, move.store)
        return replace(move, store=source, switched=True)

    def end(self, move: Move) -> None:
        """Forget a move and what it copied, or never began to copy."""
        with self._database.writing() as connection:
            connection.execute(
                delete(schema.moves).where(_M.collection == move.collection, _M.token == move.token)
            )
            _drop_copies(connection, move.collection, move.store)

    def release(self, move: Move) -> None:
        """Let another mover go on at once."""
        with self._database.writing() as connection:
            connection.execute(
                update(schema.moves)
                .where(_M.collection == move.collection, _M.token == move.token)
                .values(lease_until=0.0, paused=False)
            )

    # What was written

    def note(self, collection: str, store: str, copied: Mapping[str, tuple[int, int]]) -> None:
        """Record of documents the version and the count of upserts that a store holds.

        Version 0 before it is written: so whatever a store holds is known to the ledger.
        """
        mine = (_P.collection == collection) & (_P.store == store)
        with self._database.writing() as connection:
            connection.execute(delete(schema.copies).where(mine, _P.document_id.in_(copied)))
            connection.execute(
                insert(schema.copies),
                [
                    {
                        "collection": collection,
                        "store": store,
                        "document_id": document_id,
                        "version": version,
                        "upserts": upserts,
                    }
                    for document_id, (version, upserts) in copied.items()
                ],
            )

    def forget(self, collection: str, store: str, document_id: str) -> None:
        """Record that a store holds nothing of the document any more."""
        with self._database.writing() as connection:
            connection.execute(
                delete(schema.copies).where(
                    _P.collection == collection,
                    _P.store == store,
                    _P.document_id == document_id,
                )
            )

    def has_copies(self, collection: str, store: str) -> bool:
        """Whether anything was written to the store."""
        mine = exists().where(_P.collection == collection, _P.store == store)
        with self._database.reading() as connection:
            return bool(connection.scalar(select(mine)))

    def distrust(self, collection: str, store: str) -> None:
        """Let everything be copied again."""
        with self._database.writing() as connection:
            connection.execute(
                update(schema.copies)
                .where(_P.collection == collection, _P.store == store)
                .values(version=0)
            )

    def stale(self, collection: str, store: str, *, after: str = "", limit: int = 200) -> list[str]:
        """Ids of live documents that were not copied as they are now, in order, after this one."""
        upserts = (
            select(func.coalesce(func.sum(_S.attempts), 0))
            .where(_S.document_id == _D.document_id, _S.step == "upsert")
            .scalar_subquery()
        )
        copied = (_P.document_id == _D.document_id) & (_P.store == store)
        query = (
            select(_D.document_id)
            .outerjoin(schema.copies, copied & (_P.collection == collection))
            .where(_D.collection == collection, _D.document_id > after)
            .where(_D.deleted_at.is_(None), _D.live_version.is_not(None))
            .where(or_(_P.version.is_(None), _P.version != _D.live_version, _P.upserts != upserts))
            .order_by(_D.document_id)
            .limit(limit)
        )
        with self._database.reading() as connection:
            return list(connection.scalars(query))

    def gone(self, collection: str, store: str, *, limit: int = 200) -> list[tuple[str, str]]:
        """Copied documents (id, tenant) that were deleted since."""
        query = (
            select(_D.document_id, _D.tenant)
            .join(schema.copies, _P.document_id == _D.document_id)
            .where(_P.collection == collection, _P.store == store, _D.deleted_at.is_not(None))
            .limit(limit)
        )
        with self._database.reading() as connection:
            return [(row.document_id, row.tenant) for row in connection.execute(query)]

    def strangers(self, collection: str, document_ids: list[str]) -> list[str]:
        """Those of the ids that are no document's of the collection, deleted ones included."""
        with self._database.reading() as connection:
            known = set(
                connection.scalars(
                    select(_D.document_id).where(
                        _D.collection == collection, _D.document_id.in_(document_ids)
                    )
                )
            )
        return [i for i in document_ids if i not in known]

    # Upserts

    def upserting(self, collection: str) -> bool:
        """Whether an upsert of the collection runs under a lease."""
        with self._database.reading() as connection:
            return bool(
                connection.scalar(
                    select(_upserts(collection).where(_S.lease_until > time.time()).exists())
                )
            )

    def fence(self, collection: str) -> None:
        """Take the steps from workers whose lease ran out: what they write late goes nowhere."""
        late = _upserts(collection).where(_S.lease_until <= time.time())
        with self._database.reading() as connection:
            rows = connection.execute(late).all()
        for row in rows:
            with self._database.writing() as connection:
                lock_document(connection, row.document_id)
                connection.execute(
                    update(schema.steps)
                    .where(_S.document_id == row.document_id, _S.version == row.version)
                    .where(_S.step == "upsert", _S.attempts == row.attempts)
                    .where(_S.state == "running", _S.lease_until <= time.time())
                    .values(state="pending", crashes=_S.crashes + 1, lease_until=None)
                )


def paused_until(connection: Connection, collection: str) -> float:
    """When a mover that pauses the collection must have come back at the latest; 0 without one.

    Whoever reads this in a transaction keeps the pause from beginning before it ends.
    """
    row = connection.execute(
        select(_M.lease_until, _M.paused)
        .where(_M.collection == collection)
        .with_for_update(read=True)
    ).one_or_none()
    return float(row.lease_until) if row is not None and row.paused else 0.0


def _upserts(collection: str) -> Any:
    return (
        select(_S.document_id, _S.version, _S.attempts)
        .join(schema.documents, _D.document_id == _S.document_id)
        .where(_D.collection == collection)
        .where(_S.step == "upsert", _S.state == "running")
    )


def renew(connection: Connection, move: Move) -> None:
    """Renew a lease within a transaction that is right only under it; LeaseLost."""
    _set(connection, move, lease_until=time.time() + move.lease_seconds)


def _set(connection: Connection, move: Move, **values: Any) -> None:
    """Change the row while the lease holds, of a collection that is not being removed."""
    there = exists().where(_L.name == move.collection, _L.deleted_at.is_(None))
    changed = connection.execute(
        update(schema.moves)
        .where(_M.collection == move.collection, _M.token == move.token)
        .where(_M.lease_until > time.time(), there)
        .values(**values)
    )
    if changed.rowcount == 0:
        if not connection.scalar(select(there)):
            raise CollectionNotFound(f"collection {move.collection!r} was deleted meanwhile")
        raise LeaseLost(
            f"the move of collection {move.collection!r} stood still for too long",
            hint="Run the same command again: it goes on where this one stopped.",
        )


def _drop_copies(connection: Connection, collection: str, store: str) -> None:
    connection.execute(delete(schema.copies).where(_P.collection == collection, _P.store == store))


def _busy(collection: str) -> Conflict:
    return Conflict(
        f"collection {collection!r} is being moved by another process",
        hint="Let that one end, or stop it and run the command again.",
    )
