"""Deletes every row that mentions purged documents, a tenant or a user.

A removal keeps rows that serve people: a deleted document's name and receipt, events, traces of
searches with it among their hits. A purge runs after the removal and deletes these too. Of a
document only the rows of itself and of its newest version stay, without names, because they have
the receipt.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from sqlalchemy import ColumnElement, Connection, Table, delete, exists, select, text, update

from callslip.errors import LedgerError
from callslip.stores.ledger.base import answer_tables, memory_tables, outbox_tables, schema
from callslip.stores.ledger.base.database import Database
from callslip.stores.ledger.base.packing import unpack

IDS_PER_STATEMENT = 500
PURGED = "purged"
"""The name of a purged document."""


_D, _V, _C, _E = schema.documents.c, schema.versions.c, schema.chunks.c, outbox_tables.events.c
_O, _OC, _K = (
    memory_tables.outcomes.c,
    memory_tables.outcome_chunks.c,
    answer_tables.conversations.c,
)
_RE, _T = memory_tables.retrieval_events.c, memory_tables.traces.c
_TEXTS = re.compile(r'"((?:[^"\\]|\\.)*)"')

_OF_DOCUMENT = tuple(
    table
    for table in reversed(schema.metadata.sorted_tables)
    if "document_id" in table.c and table is not schema.documents and table.name != "events"
)
_NOTHING: tuple[tuple[Table, dict[str, Any]], ...] = (
    (
        schema.versions,
        {
            **{"filename": PURGED, "title": "", "properties": {}},
            **{"error": None, "sha256": "", "size": 0, "corrections": None},
        },
    ),
    (schema.steps, {"artifact": None, "counts": None, "error": None, "worker": None}),
)
"""The values of the rows that stay."""

_OF_SCOPE = tuple(
    table
    for table in schema.metadata.sorted_tables
    if {"collection", "tenant"} <= set(table.c.keys())
    and table.name not in ("receipts", "conversations")
)


class Purge:
    """Finds and deletes rows. Every deletion can be repeated, and returns counts by table."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def with_children(self, document_ids: Iterable[str]) -> list[str]:
        """These documents and those that they contain, of every depth, each once."""
        ids = dict.fromkeys(document_ids)
        level = list(ids)
        with self._database.reading() as connection:
            while level:
                query = select(_D.document_id).where(_D.parent_id.in_(level[:IDS_PER_STATEMENT]))
                below = [i for i in connection.scalars(query) if i not in ids]
                ids |= dict.fromkeys(below)
                level = level[IDS_PER_STATEMENT:] + below
        return list(ids)

    def documents_of(self, collection: str, tenant: str) -> list[str]:
        """The ids of all documents of a tenant, deleted ones included."""
        query = select(_D.document_id).where(_D.collection == collection, _D.tenant == tenant)
        with self._database.reading() as connection:
            return list(connection.scalars(query))

    def chunk_ids(self, document_ids: Iterable[str]) -> set[str]:
        """The ids of all chunks of these documents, in any version."""
        ids: set[str] = set()
        with self._database.reading() as connection:
            for some in _batches(document_ids):
                query = select(_C.chunk_id).where(_C.document_id.in_(some))
                ids.update(connection.scalars(query))
                memory = memory_tables.chunk_stats.c
                query = select(memory.chunk_id).where(memory.document_id.in_(some))
                ids.update(connection.scalars(query))
        return ids

    def searches_with(self, ids: set[str]) -> set[str]:
        """The trace ids of searches whose records mention one of these documents or chunks."""
        trace_ids = set()
        queries = (
            select(_RE.trace_id, _RE.hits, _RE.basis, _RE.settings, _RE.packed),
            select(_T.trace_id, _T.body, _T.packed),
        )
        with self._database.snapshot() as connection:
            for query in queries:
                for trace_id, *values in connection.execute(query.execution_options(yield_per=200)):
                    if mentions(values, ids):
                        trace_ids.add(trace_id)
        return trace_ids

    def known_searches(self) -> set[str]:
        """The trace ids of all searches with a record."""
        with self._database.snapshot() as connection:
            return {
                *connection.scalars(select(_RE.trace_id)),
                *connection.scalars(select(_T.trace_id)),
            }

    def conversations(self, collection: str, tenant: str) -> list[str]:
        """The keys of all conversations of a scope."""
        query = select(_K.key).where(_K.collection == collection, _K.tenant == tenant)
        with self._database.reading() as connection:
            return list(connection.scalars(query))

    def users(self) -> set[str]:
        """The users of outcomes, and the users that names of conversations may begin with."""
        with self._database.reading() as connection:
            users = set(connection.scalars(select(_O.user).distinct()))
            for thread_id in connection.scalars(select(_K.thread_id).distinct()):
                users.update(users_of(thread_id))
        return users - {""}

    def conversations_of(self, user: str) -> list[str]:
        """The keys of conversations whose name is the user's, or begins with it and `:` or `/`."""
        with self._database.reading() as connection:
            rows = connection.execute(select(_K.key, _K.thread_id)).all()
        return [row.key for row in rows if user in users_of(row.thread_id)]

    def conversations_of_owner(self, owner: str) -> list[str]:
        """The keys of the conversations that the reader with this owner's name began."""
        with self._database.reading() as connection:
            return list(connection.scalars(select(_K.key).where(_K.owner == owner)))

    def outcomes_of(self, user: str) -> list[tuple[str, str]]:
        """The id and the search of each outcome of a user."""
        query = select(_O.outcome_id, _O.trace_id).where(_O.user == user)
        with self._database.reading() as connection:
            return [(row.outcome_id, row.trace_id) for row in connection.execute(query)]

    def documents(self, document_ids: Iterable[str]) -> Counter[str]:
        """Delete what the ledger still has of removed documents, but nameless rows."""
        gone: Counter[str] = Counter()
        for some in _batches(document_ids):
            with self._database.writing() as connection:
                events = select(_E.event_id).where(_E.document_id.in_(some))
                deliveries = outbox_tables.deliveries
                sent = deliveries.c.event_id.in_(events)
                gone["deliveries"] += _delete(connection, deliveries, sent)
                # The event of the deletion stays: it has the id alone, and search caches read it.
                others = _E.document_id.in_(some) & (_E.kind != "document.deleted")
                gone["events"] += _delete(connection, outbox_tables.events, others)
                for table in _OF_DOCUMENT:
                    gone[table.name] += _delete(
                        connection, table, table.c.document_id.in_(some), *_but_newest(table)
                    )
                connection.execute(
                    update(schema.documents)
                    .where(_D.document_id.in_(some))
                    .values(name=PURGED, parent_id=None)
                )
                for table, nothing in _NOTHING:
                    which = table.c.document_id.in_(some)
                    connection.execute(update(table).where(which).values(nothing))
        return +gone

    def searches(self, trace_ids: Iterable[str]) -> Counter[str]:
        """Delete the records and outcomes of searches, and questions that no record has then."""
        gone: Counter[str] = Counter()
        for some in _batches(trace_ids):
            with self._database.writing() as connection:
                profiles = list(
                    connection.scalars(select(_RE.profile_id).where(_RE.trace_id.in_(some)))
                )
                ids = list(connection.scalars(select(_O.outcome_id).where(_O.trace_id.in_(some))))
                gone += _delete_outcomes(connection, ids)
                for table in (memory_tables.retrieval_events, memory_tables.traces):
                    gone[table.name] += _delete(connection, table, table.c.trace_id.in_(some))
                questions = memory_tables.query_profiles
                which = questions.c.profile_id.in_(profiles) & questions.c.profile_id.not_in(
                    select(_RE.profile_id)
                )
                gone[questions.name] += _delete(connection, questions, which)
        return +gone

    def scope(self, collection: str, tenant: str) -> Counter[str]:
        """Delete every row of a removed tenant but its receipt."""
        gone: Counter[str] = Counter()
        with self._database.writing() as connection:
            ids = select(_D.document_id).where(_D.collection == collection, _D.tenant == tenant)
            rows = select(_E.event_id).where(_E.collection == collection, _E.tenant == tenant)
            deliveries = outbox_tables.deliveries
            which = deliveries.c.event_id.in_(rows)
            gone[deliveries.name] += _delete(connection, deliveries, which)
            for table in _OF_DOCUMENT:
                gone[table.name] += _delete(connection, table, table.c.document_id.in_(ids))
            for table in reversed(_OF_SCOPE):
                which = (table.c.collection == collection) & (table.c.tenant == tenant)
                gone[table.name] += _delete(connection, table, which)
        return +gone

    def compact(self) -> None:
        """Rewrite SQLite's file without the deleted rows; in PostgreSQL, free their pages."""
        with self._database.reading() as connection:
            if self._database.is_sqlite:
                connection.execute(text("VACUUM"))
                connection.execute(text("PRAGMA wal_checkpoint(TRUNCATE)"))
                return
            for table in schema.metadata.sorted_tables:
                connection.execute(text(f"VACUUM {table.name}"))


