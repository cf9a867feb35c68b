"""The versions of a document: lists them, and restores an older one."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, bindparam, insert, or_, select, tuple_, update

from callslip.errors import Conflict, DocumentNotFound
from callslip.readers import Reader
from callslip.stores.ledger.base import schema
from callslip.stores.ledger.base.corrections import carried
from callslip.stores.ledger.base.database import Database
from callslip.stores.ledger.base.fair_queue import queue
from callslip.stores.ledger.base.locks import lock_document
from callslip.stores.ledger.base.readable import limited, of_readable, readable, readable_counts
from callslip.stores.ledger.base.records import STEPS, Accepted, Step, VersionRecord
from callslip.stores.ledger.base.rows import version_record
from callslip.stores.ledger.documents.content import no_version
from callslip.stores.ledger.outbox import events
from callslip.vocabulary import VersionOrigin

_D, _V, _S = schema.documents.c, schema.versions.c, schema.steps.c

_KNOWN = (
    *("sha256", "size", "filename", "title", "properties"),
    *("url", "language", "by_hand", "chunking"),
)
"""The columns of a version's content, and of what was stated of it."""

_PROVENANCE = (
    select(_V.document_id, _V.url, _D.name, _D.parent_id)
    .join(schema.documents, _D.document_id == _V.document_id)
    .where(tuple_(_V.document_id, _V.version).in_(bindparam("made", expanding=True)))
    .where(or_(_V.url != "", _D.parent_id.is_not(None)))
)

_ADD_STEPS = insert(schema.steps)


@dataclass(frozen=True)
class Provenance:
    """Where a version comes from; each part is empty if there is none.

    `url` is the web address of its source. `within` is the name of the document that contains this
    one, a mail or an archive, and the folders in that archive, joined by `/`.
    """

    url: str = ""
    within: str = ""


@dataclass(frozen=True)
class PastVersion:
    """A version with what its steps counted and left out; `live` if searches see it.

    `corrections_added` is the number that it added, if its origin is a correction.
    """

    record: VersionRecord
    origin: VersionOrigin
    corrections_added: int
    live: bool
    counts: dict[Step, dict[str, int]]
    warnings: tuple[str, ...] = ()


class Versions:
    """Lists the versions of documents and restores older ones."""

    def __init__(self, database: Database, reader: Reader | None = None) -> None:
        self._database, self._reader = database, reader

    def of(self, document_id: str) -> list[PastVersion]:
        """Every version of a document, newest first. Raises DocumentNotFound if there is none."""
        with self._database.reading() as connection:
            document = connection.execute(
                select(schema.documents).where(
                    _D.document_id == document_id, readable(self._reader)
                )
            ).one_or_none()
            if document is None:
                raise DocumentNotFound(f"document {document_id!r} does not exist")
            rows = connection.execute(
                select(schema.versions)
                .where(_V.document_id == document_id)
                .order_by(_V.version.desc())
            ).all()
            steps = connection.execute(
                select(_S.version, _S.step, _S.counts, _S.warnings).where(
                    _S.document_id == document_id
                )
            ).all()
        counts: dict[int, dict[Step, dict[str, int]]] = {}
        warnings: dict[int, list[str]] = {}
        for row in sorted(steps, key=lambda row: STEPS.index(row.step)):
            counts.setdefault(row.version, {})[row.step] = (
                readable_counts(row.counts, self._reader) or {}
            )
            warnings.setdefault(row.version, []).extend(row.warnings or ())
        shown = document.live_version if document.deleted_at is None else None
        records = {row.version: version_record(row, document) for row in rows}
        history = []
        for version, record in records.items():
            origin, added = _origin(record, records.get(version - 1))
            history.append(
                PastVersion(
                    record,
                    origin,
                    added,
                    live=version == shown,
                    counts=counts.get(version, {}),
                    warnings=tuple(warnings.get(version, ())),
                )
            )
        return history

    def cut(self, document_id: str, based_on: int, chunking: Mapping[str, int]) -> Accepted:
        """Queue a new version with the content of the live one, whose chunks have these lengths.

        Later versions have these lengths too. Raises DocumentNotFound, and Conflict if `based_on`
        is not the newest version or not live.
        """
        now = time.time()
        with self._database.writing() as connection:
            document = lock_document(connection, document_id)
            if document is None:
                raise DocumentNotFound(f"document {document_id!r} does not exist")
            newest = newest_of(connection, document_id)
            check_newest(based_on, newest.version, document.live_version)
            new = newest.version + 1
            more = {"previous_version": based_on, "chunking": dict(chunking)}
            add_version(connection, document, newest, new, now, **more)
        return Accepted(document_id, new, fresh=True)

    def live(self, document_ids: Sequence[str]) -> dict[str, int]:
        """The live version of each of these documents, by document id; omits those without one."""
        query = (
            select(_D.document_id, _D.live_version)
            .where(
                _D.document_id.in_(document_ids),
                _D.live_version.is_not(None),
                _D.deleted_at.is_(None),
            )
            .where(readable(self._reader))
        )
        with self._database.reading() as connection:
            return {row.document_id: row.live_version for row in connection.execute(query)}

    def readable(self, document_ids: Sequence[str]) -> set[str]:
        """The documents among these that are live and have a text; provided chunks have none."""
        made = (_V.document_id == _D.document_id) & (_V.version == _D.live_version)
        query = (
            select(_D.document_id)
            .join(schema.versions, made)
            .where(_D.document_id.in_(document_ids), _D.deleted_at.is_(None), _V.size > 0)
            .where(readable(self._reader))
        )
        with self._database.reading() as connection:
            return set(connection.scalars(query))

    def provenance(self, versions: Mapping[str, int]) -> dict[str, Provenance]:
        """Return the provenance of these versions by document id; omit versions without any."""
        query = limited(_PROVENANCE, _V.document_id, self._reader)
        with self._database.reading() as connection:
            rows = connection.execute(query, {"made": list(versions.items())})
            return {
                row.document_id: Provenance(
                    row.url, "" if row.parent_id is None else row.name.rpartition("/")[0]
                )
                for row in rows
            }

    def restore(self, document_id: str, version: int) -> Accepted:
        """Queue a new version with the content of an older one, and what was stated of it.

        The new version supersedes a queued one. Searches see the live version until the new one is
        live. If `version` is the newest one and live, nothing changes and the result is not
        `fresh`.
        Raises DocumentNotFound if the version does not exist, Conflict if it failed.
        """
        now = time.time()
        with self._database.writing() as connection:
            document = lock_document(connection, document_id)
            old = connection.execute(
                select(schema.versions)
                .where(_V.document_id == document_id, _V.version == version)
                .where(of_readable(_V.document_id, self._reader))
            ).one_or_none()
            if document is None or old is None:
                raise no_version(document_id, version)
            newest = newest_of(connection, document_id)
            if (newest.version, newest.state) == (version, "live"):
                return Accepted(document_id, version, fresh=False)
            if old.state == "failed":
                raise Conflict(
                    f"version {version} of document {document_id} failed",
                    hint="Name one that was live; GET /v1/documents/ID/versions lists them.",
                )
            new = newest.version + 1
            # previous_version: so that every step finds its artifact
            add_version(
                connection, document, old, new, now, previous_version=version, restores=version
            )
        return Accepted(document_id, new, fresh=True)


