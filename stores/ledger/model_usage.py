"""What language models have used, by place and day, and the ceiling of a day.

A place is a collection without tenants, or a tenant of one. Tokens are reserved before a call and
replaced by the real ones after it; a reservation whose process died stays counted until the day
ends, which is the safe side.
"""

import time
from dataclasses import dataclass
from typing import Any

from sqlalchemy import delete, func, select, update
from sqlalchemy.dialects import postgresql, sqlite

from callslip.errors import ModelBudgetSpent
from models.completion import Usage
from stores.ledger import schema
from stores.ledger.database import Database

_D, _U = schema.model_days.c, schema.model_usage.c

_SUMMED = (_U.calls, _U.input_tokens, _U.output_tokens)

DAY_SECONDS = 86_400


@dataclass(frozen=True)
class Reservation:
    """Tokens that a call may use; `day` counts from 1970, in UTC."""

    collection: str
    tenant: str
    day: int
    model: str
    tokens: int


@dataclass(frozen=True)
class UsageRow:
    """What one model used on one day, which is counted from 1970 in UTC."""

    day: int
    model: str
    calls: int
    input_tokens: int
    output_tokens: int


class ModelUsage:
    """Counting tokens, and stopping at the ceiling."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def reserve(
        self,
        collection: str,
        tenant: str,
        model: str,
        tokens: int,
        *,
        ceiling: int,
        now: float | None = None,
    ) -> Reservation:
        """Set tokens aside for a call.

        ModelBudgetSpent where that and what the place has used or reserved today, of all models,
        would be more than `ceiling`; 0 is none.
        """
        now = time.time() if now is None else now
        day = day_of(now)
        if ceiling and tokens > ceiling:
            raise _spent(now, ceiling)
        add = self._insert(schema.model_days).values(
            collection=collection, tenant=tenant, day=day, tokens=tokens
        )
        total = _D.tokens + tokens
        upsert = add.on_conflict_do_update(
            index_elements=[_D.collection, _D.tenant, _D.day],
            set_={"tokens": total},
            where=total <= ceiling if ceiling else None,
        )
        with self._database.writing() as connection:
            taken = connection.scalar(upsert.returning(_D.tokens))
        if taken is None:  # the condition is part of the one statement: no two pass it together
            raise _spent(now, ceiling)
        return Reservation(collection, tenant, day, model, tokens)

    def settle(self, reservation: Reservation, usage: Usage) -> None:
        """Put what a call really used in the place of what was reserved for it; once."""
        used = {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens}
        of = reservation
        add = self._insert(schema.model_usage).values(
            collection=of.collection, tenant=of.tenant, day=of.day, model=of.model, calls=1, **used
        )
        upsert = add.on_conflict_do_update(
            index_elements=[_U.collection, _U.tenant, _U.day, _U.model],
            set_={"calls": _U.calls + 1} | {name: _U[name] + used[name] for name in used},
        )
        with self._database.writing() as connection:
            connection.execute(_changed(of, usage.total - of.tokens))
            connection.execute(upsert)

    def release(self, reservation: Reservation) -> None:
        """Give back what was reserved for a call that was never answered; once."""
        with self._database.writing() as connection:
            connection.execute(_changed(reservation, -reservation.tokens))

    def today(self, collection: str, tenant: str = "", *, now: float | None = None) -> int:
        """Tokens that a place has used or reserved today, of all models."""
        day = day_of(time.time() if now is None else now)
        query = select(_D.tokens).where(
            _D.collection == collection, _D.tenant == tenant, _D.day == day
        )
        with self._database.reading() as connection:
            return connection.scalar(query) or 0

    def rows(
        self, since: int, *, collection: str | None = None, tenant: str | None = None
    ) -> list[UsageRow]:
        """What each model used from this day on, the newest day first.

        Of all places that are named by what is given, those that were deleted since among them.
        """
        query = select(_U.day, _U.model, *(func.sum(each) for each in _SUMMED))
        query = query.where(_U.day >= since).group_by(_U.day, _U.model)
        if collection is not None:
            query = query.where(_U.collection == collection)
        if tenant is not None:
            query = query.where(_U.tenant == tenant)
        with self._database.reading() as connection:
            found = connection.execute(query.order_by(_U.day.desc(), _U.model))
            return [UsageRow(row[0], row[1], *map(int, row[2:])) for row in found]

    def trim(self, before: float) -> int:
        """Forget the days before this time; returns how many rows of usage went."""
        day = day_of(before)
        with self._database.writing() as connection:
            connection.execute(delete(schema.model_days).where(_D.day < day))
            return connection.execute(delete(schema.model_usage).where(_U.day < day)).rowcount

    def _insert(self, table: Any) -> Any:
        dialect = sqlite if self._database.is_sqlite else postgresql
        return dialect.insert(table)


def day_of(at: float) -> int:
    """The day in UTC of a time, counted from 1970."""
    return int(at // DAY_SECONDS)


def _changed(of: Reservation, tokens: int) -> Any:
    return (
        update(schema.model_days)
        .where(_D.collection == of.collection, _D.tenant == of.tenant, _D.day == of.day)
        .values(tokens=_D.tokens + tokens)
    )


def _spent(now: float, ceiling: int) -> ModelBudgetSpent:
    return ModelBudgetSpent(
        f"the language model's {ceiling:,} tokens of today are used up, or too few are left",
        retry_after=DAY_SECONDS - now % DAY_SECONDS,
    )
