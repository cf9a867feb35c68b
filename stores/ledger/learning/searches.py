"""Records searches in the ledger: questions, hits and, for a limited time, traces."""

import hashlib
import time
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, cast

import numpy as np
from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    Insert,
    Table,
    and_,
    delete,
    exists,
    func,
    select,
)
from sqlalchemy.dialects import postgresql, sqlite

from callslip.errors import TraceNotFound
from callslip.readers import Reader
from callslip.stores.ledger.base import memory_tables, schema
from callslip.stores.ledger.base.database import Database
from callslip.stores.ledger.base.packing import pack, unpack
from callslip.stores.ledger.base.readable import readable
from callslip.stores.records import Vector

_E, _Q = memory_tables.retrieval_events.c, memory_tables.query_profiles.c
_T, _C = memory_tables.traces.c, schema.collections.c
_D, _CH = schema.documents.c, schema.chunks.c

PACKED = ("hits", "scores", "basis")
"""The columns whose values the column `packed` has: three to four times as large uncompressed."""

PER_TRANSACTION = 500
"""Rows that one transaction deletes; other writers can run between two transactions."""


@dataclass(frozen=True)
class QueryProfile:
    """A question.

    `text` is None and `entities` are hashes, unless the collection has the option `keep_queries`.
    """

    profile_id: str
    text: str | None
    lang: str
    intent: str
    entities: tuple[str, ...]
    vector: Vector | None


@dataclass(frozen=True)
class RetrievalEvent:
    """An answered search.

    `stamp` is the corpus version. `settings` has the parameters of the ranking. `hits` are chunk
    ids in rank order, and `scores` the score components of the first hits. `basis` has the features
    of the hits and then of candidates that were not shown (`retrieval.ranking.features`).
    `documents` are those of the hits, if the search is of a reader: a chunk that is deleted no
    longer tells its document. `body` is the trace to store, or None.
    """

    trace_id: str
    collection: str
    tenant: str
    at: float
    profile: QueryProfile
    stamp: str
    settings: Mapping[str, Any]
    hits: Sequence[str]
    scores: Sequence[Mapping[str, float]]
    basis: Sequence[Sequence[float | None]] = ()
    documents: Sequence[str] = ()
    body: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class TraceRecord:
    """A stored trace."""

    trace_id: str
    collection: str
    tenant: str
    at: float
    body: Mapping[str, Any]


def profile_id(collection: str, tenant: str, query: str, vector: Vector | None) -> str:
    """The id of a question: a hash of its scope and its text.

    Only its letters and digits count, and the signs of `C++`, `C#` and `5 %`, whatever their case
    and their encoding in Unicode. For a question without text the vector replaces the text.
    """
    plain = unicodedata.normalize("NFKC", query).casefold()
    words = "".join(sign if _counts(sign) else " " for sign in plain)
    key = " ".join(words.split() or plain.split()).encode("utf-8", "replace") or (
        b"" if vector is None else vector.astype(np.float32).tobytes()
    )
    digest = hashlib.blake2b(digest_size=16)
    for part in (collection.encode(), tenant.encode(), key):
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
    return digest.hexdigest()


def _counts(sign: str) -> bool:
    return sign.isalnum() or sign in "+#%" or unicodedata.combining(sign) > 0


