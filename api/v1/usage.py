"""/v1/usage: the tokens and costs of language models for answers."""

import time
from collections.abc import Sequence
from datetime import date, timedelta

from flask import Response
from flask_openapi3 import APIBlueprint, Tag
from pydantic import Field

from callslip.api.http.context import current
from callslip.api.http.json_response import answer
from callslip.api.identity.current import caller, check_collection
from callslip.api.messages.documents import Request
from callslip.config.settings import LlmSettings
from callslip.errors import CollectionNotFound, InvalidRequest, PermissionMissing, TenantNotFound
from callslip.messages.usage import Today as Today
from callslip.messages.usage import UsageMessage as UsageMessage
from callslip.messages.usage import Used as Used
from callslip.messages.usage import UsedOnDay as UsedOnDay
from callslip.messages.values import Whole
from callslip.stores import naming
from callslip.stores.ledger import UsageRow
from callslip.stores.ledger.answers.model_usage import DAY_SECONDS, day_of
from callslip.stores.schemas import check_tenant
from callslip.tasks.maintenance import COSTS_DAYS

blueprint = APIBlueprint("usage", __name__, abp_tags=[Tag(name="usage")])


class UsageQuery(Request):
    """Selects the scope and the days of the usage."""

    collection: str | None = Field(None, max_length=128, description="left out: of all together")
    tenant: naming.Tenant = Field(
        "", max_length=naming.LONGEST_TENANT, description="left out: of all together"
    )
    days: Whole = Field(30, ge=1, le=COSTS_DAYS, description="days in UTC, today among them")


@blueprint.get("/v1/usage", responses={200: UsageMessage})
def show_usage(query: UsageQuery) -> Response:
    """The use of language models for answers, by day and model, and the rest of today's budget.

    The usage of deleted collections and tenants is stored for 400 days.
    """
    if query.tenant and query.collection is None:
        raise InvalidRequest("tenant is given without its collection")
    if caller().limited:
        if query.collection is None:
            raise PermissionMissing(
                "the caller is limited to some collections or tenants",
                hint="Name a collection, and a tenant of it.",
            )
        caller().check(query.collection, query.tenant)
    prices, now = current().settings.llm, time.time()
    rows = current().ledger.model_usage.rows(
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
    """The budget of the named scope; raise an error if the scope is unknown and has no usage."""
    if query.collection is None:
        return None
    try:
        check_collection(query.collection)
        schema = current().ledger.collections.get(query.collection).schema
        if query.tenant:
            check_tenant(schema, query.tenant)
            current().ledger.tenants.check(query.collection, query.tenant)
    except (CollectionNotFound, TenantNotFound):
        if not known:
            raise
        return None
    if schema.tenants and not query.tenant:
        return None
    used = current().ledger.model_usage.today(query.collection, query.tenant, now=now)
    return Today(
        used=used,
        ceiling=ceiling,
        left=max(0, ceiling - used) if ceiling else None,
        renewed_at=float((day_of(now) + 1) * DAY_SECONDS),
    )
