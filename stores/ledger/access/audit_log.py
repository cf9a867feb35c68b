"""The audit log: a chain of rows, each with a hash of itself and of the row before.

A changed, inserted or missing row breaks the chain. Whoever can write the database can also make a
new chain, so keep the hash that `verify` returns elsewhere, and give it to a later `verify`.
"""

import hashlib
import json
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, delete, insert, select, text

from callslip.stores.ledger.access.keys import mark_used
from callslip.stores.ledger.access.usage import Used, add_used
from callslip.stores.ledger.base.access_tables import audit_log
from callslip.stores.ledger.base.database import Database

_L = audit_log.c

TRIMMED = "trim"
"""The action of the row that says which rows were deleted because of their age."""

_PAGE = 1000


@dataclass(frozen=True)
class AuditEntry:
    """One use: who, what, with which status, and the ids that the request named; no text.

    `at` is in UTC seconds since 1970.
    """

    at: float
    caller: str
    kind: str
    action: str
    status: int
    ids: Mapping[str, str]


@dataclass(frozen=True)
class AuditRow:
    """An entry with its number and its hash."""

    number: int
    entry: AuditEntry
    hash: str


@dataclass(frozen=True)
class Verified:
    """The number of rows, the number and hash of the last one, and the first fault.

    `known` says whether the expected hash is that of one of the rows.
    """

    rows: int
    last: int
    hash: str
    fault: str | None
    known: bool


class AuditLog:
    """Appends to the log, reads it and verifies it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def append(
        self,
        entries: Sequence[AuditEntry],
        *,
        used: Mapping[tuple[str, int], Used] | None = None,
        last_used: Mapping[str, float] | None = None,
    ) -> None:
        """Append entries in one transaction; processes append one after the other.

        The same transaction adds the usage of keys (`used`, by name and day) and records when they
        were used last (`last_used`, by id).
        """
        with self._database.writing() as connection:
            self._append(connection, entries)
            add_used(self._database, connection, used or {})
            mark_used(connection, last_used or {})

    def rows(
        self,
        *,
        before: int | None = None,
        caller: str | None = None,
        action: str = "",
        without: Collection[str] = (),
        limit: int = 100,
    ) -> list[AuditRow]:
        """The newest rows, newest first; those with smaller numbers than `before`.

        Only those whose action contains the text `action`, and none with an action of `without`.
        """
        query = select(audit_log).order_by(_L.number.desc()).limit(limit)
        if before is not None:
            query = query.where(_L.number < before)
        if caller is not None:
            query = query.where(_L.caller == caller)
        if action:
            query = query.where(_L.action.contains(action, autoescape=True))
        if without:
            query = query.where(_L.action.not_in(without))
        with self._database.reading() as connection:
            return [_row(row) for row in connection.execute(query)]

    def verify(self, expected: str | None = None) -> Verified:
        """Compute every hash again, and look for a row with the expected hash."""
        rows, last, previous, fault, known = 0, 0, "", None, expected is None
        trimmed: Mapping[str, str] = {}
        first: AuditRow | None = None
        for row in self._all():
            if first is None:
                first, previous = row, ""
                last = row.number - 1
            if fault is None and row.number != last + 1:
                fault = f"row {last + 1} is missing"
            start = row.number == first.number and row.number > 1
            if fault is None and not start and row.hash != _hash(row.number, row.entry, previous):
                fault = f"row {row.number} is not as it was written"
            if row.entry.action == TRIMMED:
                trimmed = row.entry.ids
            known = known or row.hash == expected
            rows, last, previous = rows + 1, row.number, row.hash
        if first is not None and first.number > 1 and fault is None:
            stated = trimmed.get("through"), trimmed.get("hash")
            if stated != (str(first.number - 1), _linked(first, trimmed.get("hash", ""))):
                fault = f"the rows before {first.number} are missing"
        return Verified(rows, last, previous, fault, known)

    def trim(self, before: float) -> int:
        """Delete the rows from before this time but the last, and append a row that says so."""
        with self._database.writing() as connection:
            self._lock(connection)
            newest = _last(connection)
            query = select(_L.number, _L.hash).where(_L.at < before, _L.number < newest[0])
            through = connection.execute(query.order_by(_L.number.desc()).limit(1)).one_or_none()
            if through is None:
                return 0
            gone = connection.execute(delete(audit_log).where(_L.number <= through.number)).rowcount
            ids = {"through": str(through.number), "hash": through.hash}
            self._append(
                connection, [AuditEntry(time.time(), "callslip", "system", TRIMMED, 200, ids)]
            )
            return gone

    def _append(self, connection: Connection, entries: Sequence[AuditEntry]) -> None:
        self._lock(connection)
        number, previous = _last(connection)
        rows = []
        for entry in entries:
            number += 1
            previous = _hash(number, entry, previous)
            rows.append({**entry.__dict__, "ids": dict(entry.ids), "number": number})
            rows[-1]["hash"] = previous
        if rows:
            connection.execute(insert(audit_log), rows)

    def _lock(self, connection: Connection) -> None:
        if not self._database.is_sqlite:  # whose transactions that write run one by one anyway
            connection.execute(text("LOCK TABLE audit_log IN EXCLUSIVE MODE"))

    def _all(self) -> Iterator[AuditRow]:
        after = 0
        while True:
            query = select(audit_log).where(_L.number > after).order_by(_L.number).limit(_PAGE)
            with self._database.reading() as connection:
                page = [_row(row) for row in connection.execute(query)]
            yield from page
            if len(page) < _PAGE:
                return
            after = page[-1].number


def _last(connection: Connection) -> tuple[int, str]:
    query = select(_L.number, _L.hash).order_by(_L.number.desc()).limit(1)
    row = connection.execute(query).one_or_none()
    return (row.number, row.hash) if row else (0, "")


def _linked(first: AuditRow, previous: str) -> str | None:
    """The hash of the row before the first one, if the first row was written after it."""
    return previous if first.hash == _hash(first.number, first.entry, previous) else None


def _hash(number: int, entry: AuditEntry, previous: str) -> str:
    fields = [
        *(previous, number, entry.at, entry.caller, entry.kind, entry.action, entry.status),
        dict(sorted(entry.ids.items())),
    ]
    return hashlib.sha256(json.dumps(fields).encode()).hexdigest()


def _row(row: Any) -> AuditRow:
    entry = AuditEntry(row.at, row.caller, row.kind, row.action, row.status, row.ids)
    return AuditRow(row.number, entry, row.hash)
