"""Moves of collections to another store: the lease of the mover, the copies, the pause of upserts.

The mover has a lease. While the mover also pauses the collection, no upsert of the collection can
be claimed. The pause of a killed mover ends with its lease.
"""

import json
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import ColumnElement, Connection, delete, exists, func, insert, or_, select, update
from sqlalchemy.exc import IntegrityError

from callslip.errors import CollectionNotFound, Conflict, LeaseLost
from callslip.stores.ledger.base import schema
from callslip.stores.ledger.base.attached import check_ours
from callslip.stores.ledger.base.database import Database
from callslip.stores.ledger.base.fair_queue import WAITING
from callslip.stores.ledger.base.locks import lock_document
from callslip.stores.records import CollectionSchema
from callslip.stores.schemas import dump_schema

_M, _P, _D, _S = schema.moves.c, schema.copies.c, schema.documents.c, schema.steps.c
_L, _V = schema.collections.c, schema.versions.c


@dataclass(frozen=True)
class Move:
    """A lease on a collection's move.

    After the switch, `store` is the one with the leftover copy.
    """

    collection: str
    store: str
    switched: bool
    token: str
    lease_seconds: float


@dataclass(frozen=True)
class Rebuilt:
    """What a collection's record says once the collection is built anew."""

    embedder: str
    analyzer: str
    schema: CollectionSchema


class Moves:
    """The leases of movers, and the record of the copies that they have written."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def underway(self, collection: str) -> tuple[str, bool, float] | None:
        """The move's target store, whether it has switched, and the end of the mover's lease."""
        with self._database.reading() as connection:
            row = connection.execute(
                select(schema.moves).where(_M.collection == collection)
            ).one_or_none()
        return None if row is None else (row.store, row.switched, row.lease_until)

    def take(self, collection: str, store: str, *, lease_seconds: float) -> Move:
        """Begin a move, or continue an unfinished one, which may have another target.

        Raises Conflict while another mover has the lease, AttachedReadOnly for an attached table.
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
        """Extend the lease. Raises LeaseLost if it has expired or the collection is gone."""
        with self._database.writing() as connection:
            renew(connection, move)

    def pause(self, move: Move) -> None:
        """Refuse all claims of the collection's upserts until the lease is released."""
        with self._database.writing() as connection:
            _set(connection, move, paused=True)

    def switch(self, move: Move, source: str, rebuilt: Rebuilt | None = None) -> Move:
        """Make the target the collection's store. The leftover copy is then the one in `source`.

        `rebuilt` is the new record of a collection whose target was built anew. Then no artifact
        with the previous terms or vectors counts any more, and queued versions repeat these steps.
        """
        values: dict[str, Any] = {"store": move.store}
        if rebuilt is not None:
            made = json.loads(dump_schema(rebuilt.schema))
            values |= {"embedder": rebuilt.embedder, "analyzer": rebuilt.analyzer, "schema": made}
        with self._database.writing() as connection:
            if rebuilt is not None:
                _repeat_steps(connection, move.collection)
            _set(connection, move, store=source, switched=True, paused=False)
            connection.execute(
                update(schema.collections)
                .where(_L.name == move.collection, _L.deleted_at.is_(None))
                .values(**values)
            )
            _drop_copies(connection, move.collection, move.store)
        return replace(move, store=source, switched=True)

    def end(self, move: Move, *, keep: bool = False) -> None:
        """Delete the record of a move and of its copies, unless another process has the lease now.

        With `keep`, note that the copy of the whole collection in the move's store stays.
        """
        with self._database.writing() as connection:
            ended = connection.execute(
                delete(schema.moves).where(_M.collection == move.collection, _M.token == move.token)
            )
            if ended.rowcount == 0:
                return
            _drop_copies(connection, move.collection, move.store)
            if keep:
                its = {"collection": move.collection, "store": move.store}
                left = {"document_id": schema.LEFT_COPY, "version": 0, "upserts": 0}
                connection.execute(insert(schema.copies).values(**its, **left))

    def release(self, move: Move) -> None:
        """Release the lease, so that another mover can continue at once."""
        with self._database.writing() as connection:
            connection.execute(
                update(schema.moves)
                .where(_M.collection == move.collection, _M.token == move.token)
                .values(lease_until=0.0, paused=False)
            )

    # Copies

    def note(self, collection: str, store: str, copied: Mapping[str, tuple[int, int]]) -> None:
        """Record the version and the number of upserts of each document that a store has.

        The caller records version 0 before it writes a document, so that the ledger knows all
        documents that the store may have.
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
        """Record that a store no longer has any data of the document."""
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
        return self._has(collection, store, _P.document_id != schema.LEFT_COPY)

    def left_copy(self, collection: str, store: str) -> bool:
        """Whether a move left the collection's copy in its previous store on purpose."""
        return self._has(collection, store, _P.document_id == schema.LEFT_COPY)

    def _has(self, collection: str, store: str, which: ColumnElement[bool]) -> bool:
        mine = exists().where(_P.collection == collection, _P.store == store, which)
        with self._database.reading() as connection:
            return bool(connection.scalar(select(mine)))

    def a_copy(self, collection: str, store: str) -> str | None:
        """The id of one live document that was copied; None if there is none."""
        query = (
            select(_P.document_id)
            .join(schema.documents, _D.document_id == _P.document_id)
            .where(_P.collection == collection, _P.store == store, _P.version > 0)
            .where(_D.deleted_at.is_(None))
            .limit(1)
        )
        with self._database.reading() as connection:
            return connection.scalar(query)

    def distrust(self, collection: str, store: str) -> None:
        """Mark every copy as out of date, so that all documents are copied again."""
        with self._database.writing() as connection:
            connection.execute(
                update(schema.copies)
                .where(_P.collection == collection, _P.store == store)
                .values(version=0)
            )

    def stale(self, collection: str, store: str, *, after: str = "", limit: int = 200) -> list[str]:
        """Ids after `after`, in order, of live documents without an up-to-date copy."""
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
        """The ids that belong to no document of the collection, deleted documents included."""
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
        """Take the steps from workers whose lease has expired, so that they cannot finish them."""
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
    """The end of the lease of the mover that pauses the collection; 0 if no mover pauses it.

    Locks the move's row, so that no pause can begin before the transaction ends.
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
    """Renew a lease within a transaction that requires it. Raises LeaseLost."""
    _set(connection, move, lease_until=time.time() + move.lease_seconds)


def _set(connection: Connection, move: Move, **values: Any) -> None:
    """Change the move's row. Raises LeaseLost, or CollectionNotFound if the collection is gone."""
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


