"""/v1/usage: what language models have used for answers, and what it cost."""

import time
from collections.abc import Sequence
from datetime import date, timedelta

from flask import Response
from flask_openapi3 import APIBlueprint, Tag
from pydantic import BaseModel, Field

from api.answers import answer
from api.messages import Request
from callslip.errors import CollectionNotFound, InvalidRequest, TenantNotFound
from config import get_settings
from config.settings import LlmSettings
from stores import naming
from stores.ledger import UsageRow
from stores.ledger.model_usage import DAY_SECONDS, day_of
from stores.schemas import check_tenant
from tasks.maintenance import COSTS_DAYS
from tasks.process import ledger

blueprint = APIBlueprint("usage", __name__, abp_tags=[Tag(name="usage")])


class UsageQuery(Request):
    """Whose usage, and since when."""

    collection: str | None = Field(None, max_length=128, description="left out: of all together")
    tenant: naming.Tenant = Field(
        "", max_length=naming.LONGEST_TENANT, description="left out: of all together"
    )
    days: int = Field(30, ge=1, le=COSTS_DAYS, description="days in UTC, today among them")


class Used(BaseModel):
    """What was used, and its cost at the prices that the settings have now."""

    calls: int
    input_tokens: int
    output_tokens: int
    cost: float = Field(description="in the currency of llm.input_price and llm.output_price")


class UsedOnDay(Used):
    """What one model used on one day."""

    day: date = Field(description="in UTC")
    model: str


class Today(BaseModel):
    """How much of the day's ceiling is left, in tokens."""

    used: int = Field(description="and reserved for calls under way, or that a crash cut off")
    ceiling: int = Field(description="llm.tokens_per_day; 0: none")
    left: int | None = Field(description="null where there is no ceiling")
    renewed_at: float


class UsageMessage(BaseModel):
    """What language models have used for answers."""

    collection: str | None = Field(description="null: of all together")
    tenant: str = Field(description="empty: of all together")
    days: int
    usage: list[UsedOnDay] = Field(description="by day, the newest first, and model")
    total: Used
    today: Today | None = Field(
        description="null unless one place is named: a tenant, or a collection without tenants"
    )


@blueprint.get("/v1/usage", responses={200: UsageMessage})
def show_usage(query: UsageQuery) -> Response:
    """What language models have used for answers, by day and model, and what is left today.

    What deleted collections and tenants have used stays for 400 days.
    """
    if query.tenant and query.collection is None:
        raise InvalidRequest("tenant is given without its collection")
    prices, now = get_settings().llm, time.time()
    rows = ledger().model_usage.rows(
        day_of(now) - query.days + 1, collection=query.collection, tenant=query.tenant or None
    )
    return answer(
        UsageMessage(
            collection=query.collection,
            tenant=query.tenant,
            days=query.days,
            usage=[
                UsedOnDay(
                    day=date(1970, 1, 1) + timedelta(days=row.day),
                    model=row.model,
                    **_used([row], prices).model_dump(),
                )
                for row in rows
            ],
            total=_used(rows, prices),
            today=_today(query, prices.tokens_per_day, now, known=bool(rows)),
        )
    )


def _used(rows: Sequence[UsageRow], prices: LlmSettings) -> Used:
    read, written = sum(r.input_tokens for r in rows), sum(r.output_tokens for r in rows)
    cost = (read * prices.input_price + written * prices.output_price) / 1e6
    return Used(
        calls=sum(row.calls for row in rows),
        input_tokens=read,
        output_tokens=written,
        cost=round(cost, 6),
    )


def _today(query: UsageQuery, ceiling: int, now: float, *, known: bool) -> Today | None:
    """Of the place that is named; what does not exist is an error unless it has used something."""
    if query.collection is None:
        return None
    try:
        schema = ledger().collections.get(query.collection).schema
        if query.tenant:
            check_tenant(schema, query.tenant)
            ledger().tenants.check(query.collection, query.tenant)
    except (CollectionNotFound, TenantNotFound):
        if not known:
            raise
        return None
    if schema.tenants and not query.tenant:
        return None
    used = ledger().model_usage.today(query.collection, query.tenant, now=now)
    return Today(
        used=used,
        ceiling=ceiling,
        left=max(0, ceiling - used) if ceiling else None,
        renewed_at=float((day_of(now) + 1) * DAY_SECONDS),
    )
