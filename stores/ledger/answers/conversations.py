"""The names and owners of conversations; the agent's checkpointer stores their turns."""

import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement, delete, exists, or_, select
from sqlalchemy.dialects import postgresql, sqlite

from callslip.errors import CollectionNotFound, ThreadNotFound
from callslip.readers import Reader
from callslip.stores.ledger.base import answer_tables, schema
from callslip.stores.ledger.base.database import Database

_K, _C, _T = answer_tables.conversations.c, schema.collections.c, schema.tenants.c


@dataclass(frozen=True)
class ConversationRecord:
    """A conversation. `key` is its key in the checkpointer."""

    key: str
    thread_id: str
    created_at: float
    asked_at: float


class Conversations:
    """The names of conversations, separate for each collection, tenant and reader."""

    def __init__(self, database: Database, reader: Reader | None = None) -> None:
        self._database, self._owner = database, reader.owner if reader else ""

    def open(
        self, collection: str, tenant: str, thread_id: str, now: float | None = None
    ) -> ConversationRecord:
        """The conversation of this name, created if missing.

        Its time of the last question is set to now.
        """
        now = time.time() if now is None else now
        with self._database.writing() as connection:
            born = connection.scalar(
                select(_C.created_at).where(_C.name == collection, _C.deleted_at.is_(None))
            )
            if born is None:
                raise CollectionNotFound(f"Collection {collection} does not exist.")
            settled = connection.scalar(
                select(_T.created_at).where(_T.collection == collection, _T.name == tenant)
            )
            owner = (self._owner,) if self._owner else ()
            key = _key(collection, repr(born), tenant, repr(settled), thread_id, *owner)
            make = (sqlite if self._database.is_sqlite else postgresql).insert
            row = connection.execute(
                make(answer_tables.conversations)
                .values(
                    key=key,
                    collection=collection,
                    tenant=tenant,
                    thread_id=thread_id,
                    owner=self._owner,
                    created_at=now,
                    asked_at=now,
                )
                .on_conflict_do_update(index_elements=["key"], set_={"asked_at": now})
                .returning(_K.key, _K.thread_id, _K.created_at, _K.asked_at)
            ).one()
        return ConversationRecord(**row._mapping)

    def get(self, collection: str, tenant: str, thread_id: str) -> ConversationRecord:
        """The conversation of this name. Raises ThreadNotFound."""
        query = select(_K.key, _K.thread_id, _K.created_at, _K.asked_at).where(
            _K.collection == collection,
            _K.tenant == tenant,
            _K.thread_id == thread_id,
            _K.owner == self._owner,
            _owned(),
        )
        with self._database.reading() as connection:
            row = connection.execute(query).first()
        if row is None:
            raise ThreadNotFound(f"conversation {thread_id!r} does not exist, or is forgotten")
        return ConversationRecord(**row._mapping)

    def stale(self, before: float, limit: int = 500) -> list[str]:
        """Keys of conversations with no question since `before`, or in a deleted scope."""
        query = select(_K.key).where(or_(_K.asked_at < before, ~_owned())).limit(limit)
        with self._database.reading() as connection:
            return list(connection.scalars(query))

    def drop(self, keys: Sequence[str]) -> None:
        """Delete these names. The caller has deleted the checkpointer's data before."""
        with self._database.writing() as connection:
            connection.execute(delete(answer_tables.conversations).where(_K.key.in_(keys)))


def _owned() -> ColumnElement[bool]:
    """The condition that a conversation's collection and tenant, if any, exist and are older."""
    collection = exists().where(
        _C.name == _K.collection, _C.deleted_at.is_(None), _C.created_at <= _K.created_at
    )
    tenant = exists().where(
        _T.collection == _K.collection,
        _T.name == _K.tenant,
        _T.deleted_at.is_(None),
        _T.created_at <= _K.created_at,
    )
    return collection & or_(_K.tenant == "", tenant)


def _key(*parts: str) -> str:
    """A hash of the parts. Their creation times give a recreated collection or tenant new keys."""
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        data = part.encode()
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()
