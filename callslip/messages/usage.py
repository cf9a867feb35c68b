"""The use of language models."""

from datetime import date

from pydantic import Field

from callslip.messages.base import Message


class Used(Message):
    """Used tokens, and their cost at the current prices of the settings."""

    calls: int
    input_tokens: int
    output_tokens: int
    cost: float = Field(description="in the currency of llm.input_price and llm.output_price")


class UsedOnDay(Used):
    """The use of one model on one day."""

    day: date = Field(description="in UTC")
    model: str


class Today(Message):
    """The rest of the day's token budget."""

    used: int = Field(description="and tokens reserved for running calls or crashed ones")
    ceiling: int = Field(description="llm.tokens_per_day; 0: no limit")
    left: int | None = Field(description="null if there is no limit")
    renewed_at: float


class UsageMessage(Message):
    """The use of language models for answers."""

    collection: str | None = Field(description="null: all together")
    tenant: str = Field(description="empty: all together")
    days: int
    usage: list[UsedOnDay] = Field(description="by day, the newest first, and model")
    total: Used
    today: Today | None = Field(
        description="null unless the request names a tenant, or a collection without tenants"
    )
