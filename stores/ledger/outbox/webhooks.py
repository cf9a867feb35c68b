"""Webhooks in the ledger: subscriptions, and the state of each delivery."""

import time
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    delete,
    func,
    insert,
    or_,
    select,
    text,
    update,
)

from callslip.errors import DeliveryNotFound, WebhookNotFound
from callslip.stores.ledger.base import outbox_tables, schema
from callslip.stores.ledger.base.database import Database
from callslip.stores.ledger.outbox.events import Event, EventKind, event_of
from callslip.vocabulary import DeliveryState as DeliveryState

_W, _L, _E, _D = (
    outbox_tables.webhooks.c,
    outbox_tables.deliveries.c,
    outbox_tables.events.c,
    schema.documents.c,
)

PER_TRANSACTION = 500
"""Rows that one transaction changes; workers wait for SQLite's write lock in the meantime."""


@dataclass(frozen=True)
class Webhook:
    """A URL and the kinds of events to send to it; all collections if `collection` is None."""

    webhook_id: str
    url: str
    secret: str
    collection: str | None
    kinds: tuple[EventKind, ...]
    created_at: float
    stopped_at: float | None


@dataclass(frozen=True)
class Delivery:
    """One event for one webhook. `delivery_id` is the same in all attempts."""

    delivery_id: str
    webhook_id: str
    event_id: int
    body: dict[str, Any]
    state: DeliveryState
    created_at: float
    next_at: float | None
    attempts: int
    attempted_at: float | None
    status: int | None
    error: str | None


