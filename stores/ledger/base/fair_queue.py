"""The fair queue: versions wait in the ledger, and the broker's queues have few at a time.

The broker's queues are first in, first out. So that 10,000 documents of one tenant do not delay a
single document of another tenant, each tenant of a collection has a *tenant queue* in the ledger,
and the tenant queues are served round-robin. A queued version is in one of these states:

    waiting   in its tenant queue, the highest priority first, then the oldest
    sent      in a message to the broker, or claimed by a worker
    resting   until its retry is due; then the sweep sets it to waiting

Small documents of one tenant queue and priority travel together in one message, since each step,
transaction and batch of a store costs as much for one of them as for many. A message is sent only
when there is room for one, so that documents travel alone while workers are idle, and together
under load. When few documents wait in all queues, messages are smaller, so that at the end no
process works long on a last message while the others are idle. The versions of a message have the
same time of dispatch, by which messages are counted.
A version that was tried before travels alone: it may be the reason why its worker died.
"""

import math
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, bindparam, case, func, select, update

from callslip.stores.ledger.base import schema
from callslip.stores.ledger.base.database import Database
from callslip.stores.ledger.base.locks import lock_document, steps_of
from callslip.stores.ledger.base.records import Dispatch

_V = schema.versions.c
_ABOUT = schema.about.c

WAITING, SENT, RESTING = "waiting", "sent", "resting"

QUEUES_PER_SWEEP = 1000
"""The number of tenant queues that one sweep serves; the next sweep continues after them."""

MOST_MISSED = 10
"""After so many tenant queues in a row whose first version is locked by another process, the round
ends and leaves the rest to the sweep.
"""

SMALL_BYTES = 16_384
"""The most bytes of an original that travels with others."""

MESSAGE_BYTES, MESSAGE_DOCUMENTS = 65_536, 16
"""The most bytes, and the most documents, of a message with several documents."""

MEASURED = 64
"""The number of documents from which the pace is measured."""

LEAST_BYTES = 4096
"""A smaller document counts as one of so many bytes, as it takes the steps no less time.

Otherwise the bytes per second of tiny documents would let larger ones after them look like hours.
"""

# Statements of the hot path are built once: building one costs more than running it.
_ANY_WAITS = select(_V.tenant_queue).where(_V.turn == WAITING).limit(1)
_QUEUE = (
    select(_V.tenant_queue).where(_V.document_id == bindparam("of")).order_by(_V.version.desc())
)
_SENT = (
    select(
        _V.tenant_queue.label("tenant_queue"),
        func.count(_V.dispatched_at.distinct()).label("count"),
    )
    .where(_V.turn == SENT)
    .group_by(_V.tenant_queue)
)
_WAITING = (
    select(
        _V.tenant_queue.label("tenant_queue"),
        func.count().label("documents"),
        func.sum(case((_V.size < LEAST_BYTES, LEAST_BYTES), else_=_V.size)).label("size"),
    )
    .where(_V.state == "queued")
    .group_by(_V.tenant_queue)
)
_LATEST = (
    select(_V.dispatched_at.label("sent_at"), _V.finished_at, _V.size)
    .where(_V.state == "live")
    .order_by(_V.dispatched_at.desc())
    .limit(MEASURED)
)
_NEXT_QUEUE = select(func.min(_V.tenant_queue)).where(
    _V.turn == WAITING, _V.tenant_queue > bindparam("last")
)
_FIRST = (
    select(_V.document_id, _V.version, _V.size, _V.priority)
    .where(_V.turn == WAITING, _V.tenant_queue == bindparam("of"))
    .order_by(_V.priority.desc(), _V.created_at)
    .limit(MESSAGE_DOCUMENTS)
)
_WAITING_IN_ALL = select(func.count()).select_from(
    select(_V.document_id).where(_V.turn == WAITING).limit(bindparam("most")).subquery()
)
_TURN = select(_V.turn).where(
    _V.document_id == bindparam("of_document"), _V.version == bindparam("of_version")
)
_SET_TURN = update(schema.versions).where(
    _V.document_id == bindparam("of_document"), _V.version == bindparam("of_version")
)


def tenant_queue_of(collection: str, tenant: str) -> str:
    """The name of a tenant's queue in a collection. Names of collections have no slash."""
    return f"{collection}/{tenant}"


