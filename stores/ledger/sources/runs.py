"""Runs of a source: the lease, and the outcome of each file.

A run has a lease, under which one process at a time works on a source and records files. If that
process is killed, the next process continues the run and skips the files that the run has seen. So
the row of a file has the number of the last run that saw the file, not a time of some clock.
"""

import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, delete, func, insert, or_, select, update

from callslip.errors import CallslipError, LeaseLost
from callslip.stores.ledger.base import schema
from callslip.stores.ledger.base.database import Database
from callslip.stores.ledger.base.lease_keeper import LeaseKeeper
from callslip.stores.ledger.base.records import Failure
from callslip.stores.ledger.sources.sources import Outcome, SourceRecord, source_record

_R, _I = schema.sources.c, schema.source_items.c


@dataclass(frozen=True)
class Run:
    """A lease on a source. `delete_missing` and `force` apply to this run only."""

    source: SourceRecord
    token: str
    lease_seconds: float
    delete_missing: bool
    force: bool

    @property
    def number(self) -> int:
        """The number of this run of the source, from 1."""
        return self.source.run


@dataclass(frozen=True)
class ItemRecord:
    """One file of a source as it was when a run last saw it."""

    path: str
    outcome: Outcome
    document_id: str | None = None
    etag: str = ""
    modified: str = ""
    size: int | None = None
    sha256: str = ""
    seen_run: int = 0
    fetched_at: float | None = None
    failure: Failure | None = None


class SourceRuns:
    """Runs on sources, in slices and by one process at a time."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def claim(self, source_id: str, *, lease_seconds: float) -> Run | None:
        """Begin a run, or continue an unfinished one. If the caller dies, the run is due again
        when its lease ends.

        Returns None if no run is due or another process has the lease.
        """
        now, token = time.time(), uuid.uuid4().hex
        mine = select(schema.sources).where(_R.source_id == source_id)
        with self._database.writing() as connection:
            row = connection.execute(mine.with_for_update()).one_or_none()
            if row is None or row.due_at is None or row.due_at > now or row.lease_until > now:
                return None
            lease = {"lease_until": now + lease_seconds, "dispatched_at": 0.0}
            values: dict[str, Any] = {"token": token, **lease}
            if row.began_at is None:
                values |= {"began_at": now, "run": row.run + 1, "counts": None}
                never_in = _I.document_id.is_(None) & (_I.seen_run < row.run)
                connection.execute(
                    delete(schema.source_items)
                    .where(_I.source_id == source_id)
                    .where(or_(_I.outcome == "deleted", never_in))
                )
            connection.execute(
                update(schema.sources).where(_R.source_id == source_id).values(**values)
            )
            row = connection.execute(mine).one()
        request = row.asked or {}
        return Run(
            source=source_record(row),
            token=token,
            lease_seconds=lease_seconds,
            delete_missing=row.delete_missing or request.get("delete_missing", False),
            force=request.get("force", False),
        )

    def renew(self, run: Run) -> None:
        """Extend the lease.

        Raises LeaseLost if the source is gone or another process has the lease.
        """
        with self._database.writing() as connection:
            _set(connection, run, lease_until=time.time() + run.lease_seconds)

    def keeper(self, run: Run) -> LeaseKeeper:
        """A context manager that renews the lease while its block runs."""
        what = f"run of source {run.source.source_id}"
        return LeaseKeeper(lambda: self.renew(run), run.lease_seconds, what)

    def expire_all(self) -> int:
        """End every lease at once. Call this only if no worker can be running.

        Returns the number of leases.
        """
        with self._database.writing() as connection:
            return connection.execute(
                update(schema.sources)
                .where(_R.lease_until > 0)
                .values(lease_until=0.0, dispatched_at=0.0)
            ).rowcount

    def pause(self, run: Run) -> None:
        """End a slice of a run; another process may continue the run at once."""
        with self._database.writing() as connection:
            counts = _counts(connection, run)
            _set(connection, run, lease_until=0.0, dispatched_at=time.time(), counts=counts)

    def end(self, run: Run, error: CallslipError | None = None) -> dict[str, int]:
        """End a run and set when the next one is due. Returns the number of files by outcome.

        If another run was requested in the meantime, the source stays due.
        """
        now, every = time.time(), run.source.every_seconds
        with self._database.writing() as connection:
            counts = _counts(connection, run)
            row = _locked_row(connection, run)
            values: dict[str, Any] = {}
            if row.due_at <= row.began_at:
                values = {"due_at": None if every is None else now + every, "asked": {}}
            _set(
                connection,
                run,
                lease_until=0.0,
                dispatched_at=0.0,
                began_at=None,
                ended_at=now,
                counts=counts,
                error=None if error is None else Failure.of(error).as_json(),
                **values,
            )
        return counts

    def known(self, run: Run, paths: Sequence[str]) -> dict[str, ItemRecord]:
        """The records of these files, by path; omits files without one."""
        query = select(schema.source_items).where(_mine(run), _I.path.in_(paths))
        with self._database.reading() as connection:
            return {row.path: _item(row) for row in connection.execute(query)}

    def rival(self, run: Run, document_id: str, path: str) -> str | None:
        """The path of another file that this run has seen and that already has this document."""
        query = select(_I.path).where(
            _mine(run),
            _I.document_id == document_id,
            _I.path != path,
            _I.seen_run == run.number,
        )
        with self._database.reading() as connection:
            return connection.scalar(query.limit(1))

    def note(self, run: Run, item: ItemRecord) -> None:
        """Record the outcome of one file in this run.

        Deletes the rows of unseen files with the same document: if they exist, they are rivals.
        """
        values = {
            "document_id": item.document_id,
            "etag": item.etag,
            "modified": item.modified,
            "size": item.size,
            "sha256": item.sha256,
            "outcome": item.outcome,
            "seen_run": run.number,
            "seen_at": time.time(),
            "fetched_at": item.fetched_at,
            "error": None if item.failure is None else item.failure.as_json(),
        }
        with self._database.writing() as connection:
            _locked_row(connection, run)
            if item.document_id is not None:
                rivals = (_I.document_id == item.document_id) & (_I.path != item.path)
                connection.execute(
                    delete(schema.source_items).where(_mine(run), rivals, _I.seen_run < run.number)
                )
            changed = connection.execute(
                update(schema.source_items).where(_mine(run), _I.path == item.path).values(**values)
            )
            if changed.rowcount == 0:
                key = {"source_id": run.source.source_id, "path": item.path}
                connection.execute(insert(schema.source_items).values(**key, **values))

    def unchanged(self, run: Run, paths: Sequence[str]) -> None:
        """Record that these files are unchanged; a file that failed keeps this outcome."""
        if not paths:
            return
        mine = _mine(run) & _I.path.in_(paths)
        taken = _I.outcome.in_(("new", "changed"))
        with self._database.writing() as connection:
            _locked_row(connection, run)
            connection.execute(
                update(schema.source_items).where(mine, taken).values(outcome="unchanged")
            )
            connection.execute(
                update(schema.source_items)
                .where(mine)
                .values(seen_run=run.number, seen_at=time.time())
            )

    def forget_renamed(self, run: Run) -> None:
        """Delete the rows of unseen files whose documents are now those of files that were seen.

        Names that differ in their Unicode form, in control characters or in blanks at the end are
        stored alike, so that a renamed file can keep its document.
        """
        other = schema.source_items.alias()
        renamed = select(other.c.path).where(
            other.c.source_id == run.source.source_id,
            other.c.document_id == _I.document_id,
            other.c.seen_run == run.number,
        )
        with self._database.writing() as connection:
            _locked_row(connection, run)
            connection.execute(
                delete(schema.source_items).where(
                    _mine(run), _I.seen_run < run.number, renamed.exists()
                )
            )

    def unseen(self, run: Run, *, after: str = "", limit: int = 200) -> list[ItemRecord]:
        """Files that this run has not seen, in order of their paths."""
        query = (
            select(schema.source_items)
            .where(_mine(run), _I.seen_run < run.number, _I.path > after)
            .order_by(_I.path)
            .limit(limit)
        )
        with self._database.reading() as connection:
            return [_item(row) for row in connection.execute(query)]

    def counts(self, run: Run) -> dict[str, int]:
        """The number of this run's files by outcome; documents of `missing` files still exist."""
        with self._database.reading() as connection:
            return _counts(connection, run)