def _but_newest(table: Table) -> list[ColumnElement[bool]]:
    """The condition that rows of versions are not of the newest: each document has a version."""
    if table not in (schema.versions, schema.steps):
        return []
    other = schema.versions.alias().c
    newer = (other.document_id == table.c.document_id) & (other.version > table.c.version)
    return [exists().where(newer)]


def users_of(thread_id: str) -> list[str]:
    """The users that a conversation's name may begin with: all of it, or up to a `:` or `/`."""
    return [thread_id, *(thread_id[: at.start()] for at in re.finditer("[:/]", thread_id))]


def mentions(values: Iterable[Any], ids: set[str]) -> bool:
    """Whether a row has one of these ids as a string, compressed or not.

    True for a row with a damaged compressed value: nobody can read which ids it has.
    """
    try:
        plain = [unpack(value) if isinstance(value, bytes) else value for value in values]
    except LedgerError:
        return True
    return any(match in ids for match in _TEXTS.findall(json.dumps(plain, ensure_ascii=False)))


def _delete_outcomes(connection: Connection, ids: Sequence[str]) -> Counter[str]:
    gone: Counter[str] = Counter()
    for table in (memory_tables.outcome_chunks, memory_tables.outcomes):
        gone[table.name] += _delete(connection, table, table.c.outcome_id.in_(ids))
    return gone


def _delete(connection: Connection, table: Any, *which: Any) -> int:
    return connection.execute(delete(table).where(*which)).rowcount


def _batches(ids: Iterable[str]) -> Iterator[list[str]]:
    iterator = iter(ids)
    while some := list(islice(iterator, IDS_PER_STATEMENT)):
        yield some
