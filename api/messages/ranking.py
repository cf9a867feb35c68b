"""Requests and responses of the API about a collection's ranking."""

from typing import Literal

from pydantic import BaseModel, Field

from callslip.api.messages.documents import Request
from callslip.messages.ranking import JudgedSearchLine as JudgedSearchLine
from callslip.messages.ranking import ProposalMessage as ProposalMessage
from callslip.messages.ranking import ProposalsMessage as ProposalsMessage
from callslip.messages.ranking import RankingMessage as RankingMessage
from callslip.messages.values import Whole
from callslip.vocabulary import ProposalState

MOST = 20_000
"""The most searches that a request reads; four weights need no more."""


class ExamplesQuery(BaseModel):
    """The number of searches, from the newest."""

    limit: Whole = Field(MOST, ge=1, le=MOST)


class OfState(BaseModel):
    """Selects runs and their proposals."""

    state: ProposalState | None = Field(None, description="such as `waiting`")
    limit: Whole = Field(50, ge=1, le=500)


class Decision(Request):
    """A yes or no to a proposal."""

    decision: Literal["accept", "decline"]
