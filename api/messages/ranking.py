"""Requests and responses of the API about a collection's ranking."""

from pydantic import BaseModel, Field

from callslip.messages.ranking import JudgedSearchLine as JudgedSearchLine
from callslip.messages.ranking import RankingMessage as RankingMessage

MOST = 20_000
"""The most searches that a request reads; four weights need no more."""


class ExamplesQuery(BaseModel):
    """The number of searches, from the newest."""

    limit: int = Field(MOST, ge=1, le=MOST)
