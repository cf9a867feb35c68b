"""The usage of language models by scope and day, and the daily ceiling.

A scope is a collection without tenants, or one tenant of a collection. Tokens are reserved before a
call and replaced by the real number after the call. If the process dies, its reservation counts
until the day ends, which is the safe side.
"""

import time
from dataclasses import dataclass
from typing import Any

from sqlalchemy import delete, func, select, update
from sqlalchemy.dialects import postgresql, sqlite

from callslip.errors import ModelBudgetSpent
from callslip.models.language_models.completion import Usage
from callslip.stores.ledger.base import answer_tables
from callslip.stores.ledger.base.database import Database

_D, _U = answer_tables.model_days.c, answer_tables.model_usage.c

_SUMMED = (_U.calls, _U.input_tokens, _U.output_tokens)

DAY_SECONDS = 86_400


@dataclass(frozen=True)
class Reservation:
    """Tokens that a call may use; `day` counts days from 1970, in UTC."""

    collection: str
    tenant: str
    day: int
    model: str
    tokens: int


@dataclass(frozen=True)
class UsageRow:
    """The usage of one model on one day; `day` counts days from 1970, in UTC."""

    day: int
    model: str
    calls: int
    input_tokens: int
    output_tokens: int


class ModelUsage:
    """Counts tokens and enforces the daily ceiling."""

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
        """Reserve tokens for a call.

        Raises ModelBudgetSpent if these tokens and those that the scope has used or reserved today,
        for all models, exceed `ceiling`; a ceiling of 0 means no limit.
        """
        now = time.time() if now is None else now
        day = day_of(now)
        if ceiling and tokens > ceiling:
            raise _spent(now, ceiling)
        add = self._insert(answer_tables.model_days).values(
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
        if taken is None:  # the statement itself checks the ceiling: no two calls pass together
            raise _spent(now, ceiling)
        return Reservation(collection, tenant, day, model, tokens)

    def settle(self, reservation: Reservation, usage: Usage) -> None:
        """Replace the reservation of a call by the call's usage. Call this once per reservation."""
        used = {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens}
        of = reservation
        add = self._insert(answer_tables.model_usage).values(
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
        """Cancel the reservation of a call that got no answer. Call this once per reservation."""
        with self._database.writing() as connection:
            connection.execute(_changed(reservation, -reservation.tokens))

    def today(self, collection: str, tenant: str = "", *, now: float | None = None) -> int:
        """Tokens that a scope has used or reserved today, of all models."""
        day = day_of(time.time() if now is None else now)
        query = select(_D.tokens).where(
            _D.collection == collection, _D.tenant == tenant, _D.day == day
        )
        with self._database.reading() as connection:
            return connection.scalar(query) or 0

    def rows(
        self, since: int, *, collection: str | None = None, tenant: str | None = None
    ) -> list[UsageRow]:
        """The usage of each model since this day, newest day first.

        Includes all scopes that match the parameters, deleted ones too.
        """
        query = select(_U.day, _U.model, *(func.sum(each) for each in _SUMMED))
        query = query.where(_U.day >= since).group_by(_U.day, _U.model)
        if collection is not None:
            query = query.where(_U.collection == collection)
        if tenant is not None:
            query = query.where(_U.tenant == tenant)
        with self._database.reading() as connection:
            rows = connection.execute(query.order_by(_U.day.desc(), _U.model))
            return [UsageRow(row[0], row[1], *map(int, row[2:])) for row in rows]

    def trim(self, before: float) -> int:
        """Delete the usage of the days before this time, and return the number of rows."""
        day = day_of(before)
        with self._database.writing() as connection:
            connection.execute(delete(answer_tables.model_days).where(_D.day < day))
            return connection.execute(
                delete(answer_tables.model_usage).where(_U.day < day)
            ).rowcount

    def _insert(self, table: Any) -> Any:
        dialect = sqlite if self._database.is_sqlite else postgresql
        return dialect.insert(table)


def day_of(at: float) -> int:
    """The day in UTC of a time, counted from 1970."""
    return int(at // DAY_SECONDS)


def _changed(of: Reservation, tokens: int) -> Any:
    return (
        update(answer_tables.model_days)
        .where(_D.collection == of.collection, _D.tenant == of.tenant, _D.day == of.day)
        .values(tokens=_D.tokens + tokens)
    )


def _spent(now: float, ceiling: int) -> ModelBudgetSpent:
    return ModelBudgetSpent(
        f"the language model's {ceiling:,} tokens of today are used up, or too few are left",
        retry_after=DAY_SECONDS - now % DAY_SECONDS,
    )