class Webhooks:
    """Stores subscriptions, makes deliveries of events, and records their results."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def create(
        self, url: str, secret: str, kinds: Iterable[EventKind], collection: str | None = None
    ) -> Webhook:
        """Subscribe a URL to the events from now on."""
        made = Webhook(
            uuid.uuid4().hex, url, secret, collection, tuple(kinds), time.time(), stopped_at=None
        )
        row = made.__dict__ | {"kinds": list(made.kinds), "seen_event": self._newest() or 0}
        with self._database.writing() as connection:
            connection.execute(insert(outbox_tables.webhooks).values(row))
        return made

    def all(self) -> list[Webhook]:
        """Every webhook, oldest first."""
        with self._database.reading() as connection:
            rows = connection.execute(select(outbox_tables.webhooks).order_by(_W.created_at))
            return [_webhook(row) for row in rows]

    def get(self, webhook_id: str) -> Webhook:
        """One webhook. Raises WebhookNotFound."""
        with self._database.reading() as connection:
            row = connection.execute(
                select(outbox_tables.webhooks).where(_W.webhook_id == webhook_id)
            ).one_or_none()
        if row is None:
            raise WebhookNotFound(f"webhook {webhook_id!r} does not exist")
        return _webhook(row)

    def delete(self, webhook_id: str) -> None:
        """Delete a webhook and its deliveries. Raises WebhookNotFound."""
        with self._database.writing() as connection:
            connection.execute(delete(outbox_tables.deliveries).where(_L.webhook_id == webhook_id))
            gone = connection.execute(
                delete(outbox_tables.webhooks).where(_W.webhook_id == webhook_id)
            ).rowcount
        if not gone:
            raise WebhookNotFound(f"webhook {webhook_id!r} does not exist")

    def stop(self, webhook_id: str) -> None:
        """Stop a webhook whose receiver reported that it is gone; give up its deliveries."""
        now = time.time()
        with self._database.writing() as connection:
            connection.execute(
                update(outbox_tables.webhooks)
                .where(_W.webhook_id == webhook_id)
                .values(stopped_at=func.coalesce(_W.stopped_at, now))
            )
            connection.execute(
                update(outbox_tables.deliveries)
                .where(_L.webhook_id == webhook_id, _L.state == "waiting")
                .values(state="given-up", next_at=None)
            )

    def fan_out(self) -> int:
        """Make a delivery of each new event for each webhook that subscribes to it.

        Returns the number of deliveries.
        """
        open_ = [hook for hook in self.all() if hook.stopped_at is None]
        newest = self._newest() if open_ else None
        if newest is None:
            return 0
        return sum(self._fan_out(hook, newest) for hook in open_)

    def _fan_out(self, hook: Webhook, newest: int) -> int:
        wanted: list[ColumnElement[bool]] = [_E.kind.in_(hook.kinds), _E.event_id <= newest]
        if hook.collection is not None:
            wanted.append(_E.collection == hook.collection)
        made = 0
        while True:
            with self._database.writing() as connection:
                seen = connection.scalar(
                    select(_W.seen_event).where(_W.webhook_id == hook.webhook_id).with_for_update()
                )
                if seen is None or seen >= newest:
                    return made
                rows = connection.execute(
                    select(outbox_tables.events, _D.name)
                    .outerjoin(schema.documents, _D.document_id == _E.document_id)
                    .where(_E.event_id > seen, *wanted)
                    .order_by(_E.event_id)
                    .limit(PER_TRANSACTION)
                ).all()
                _deliver(connection, hook, rows)
                upto = rows[-1].event_id if len(rows) == PER_TRANSACTION else newest
                connection.execute(
                    update(outbox_tables.webhooks)
                    .where(_W.webhook_id == hook.webhook_id)
                    .values(seen_event=upto)
                )
            made += len(rows)

    def due(self, webhook_id: str, limit: int) -> list[Delivery]:
        """The deliveries to send to a webhook now, in the order of the events."""
        query = (
            select(outbox_tables.deliveries)
            .where(_L.webhook_id == webhook_id, _L.state == "waiting", _L.next_at <= time.time())
            .order_by(_L.event_id)
            .limit(limit)
        )
        with self._database.reading() as connection:
            return [_delivery(row) for row in connection.execute(query)]

    def states(self) -> dict[str, int]:
        """The number of deliveries in each state."""
        query = select(_L.state, func.count()).group_by(_L.state)
        with self._database.reading() as connection:
            return {row.state: row[1] for row in connection.execute(query)}

    def delivered(self, delivery_id: str, status: int) -> None:
        """Record that the receiver has accepted the delivery."""
        self._attempted(delivery_id, state="delivered", next_at=None, status=status, error=None)

    def failed(
        self, delivery_id: str, status: int | None, error: str, next_at: float | None
    ) -> None:
        """Record a failed attempt; without a `next_at` the delivery is given up."""
        state: DeliveryState = "given-up" if next_at is None else "waiting"
        self._attempted(delivery_id, state=state, next_at=next_at, status=status, error=error)

    def _attempted(self, delivery_id: str, **values: Any) -> None:
        with self._database.writing() as connection:
            connection.execute(
                update(outbox_tables.deliveries)
                .where(_L.delivery_id == delivery_id, _L.state == "waiting")
                .values(attempts=_L.attempts + 1, attempted_at=time.time(), **values)
            )

    def resend(self, webhook_id: str, delivery_id: str) -> None:
        """Make a delivery due now, with no attempts counted. Raises DeliveryNotFound."""
        now = time.time()
        with self._database.writing() as connection:
            result = connection.execute(
                update(outbox_tables.deliveries)
                .where(_L.webhook_id == webhook_id, _L.delivery_id == delivery_id)
                .values(state="waiting", created_at=now, next_at=now, attempts=0)
            ).rowcount
        if not result:
            raise DeliveryNotFound(f"webhook {webhook_id!r} has no delivery {delivery_id!r}")

    def deliveries(
        self,
        webhook_id: str,
        *,
        state: DeliveryState | None = None,
        before: int | None = None,
        limit: int = 100,
    ) -> list[Delivery]:
        """The log of a webhook, newest events first, starting before the event id `before`."""
        query = (
            select(outbox_tables.deliveries)
            .where(_L.webhook_id == webhook_id)
            .order_by(_L.event_id.desc())
            .limit(limit)
        )
        if state is not None:
            query = query.where(_L.state == state)
        if before is not None:
            query = query.where(_L.event_id < before)
        with self._database.reading() as connection:
            return [_delivery(row) for row in connection.execute(query)]

    def trim(self, before: float) -> None:
        """Delete deliveries that ended before this time."""
        old = (
            select(_L.delivery_id)
            .where(_L.state != "waiting", _L.created_at < before)
            .where(or_(_L.attempted_at.is_(None), _L.attempted_at < before))
            .limit(PER_TRANSACTION)
        )
        while True:
            with self._database.writing() as connection:
                ids = list(connection.scalars(old))
                if ids:
                    connection.execute(
                        delete(outbox_tables.deliveries).where(_L.delivery_id.in_(ids))
                    )
            if len(ids) < PER_TRANSACTION:
                return

    def _newest(self) -> int | None:
        """The newest event id, below which no event can appear any more; None without events.

        PostgreSQL assigns ids before transactions end: the lock waits for those transactions.
        """
        with self._database.writing() as connection:
            if not self._database.is_sqlite:
                connection.execute(text("LOCK TABLE events IN SHARE MODE"))
            newest: int | None = connection.scalar(select(func.max(_E.event_id)))
            return newest


def _deliver(connection: Connection, hook: Webhook, rows: Iterable[Row[Any]]) -> None:
    now = time.time()
    made = [
        {
            "delivery_id": f"msg_{uuid.uuid4().hex}",
            "webhook_id": hook.webhook_id,
            "event_id": row.event_id,
            "body": _body(event_of(row), row.name),
            "state": "waiting",
            "created_at": now,
            "next_at": now,
        }
        for row in rows
    ]
    if made:
        connection.execute(insert(outbox_tables.deliveries), made)


def _body(event: Event, name: str | None) -> dict[str, Any]:
    """The body that the Standard Webhooks specification requires: type, timestamp, data."""
    happened = datetime.fromtimestamp(event.at, UTC).isoformat(timespec="milliseconds")
    shown = {key: value for key, value in event.__dict__.items() if key not in ("kind", "at")}
    return {
        "type": event.kind,
        "timestamp": happened.replace("+00:00", "Z"),
        "data": shown | {"name": name},
    }


def _webhook(row: Row[Any]) -> Webhook:
    values = {name: getattr(row, name) for name in Webhook.__dataclass_fields__}
    return Webhook(**values | {"kinds": tuple(row.kinds)})


def _delivery(row: Row[Any]) -> Delivery:
    return Delivery(**{name: getattr(row, name) for name in Delivery.__dataclass_fields__})