def _repeat_steps(connection: Connection, collection: str) -> None:
    """Forget the artifacts of a collection's terms and vectors, and the steps that made them.

    The steps are those of versions that are queued, or that failed: a retry continues them. Locks
    the documents first, as workers do.
    """
    ours = select(_D.document_id).where(_D.collection == collection)
    connection.execute(ours.order_by(_D.document_id).with_for_update()).all()
    remade = (_S.document_id.in_(ours), _S.step.in_(("enrich", "embed")))
    version = (_V.document_id == _S.document_id) & (_V.version == _S.version)
    shown = (_D.document_id == _S.document_id) & (_D.live_version == _S.version)
    to_do = exists().where(version, _V.state.in_(("queued", "failed"))) & ~exists().where(shown)
    connection.execute(
        update(schema.steps)
        .where(*remade, _S.state.in_(("done", "running")), to_do)
        .values(state="pending", lease_until=None, retry_at=None)
    )
    connection.execute(update(schema.steps).where(*remade).values(artifact=None))
    connection.execute(
        update(schema.versions)
        .where(_V.document_id.in_(ours), _V.state == "queued", _V.turn.is_not(None))
        .values(turn=WAITING)
    )


def _drop_copies(connection: Connection, collection: str, store: str) -> None:
    connection.execute(delete(schema.copies).where(_P.collection == collection, _P.store == store))


def _busy(collection: str) -> Conflict:
    return Conflict(
        f"collection {collection!r} is being moved by another process",
        hint="Let that one end, or stop it and run the command again.",
    )