def _mine(run: Run) -> Any:
    return _I.source_id == run.source.source_id


def _locked_row(connection: Connection, run: Run) -> Row[Any]:
    """The source's row, locked until the transaction ends. Raises LeaseLost without the lease."""
    row = connection.execute(
        select(schema.sources)
        .where(_R.source_id == run.source.source_id, _R.token == run.token)
        .where(_R.lease_until > time.time())
        .with_for_update()
    ).one_or_none()
    if row is None:
        raise LeaseLost(f"the run of source {run.source.name!r} is no longer this process's")
    return row


def _set(connection: Connection, run: Run, **values: Any) -> None:
    _locked_row(connection, run)
    connection.execute(
        update(schema.sources).where(_R.source_id == run.source.source_id).values(**values)
    )


def _counts(connection: Connection, run: Run) -> dict[str, int]:
    seen = (
        select(_I.outcome, func.count())
        .where(_mine(run), _I.seen_run == run.number)
        .group_by(_I.outcome)
    )
    counts: dict[str, int] = {row.outcome: row[1] for row in connection.execute(seen)}
    gone = _mine(run) & (_I.seen_run < run.number) & _I.document_id.is_not(None)
    missing = connection.scalar(select(func.count()).where(gone))
    return counts | ({"missing": missing} if missing else {})


def _item(row: Row[Any]) -> ItemRecord:
    return ItemRecord(
        path=row.path,
        outcome=row.outcome,
        document_id=row.document_id,
        etag=row.etag,
        modified=row.modified,
        size=row.size,
        sha256=row.sha256,
        seen_run=row.seen_run,
        fetched_at=row.fetched_at,
        failure=Failure(**row.error) if row.error else None,
    )
