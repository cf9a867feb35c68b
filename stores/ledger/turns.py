"""Whose turn it is: a queued version waits in the ledger, and few are sent to the queues at a time.

The broker's queues are first in, first out. So that 10,000 documents of one tenant do not stand
before another's single one, versions wait in *lanes*, one for each tenant of a collection, and the
lanes take turns. A queued version is

    waiting   in its lane, the highest priority first, then the oldest
    sent      a message is on its way for it, or a worker has it
    resting   until a retry is due; the sweep lets it wait again then
"""

import time
from collections import Counter
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, bindparam, func, select, update

from stores.ledger import schema
from stores.ledger.database import Database
from stores.ledger.locks import lock_document, steps_of
from stores.ledger.records import Nudge

_V = schema.versions.c
_ABOUT = schema.about.c

WAITING, SENT, RESTING = "waiting", "sent", "resting"

LANES_PER_SWEEP = 1000
"""Lanes that one sweep looks at; the next one goes on where it ended."""

MOST_MISSED = 10
"""Lanes whose first version another process is changing, before the rest is left to the sweep."""

# Statements of the hot path are built once: building one costs more than running it.
_ANY_WAITS = select(_V.lane).where(_V.turn == WAITING).limit(1)
_LANE = select(_V.lane).where(_V.document_id == bindparam("of")).order_by(_V.version.desc())
_SENT = select(_V.lane, func.count().label("count")).where(_V.turn == SENT).group_by(_V.lane)
_NEXT_LANE = select(func.min(_V.lane)).where(_V.turn == WAITING, _V.lane > bindparam("last"))
_FIRST = (
    select(_V.document_id, _V.version)
    .where(_V.turn == WAITING, _V.lane == bindparam("of"))
    .order_by(_V.priority.desc(), _V.created_at)
    .limit(1)
)
_TURN = select(_V.turn).where(
    _V.document_id == bindparam("of_document"), _V.version == bindparam("of_version")
)
_SET_TURN = update(schema.versions).where(
    _V.document_id == bindparam("of_document"), _V.version == bindparam("of_version")
)


def lane_of(collection: str, tenant: str) -> str:
    """Where the documents of a tenant of a collection wait; no collection's name has a slash."""
    return f"{collection}/{tenant}"


class Turns:
    """Choosing what is sent next, and how much waits."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def take(self, window: float, *, document_id: str | None = None) -> list[Nudge]:
        """Versions whose turn it is; they count as sent now.

        As many as keep `window` versions sent, of one lane after the other. The lane of
        `document_id`, of which something has just come or gone, is given one beyond that where
        nothing of it is sent, so that no lane waits for another one's long documents.
        """
        with self._database.reading() as connection:  # mostly there is nothing to do
            if connection.scalar(_ANY_WAITS) is None:
                return []
            lane = connection.scalar(_LANE, {"of": document_id}) if document_id else None
            sent = _sent(connection)
            if sent.total() >= window and (lane is None or sent[lane]):
                return []
        with self._database.writing() as connection:
            turn = _Taking(connection)
            if lane is not None and not turn.sent[lane]:
                turn.of(lane)
            turn.fill(window)
            return turn.done()

    def take_all(self, window: float) -> list[Nudge]:
        """As `take`, for the lane of every document of which nothing is sent."""
        with self._database.reading() as connection:
            if connection.scalar(_ANY_WAITS) is None:
                return []
        with self._database.writing() as connection:
            turn = _Taking(connection)
            turn.one_of_each()
            turn.fill(window)
            return turn.done()

    def backlog(self, most: int, *, lane: str | None = None) -> int:
        """How many versions are queued, of a lane or of all; `most` where they are more."""
        query = select(_V.version).where(_V.turn.in_((WAITING, SENT, RESTING)))
        if lane is not None:
            query = query.where(_V.lane == lane)
        counted = select(func.count()).select_from(query.limit(most).subquery())
        with self._database.reading() as connection:
            return connection.scalar(counted) or 0


def queue(connection: Connection, document: Row[Any], version: int, now: float) -> None:
    """Let a version wait for its turn; `document` is its document's row, locked."""
    lane = lane_of(document.collection, document.tenant)
    values = {"state": "queued", "error": None, "finished_at": None}
    again = {"nudged_at": now, "nudges": 0, "lane": lane}
    set_turn(connection, document.document_id, version, WAITING, **values, **again)


def withdraw(connection: Connection, documents: ColumnElement[bool], now: float) -> None:
    """What is queued of deleted documents waits no longer; `documents` is a condition on them."""
    which = select(schema.documents.c.document_id).where(documents).scalar_subquery()
    connection.execute(
        update(schema.versions)
        .where(_V.document_id.in_(which), _V.state == "queued")
        .values(state="superseded", turn=None, finished_at=now)
    )


def set_turn(
    connection: Connection, document_id: str, version: int, turn: str | None, **values: Any
) -> None:
    """Within a transaction that holds the document's lock."""
    where = {"of_document": document_id, "of_version": version}
    connection.execute(_SET_TURN, where | {"turn": turn} | values)


class _Taking:
    """Turns being taken, in a transaction that no other one of the kind runs beside."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._last = connection.scalar(select(_ABOUT.last_lane).with_for_update()) or ""
        self._began = self._last
        self._found: list[Nudge] = []
        self.sent = _sent(connection)

    def of(self, lane: str) -> bool:
        """Send the first of a lane; false where somebody else is changing it."""
        first = self._connection.execute(_FIRST, {"of": lane}).one_or_none()
        nudge = first and _sendable(self._connection, first.document_id, first.version)
        if nudge is None:
            return False
        self._found.append(nudge)
        self.sent[lane] += 1
        return True

    def fill(self, window: float) -> None:
        """Send of one lane after the other until the window is full or nothing waits."""
        missed = 0
        while self.sent.total() < window and missed < MOST_MISSED and self._next():
            missed = 0 if self.of(self._last) else missed + 1

    def one_of_each(self) -> None:
        """Send one of each lane of which nothing is sent."""
        first = None
        for _ in range(LANES_PER_SWEEP):
            if not self._next() or self._last == first:
                return
            first = first or self._last
            if not self.sent[self._last]:
                self.of(self._last)

    def done(self) -> list[Nudge]:
        """Remember whose turn it was."""
        if self._last != self._began:
            self._connection.execute(update(schema.about).values(last_lane=self._last))
        return self._found

    def _next(self) -> bool:
        """Go on to the next lane in which something waits, past the end to the first."""
        find = self._connection.scalar
        lane = find(_NEXT_LANE, {"last": self._last}) or find(_NEXT_LANE, {"last": ""})
        if lane is None:
            return False
        self._last = lane
        return True


def _sent(connection: Connection) -> Counter[str]:
    return Counter({row.lane: row.count for row in connection.execute(_SENT)})


def _sendable(connection: Connection, document_id: str, version: int) -> Nudge | None:
    """Count a version as sent; None where it is no longer to be sent, or just being changed."""
    this = {"of_document": document_id, "of_version": version}
    if lock_document(connection, document_id, skip_locked=True) is None:
        return None
    if connection.scalar(_TURN, this) != WAITING:
        return None
    todo = [row for row in steps_of(connection, document_id, version) if row.state != "done"]
    set_turn(connection, document_id, version, SENT, nudged_at=time.time(), nudges=0)
    return Nudge(document_id, version, todo[0].step)