class Searches:
    """Records searches, reads them and deletes old ones."""

    def __init__(self, database: Database, reader: Reader | None = None) -> None:
        self._database, self._reader = database, reader

    def record(self, events: Sequence[RetrievalEvent], *, remember: bool = True) -> None:
        """Record searches in one transaction. Idempotent. Ignores those of deleted collections.

        Without `remember`, records only the traces of the searches that have one.
        """
        traces = [_trace_row(event) for event in events if event.body is not None]
        with self._database.writing() as connection:
            there = _there(connection, {event.collection for event in events})
            mine = [event for event in events if event.collection in there]
            traced = [row for row in traces if row["collection"] in there]
            if remember and mine:
                self._count_questions(connection, mine)
                self._add(connection, memory_tables.retrieval_events, map(_event_row, mine))
            if traced:
                self._add(connection, memory_tables.traces, traced)

    def get(self, trace_id: str) -> RetrievalEvent:
        """A recorded search, without its trace. Raises TraceNotFound."""
        with self._database.reading() as connection:
            return read_event(connection, trace_id, self._reader)

    def is_hidden(self, trace_id: str) -> bool:
        """Whether a search is recorded that this ledger's reader may not read, or no longer."""
        query = select(_E.settings, _E.hits, _E.packed).where(_E.trace_id == trace_id)
        with self._database.reading() as connection:
            row = connection.execute(query).one_or_none()
            if row is None:
                return False
            return not _is_of(connection, row.settings, unpacked(row), self._reader)

    def trace(self, trace_id: str, *, keep_seconds: float) -> TraceRecord:
        """A trace that is at most `keep_seconds` old. Raises TraceNotFound if there is none."""
        query = select(memory_tables.traces).where(
            _T.trace_id == trace_id, _T.at >= time.time() - keep_seconds, _open(_T.collection)
        )
        with self._database.reading() as connection:
            row = connection.execute(query).one_or_none()
            if row is not None:
                body = row.body if row.packed is None else unpack(row.packed)
                hits = {"documents": [hit["document_id"] for hit in body["hits"]]}
                if _is_of(connection, body, hits, self._reader):
                    return TraceRecord(row.trace_id, row.collection, row.tenant, row.at, body)
        raise no_trace(trace_id)

    def trim(self, before: float, most: int) -> int:
        """Delete searches from before this time, and all but the `most` newest ones.

        Also deletes questions that are as old and belong to no remaining search. Returns the number
        of deleted searches.
        """
        events, profiles = memory_tables.retrieval_events, memory_tables.query_profiles
        before = max(before, self._newest(events, most))
        trimmed = self._drop(events, _E.trace_id, _E.at < before)
        used = exists().where(_E.profile_id == _Q.profile_id)
        self._drop(profiles, _Q.profile_id, and_(_Q.last_at < before, ~used))
        return trimmed

    def trim_traces(self, before: float, most: int) -> int:
        """Delete traces from before this time, and all but the `most` newest; return the number."""
        traces = memory_tables.traces
        before = max(before, self._newest(traces, most))
        return self._drop(traces, _T.trace_id, _T.at < before)

    def _newest(self, table: Table, most: int) -> float:
        """The time of the row number `most`, newest first; 0 if there are fewer rows."""
        query = select(table.c.at).order_by(table.c.at.desc()).offset(most - 1).limit(1)
        with self._database.reading() as connection:
            return connection.scalar(query) or 0.0

    def _drop(self, table: Table, key: Column[str], old: ColumnElement[bool]) -> int:
        dropped = 0
        while True:
            with self._database.writing() as connection:
                ids = list(connection.scalars(select(key).where(old).limit(PER_TRANSACTION)))
                if ids:
                    connection.execute(delete(table).where(key.in_(ids)))
            dropped += len(ids)
            if len(ids) < PER_TRANSACTION:
                return dropped

    def _add(self, connection: Connection, table: Table, rows: Any) -> None:
        connection.execute(_put(table, self._database.is_sqlite), list(rows))

    def _count_questions(self, connection: Connection, events: Sequence[RetrievalEvent]) -> None:
        """Increment the count of each new event's question.

        The order of the ids keeps two transactions from a deadlock.
        """
        ids = [event.trace_id for event in events]
        known = set(connection.scalars(select(_E.trace_id).where(_E.trace_id.in_(ids))))
        new = {e.trace_id: e for e in events if e.trace_id not in known}.values()
        if new:
            rows = [_profile_row(e) for e in sorted(new, key=lambda e: e.profile.profile_id)]
            connection.execute(_count_question(self._database.is_sqlite), rows)


# Statements of the hot path are built once: building one costs more than running it.
@cache
def _put(table: Table, is_sqlite: bool) -> Insert:
    """The statement that inserts new rows and leaves those that are there alone."""
    return _insert(table, is_sqlite).on_conflict_do_nothing()


@cache
def _count_question(is_sqlite: bool) -> Insert:
    """The statement that inserts a question, or counts it once more."""
    put = _insert(memory_tables.query_profiles, is_sqlite)
    return put.on_conflict_do_update(
        index_elements=[_Q.profile_id],
        set_={
            "asked": _Q.asked + 1,
            "last_at": put.excluded.last_at,
            "text": put.excluded.text,
            "entities": put.excluded.entities,
            "vector": func.coalesce(_Q.vector, put.excluded.vector),
        },
    )


def _insert(table: Table, is_sqlite: bool) -> sqlite.Insert | postgresql.Insert:
    return sqlite.insert(table) if is_sqlite else postgresql.insert(table)


