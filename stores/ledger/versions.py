"""The versions of a document: their history, and bringing one of them back."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, insert, select, update

from callslip.errors import Conflict, DocumentNotFound
from stores.ledger import events, schema
from stores.ledger.database import Database
from stores.ledger.locks import lock_document
from stores.ledger.records import STEPS, Accepted, Step, VersionRecord
from stores.ledger.rows import version_record
from stores.ledger.turns import queue

_D, _V, _S = schema.documents.c, schema.versions.c, schema.steps.c

PRIORITIES = (-10, 10)
"""Least and greatest that a submission may ask for; 0 where it asks for none."""


@dataclass(frozen=True)
class PastVersion:
    """A version with what each of its steps counted; `live` where searches see it."""

    record: VersionRecord
    live: bool
    counts: dict[Step, dict[str, int]]


class Versions:
    """Looking back, and going back."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def of(self, document_id: str) -> list[PastVersion]:
        """Every version of a document, newest first; DocumentNotFound where there is none."""
        with self._database.reading() as connection:
            document = connection.execute(
                select(schema.documents).where(_D.document_id == document_id)
            ).one_or_none()
            if document is None:
                raise DocumentNotFound(f"document {document_id!r} does not exist")
            rows = connection.execute(
                select(schema.versions)
                .where(_V.document_id == document_id)
                .order_by(_V.version.desc())
            ).all()
            steps = connection.execute(
                select(_S.version, _S.step, _S.counts).where(_S.document_id == document_id)
            ).all()
        counts: dict[int, dict[Step, dict[str, int]]] = {}
        for row in sorted(steps, key=lambda row: STEPS.index(row.step)):
            counts.setdefault(row.version, {})[row.step] = row.counts or {}
        shown = document.live_version if document.deleted_at is None else None
        return [
            PastVersion(
                version_record(row, document),
                live=row.version == shown,
                counts=counts.get(row.version, {}),
            )
            for row in rows
        ]

    def live(self, document_ids: Sequence[str]) -> dict[str, int]:
        """The live versions of those of these documents that have one, by id."""
        query = select(_D.document_id, _D.live_version).where(
            _D.document_id.in_(document_ids), _D.live_version.is_not(None), _D.deleted_at.is_(None)
        )
        with self._database.reading() as connection:
            return {row.document_id: row.live_version for row in connection.execute(query)}

    def readable(self, document_ids: Sequence[str]) -> set[str]:
        """Those of these documents that are live and have a text: some were given as chunks."""
        made = (_V.document_id == _D.document_id) & (_V.version == _D.live_version)
        query = (
            select(_D.document_id)
            .join(schema.versions, made)
            .where(_D.document_id.in_(document_ids), _D.deleted_at.is_(None), _V.size > 0)
        )
        with self._database.reading() as connection:
            return set(connection.scalars(query))

    def restore(self, document_id: str, version: int) -> Accepted:
        """Queue a new version with the content, title and properties of an older one.

        What is on its way is superseded; searches see the live one until the new one is. Not
        `fresh` where the version is the newest and live already. DocumentNotFound; Conflict where
        the version failed.
        """
        now = time.time()
        with self._database.writing() as connection:
            document = lock_document(connection, document_id)
            old = connection.execute(
                select(schema.versions).where(_V.document_id == document_id, _V.version == version)
            ).one_or_none()
            if document is None or old is None:
                raise DocumentNotFound(f"document {document_id!r} has no version {version}")
            newest = newest_of(connection, document_id)
            if (newest.version, newest.state) == (version, "live"):
                return Accepted(document_id, version, fresh=False)
            if old.state == "failed":
                raise Conflict(
                    f"version {version} of document {document_id} failed",
                    hint="Name one that was live; GET /v1/documents/ID/versions lists them.",
                )
            new = newest.version + 1
            supersede(connection, document_id, new, now)
            content = ("sha256", "size", "filename", "title", "properties")
            connection.execute(
                insert(schema.versions).values(
                    **{name: getattr(old, name) for name in content},
                    document_id=document_id,
                    version=new,
                    state="queued",
                    created_at=now,
                    nudged_at=now,
                    priority=PRIORITIES[1],  # somebody saw a wrong version live
                    former=version,
                    restores=version,
                )
            )
            queue(connection, document, new, now)
            add_steps(connection, document_id, new)
            events.add(connection, "document.queued", document_id, new, now)
        return Accepted(document_id, new, fresh=True)


def newest_of(connection: Connection, document_id: str) -> Row[Any]:
    """A document's newest version."""
    return connection.execute(
        select(schema.versions)
        .where(_V.document_id == document_id)
        .order_by(_V.version.desc())
        .limit(1)
    ).one()


def add_steps(connection: Connection, document_id: str, version: int) -> None:
    """The steps of a new version, nothing done."""
    fresh = {"document_id": document_id, "version": version, "state": "pending"}
    connection.execute(insert(schema.steps), [fresh | {"step": step} for step in STEPS])


def supersede(connection: Connection, document_id: str, by: int, now: float) -> None:
    """Stop the version that is on its way, which may be the live one while it is repaired."""
    events.add_superseded(connection, document_id, "queued", now)
    connection.execute(
        update(schema.versions)
        .where(_V.document_id == document_id, _V.state == "queued")
        .values(state="superseded", superseded_by=by, turn=None, finished_at=now)
    )


def requeue(connection: Connection, document: Row[Any], version: int, now: float) -> None:
    """Let a failed version be tried again from the step that failed; its document is locked."""
    supersede(connection, document.document_id, version, now)
    queue(connection, document, version, now)
    connection.execute(
        update(schema.steps)
        .where(_S.document_id == document.document_id, _S.version == version)
        .where(_S.state == "failed")
        .values(state="pending", crashes=0, retry_at=None, failing_since=None, error=None)
    )
    events.add(connection, "document.queued", document.document_id, version, now)