@dataclass(frozen=True)
class Work:
    """Queued documents and their bytes, of each at least LEAST_BYTES."""

    documents: int
    size: int


@dataclass(frozen=True)
class Pace:
    """Documents, and their bytes as in `Work`, that become live per second of work."""

    documents: float
    size: float

    def seconds(self, documents: int, size: int) -> float:
        """The time of this work: by its documents or by its bytes, whichever is longer."""
        return max(documents / self.documents, size / self.size if self.size else 0.0)


class FairQueue:
    """Chooses the versions to dispatch next, and counts the queued ones."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def take(self, window: float, *, document_id: str | None = None) -> list[Dispatch]:
        """Choose the versions to dispatch next, and mark them as sent.

        Serves the tenant queues round-robin until `window` messages are sent. `document_id` names a
        document that was just added or finished: if its tenant queue has no version sent, one
        message of it is sent even beyond the window, so that no tenant waits for the long documents
        of another one. The versions of a message follow each other and have the same `message`.
        """
        with self._database.reading() as connection:  # usually no version waits
            if connection.scalar(_ANY_WAITS) is None:
                return []
            tenant_queue = connection.scalar(_QUEUE, {"of": document_id}) if document_id else None
            sent = _sent(connection)
            if sent.total() >= window and (tenant_queue is None or sent[tenant_queue]):
                return []
        with self._database.writing() as connection:
            taking = _Round(connection, window)
            if tenant_queue is not None and not taking.sent[tenant_queue]:
                taking.of(tenant_queue)
            taking.fill()
            return taking.done()

    def take_all(self, window: float) -> list[Dispatch]:
        """As `take`, but first sends one message of each tenant queue that has none sent.

        These messages may exceed the window.
        """
        with self._database.reading() as connection:
            if connection.scalar(_ANY_WAITS) is None:
                return []
        with self._database.writing() as connection:
            taking = _Round(connection, window)
            taking.one_of_each()
            taking.fill()
            return taking.done()

    def waiting(self) -> dict[str, Work]:
        """The queued versions of each tenant queue that has any."""
        with self._database.reading() as connection:
            rows = connection.execute(_WAITING)
            return {row.tenant_queue: Work(row.documents, row.size) for row in rows}

    def pace(self) -> Pace | None:
        """The pace at which the last MEASURED documents became live; None if none has.

        The time without a document in the queues does not count. Imported documents do not count
        either: they became live elsewhere, before the time of their dispatch.
        """
        with self._database.reading() as connection:
            latest = connection.execute(_LATEST).all()
        latest = sorted(
            (row for row in latest if row.finished_at and row.finished_at >= row.sent_at),
            key=lambda row: row.finished_at,
        )
        if not latest:
            return None
        seconds = latest[0].finished_at - latest[0].sent_at
        for before, row in pairwise(latest):
            seconds += max(0.0, row.finished_at - max(before.finished_at, row.sent_at))
        seconds = max(seconds, 0.001)
        size = sum(max(row.size, LEAST_BYTES) for row in latest)
        return Pace(len(latest) / seconds, size / seconds)

    def oldest(self) -> float | None:
        """When the oldest queued version was submitted, UTC seconds since 1970; None if none is."""
        query = select(func.min(_V.created_at)).where(_V.state == "queued")
        with self._database.reading() as connection:
            oldest: float | None = connection.scalar(query)
        return oldest


def queue(connection: Connection, document: Row[Any], version: int, now: float) -> None:
    """Put a version into its tenant queue; `document` is the locked row of its document."""
    tenant_queue = tenant_queue_of(document.collection, document.tenant)
    values = {"state": "queued", "error": None, "finished_at": None}
    again = {"dispatched_at": now, "dispatches": 0, "tenant_queue": tenant_queue}
    set_turn(connection, document.document_id, version, WAITING, **values, **again)


def withdraw(connection: Connection, documents: ColumnElement[bool], now: float) -> None:
    """Supersede the queued versions of documents that match the condition `documents`."""
    which = select(schema.documents.c.document_id).where(documents).scalar_subquery()
    connection.execute(
        update(schema.versions)
        .where(_V.document_id.in_(which), _V.state == "queued")
        .values(state="superseded", turn=None, finished_at=now)
    )


def set_turn(
    connection: Connection, document_id: str, version: int, turn: str | None, **values: Any
) -> None:
    """Set the dispatch state of a queued version. The transaction has locked the document."""
    where = {"of_document": document_id, "of_version": version}
    connection.execute(_SET_TURN, where | {"turn": turn} | values)


class _Round:
    """One round over the tenant queues, in a transaction that excludes other rounds.

    `window` is the number of messages to have sent at a time.
    """

    def __init__(self, connection: Connection, window: float) -> None:
        self._connection = connection
        self._window = window
        self._last = connection.scalar(select(_ABOUT.last_tenant_queue).with_for_update()) or ""
        self._began = self._last
        self._dispatches: list[Dispatch] = []
        self.sent = _sent(connection)

    def of(self, tenant_queue: str) -> bool:
        """Send the first versions of a tenant queue, in one message.

        Returns False if another process is changing the first one.
        """
        sent_at, size = time.time(), 0
        sent: list[Dispatch] = []
        rows = self._connection.execute(_FIRST, {"of": tenant_queue}).all()
        for row in rows[: self._share() if len(rows) > 1 else 1]:
            if row.priority != rows[0].priority:
                break  # what is urgent does not wait for others
            steps = _waiting(self._connection, row.document_id, row.version)
            if steps is None:
                break
            size += row.size
            untried = steps[0].state != "done" and not any(step.attempts for step in steps)
            travels = untried and row.size <= SMALL_BYTES
            if sent and (not travels or size > MESSAGE_BYTES):
                break
            sent.append(_send(self._connection, row.document_id, row.version, steps, sent_at))
            if not travels:
                break
        self._dispatches += sent
        self.sent[tenant_queue] += bool(sent)
        return bool(sent)

    def _share(self) -> int:
        """The most documents of a message: the waiting documents, divided by the window.

        The rule is known as factoring (Hummel, Schonberg and Flynn, CACM 35(8), 1992) where a
        window has two messages for each process.
        """
        if math.isinf(self._window):
            return MESSAGE_DOCUMENTS
        window = max(1.0, self._window)
        most = math.ceil(MESSAGE_DOCUMENTS * window)
        waiting = self._connection.scalar(_WAITING_IN_ALL, {"most": most}) or 1
        return math.ceil(waiting / window)

    def fill(self) -> None:
        """Send versions round-robin until the window is full or no version waits."""
        missed = 0
        while self.sent.total() < self._window and missed < MOST_MISSED and self._next():
            missed = 0 if self.of(self._last) else missed + 1

    def one_of_each(self) -> None:
        """Send one version of each tenant queue that has none sent."""
        first = None
        for _ in range(QUEUES_PER_SWEEP):
            if not self._next() or self._last == first:
                return
            first = first or self._last
            if not self.sent[self._last]:
                self.of(self._last)

    def done(self) -> list[Dispatch]:
        """Record the tenant queue that was served last, and return the versions to dispatch."""
        if self._last != self._began:
            self._connection.execute(update(schema.about).values(last_tenant_queue=self._last))
        return self._dispatches

    def _next(self) -> bool:
        """Move to the next tenant queue with a waiting version; the first one follows the last."""
        find = self._connection.scalar
        tenant_queue = find(_NEXT_QUEUE, {"last": self._last}) or find(_NEXT_QUEUE, {"last": ""})
        if tenant_queue is None:
            return False
        self._last = tenant_queue
        return True


def _sent(connection: Connection) -> Counter[str]:
    return Counter({row.tenant_queue: row.count for row in connection.execute(_SENT)})


def _waiting(connection: Connection, document_id: str, version: int) -> list[Row[Any]] | None:
    """The steps of a version, locked; None if it no longer waits or another process locks it."""
    this = {"of_document": document_id, "of_version": version}
    if lock_document(connection, document_id, skip_locked=True) is None:
        return None
    if connection.scalar(_TURN, this) != WAITING:
        return None
    return steps_of(connection, document_id, version)


def _send(
    connection: Connection, document_id: str, version: int, steps: Sequence[Row[Any]], now: float
) -> Dispatch:
    """Mark a version as sent in the message of the time `now`."""
    first = next(row.step for row in steps if row.state != "done")
    set_turn(connection, document_id, version, SENT, dispatched_at=now, dispatches=0)
    return Dispatch(document_id, version, first, message=now)