def _origin(record: VersionRecord, before: VersionRecord | None) -> tuple[VersionOrigin, int]:
    """How a version was made, and the number of corrections that it added to those of `before`.

    A version has the lengths and the corrections of the version before it, the newest one at its
    time, unless it is what changed them.
    """
    if record.restores is not None:
        return "restored", 0
    if record.edited is not None:
        return "edited", 0
    if before is None:
        return "submitted", 0
    if record.chunking != before.chunking:
        return "cut", 0
    added = len(record.corrections) - len(before.corrections)
    return ("corrected", added) if added else ("submitted", 0)


def newest_of(connection: Connection, document_id: str) -> Row[Any]:
    """A document's newest version."""
    return connection.execute(
        select(schema.versions)
        .where(_V.document_id == document_id)
        .order_by(_V.version.desc())
        .limit(1)
    ).one()


def check_newest(based_on: int, newest: int, live: int | None) -> None:
    """Raise Conflict if the version that a change is based on is not the newest one and live."""
    if based_on != newest:
        raise Conflict(
            f"version {based_on} is not the newest one, which is version {newest}",
            hint="Another change came first: read the document again, and repeat yours.",
        )
    if newest != live:
        raise Conflict(
            f"version {newest} is not live",
            hint="Wait until it is live. If it failed, retry it or restore an older version.",
        )


def check_file(size: int) -> None:
    """Raise Conflict if a version has no file of which another version could be made."""
    if not size:
        raise Conflict(
            "the document has no file: its chunks were written through an adapter",
            hint="Write its chunks again as they are to be.",
        )


def add_version(
    connection: Connection, document: Row[Any], base: Row[Any], new: int, now: float, **values: Any
) -> None:
    """Queue the version `new` with the content and corrections of `base`, apart from `values`.

    It supersedes a queued one, and waits as a submission without a priority does. The caller locked
    the document.
    """
    supersede(connection, document.document_id, new, now)
    row = {
        **{name: getattr(base, name) for name in _KNOWN},
        "corrections": carried(base.corrections),
        "document_id": document.document_id,
        "version": new,
        "state": "queued",
        "created_at": now,
        "dispatched_at": now,
    }
    connection.execute(insert(schema.versions).values(**row | values))
    queue(connection, document, new, now)
    add_steps(connection, document.document_id, new)
    events.add(connection, "document.queued", document.document_id, new, now)


def add_steps(connection: Connection, document_id: str, version: int) -> None:
    """Insert the steps of a new version, all of them pending."""
    fresh = {"document_id": document_id, "version": version, "state": "pending"}
    connection.execute(_ADD_STEPS, [fresh | {"step": step} for step in STEPS])


def supersede(connection: Connection, document_id: str, by: int, now: float) -> None:
    """Supersede the queued version, which may be the live one while it is being repaired."""
    events.add_superseded(connection, document_id, "queued", now)
    connection.execute(
        update(schema.versions)
        .where(_V.document_id == document_id, _V.state == "queued")
        .values(state="superseded", superseded_by=by, turn=None, finished_at=now)
    )


def requeue(connection: Connection, document: Row[Any], version: int, now: float) -> None:
    """Queue a failed version again from the step that failed. The caller locked the document."""
    supersede(connection, document.document_id, version, now)
    queue(connection, document, version, now)
    connection.execute(
        update(schema.steps)
        .where(_S.document_id == document.document_id, _S.version == version)
        .where(_S.state == "failed")
        .values(state="pending", crashes=0, retry_at=None, failing_since=None, error=None)
    )
    events.add(connection, "document.queued", document.document_id, version, now)