def no_trace(trace_id: str) -> TraceNotFound:
    """The error for a search that was not recorded."""
    return TraceNotFound(f"trace {trace_id!r} does not exist, or is forgotten by now")


def read_event(
    connection: Connection, trace_id: str, reader: Reader | None = None
) -> RetrievalEvent:
    """A recorded search of a collection that is not deleted. Raises TraceNotFound.

    With `reader`, only its own searches, whose documents it may still read.
    """
    query = (
        select(memory_tables.retrieval_events, _Q.text, _Q.lang, _Q.intent, _Q.entities, _Q.vector)
        .join(memory_tables.query_profiles, _Q.profile_id == _E.profile_id)
        .where(_E.trace_id == trace_id, _open(_E.collection))
    )
    row = connection.execute(query).one_or_none()
    if row is None:
        raise no_trace(trace_id)
    recorded = unpacked(row)
    if not _is_of(connection, row.settings, recorded, reader):
        raise no_trace(trace_id)
    return RetrievalEvent(
        trace_id=row.trace_id,
        collection=row.collection,
        tenant=row.tenant,
        at=row.at,
        profile=QueryProfile(
            row.profile_id,
            row.text,
            row.lang,
            row.intent,
            tuple(row.entities),
            None if row.vector is None else np.frombuffer(row.vector, np.float32),
        ),
        stamp=row.stamp,
        settings=row.settings,
        **recorded,
    )


def unpacked(row: Any) -> dict[str, Any]:
    """Return hits, scores, basis and documents of a row of `retrieval_events`, with its `packed`.

    Of a row that is not packed, return only those that the query selected.
    """
    if row.packed is not None:
        return cast(dict[str, Any], unpack(row.packed))
    return {name: value for name, value in row._mapping.items() if name in PACKED}


def _open(collection: ColumnElement[str]) -> ColumnElement[bool]:
    return exists().where(_C.name == collection, _C.deleted_at.is_(None))


def _there(connection: Connection, names: set[str]) -> set[str]:
    """The collections among `names` that exist, locked against deletion in this transaction."""
    query = (
        select(_C.name)
        .where(_C.name.in_(sorted(names)), _C.deleted_at.is_(None))
        .order_by(_C.name)
        .with_for_update(read=True)
    )
    return set(connection.scalars(query))


def _profile_row(event: RetrievalEvent) -> dict[str, Any]:
    profile = event.profile
    return {
        "profile_id": profile.profile_id,
        "collection": event.collection,
        "tenant": event.tenant,
        "text": profile.text,
        "lang": profile.lang,
        "intent": profile.intent,
        "entities": list(profile.entities),
        "vector": None if profile.vector is None else profile.vector.astype(np.float32).tobytes(),
        "asked": 1,
        "first_at": event.at,
        "last_at": event.at,
    }


def _event_row(event: RetrievalEvent) -> dict[str, Any]:
    return {
        "trace_id": event.trace_id,
        "collection": event.collection,
        "tenant": event.tenant,
        "profile_id": event.profile.profile_id,
        "at": event.at,
        "stamp": event.stamp,
        "settings": dict(event.settings),
        **{name: [] for name in PACKED},
        "packed": pack(
            {
                "hits": list(event.hits),
                "scores": [dict(score) for score in event.scores],
                "basis": [list(each) for each in event.basis],
                **({"documents": list(event.documents)} if event.documents else {}),
            }
        ),
    }


def _trace_row(event: RetrievalEvent) -> dict[str, Any]:
    return {
        "trace_id": event.trace_id,
        "collection": event.collection,
        "tenant": event.tenant,
        "at": event.at,
        "body": {},
        "packed": pack(dict(event.body or {})),
    }


def _is_of(
    connection: Connection,
    settings: Mapping[str, Any],
    recorded: Mapping[str, Sequence[str]],
    reader: Reader | None,
) -> bool:
    """Whether a search is the reader's own, and the reader may still read its hits' documents.

    A search that was recorded without its documents has the chunks that are still there.
    """
    if reader is None:
        return True
    if settings.get("owner") != reader.owner:
        return False
    of = list(recorded.get("documents", ()))
    if not of:
        chunks = list(recorded.get("hits", ()))
        of = list(connection.scalars(select(_CH.document_id).where(_CH.chunk_id.in_(chunks))))
    hidden = select(_D.document_id).where(_D.document_id.in_(of), ~readable(reader)).limit(1)
    return connection.scalar(hidden) is None
