"""The state of the graph, which consists of frozen values that the nodes return.

The checkpointer stores only `turns` with the conversation. All other fields belong to one question
and are never stored.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, TypedDict, TypeVar

from langgraph.channels import UntrackedValue

from callslip.agent.drafts import Draft
from callslip.agent.messages import Action, AnswerRequest, Attempt, Verdict
from callslip.agent.reports import NodeReport
from callslip.retrieval.candidates.retrieved import Candidates, Retrieved
from callslip.retrieval.evidence.reading import Readings
from callslip.retrieval.evidence.sufficiency import NONE, Evidence, Searched
from callslip.retrieval.facets.weights import Weights
from callslip.retrieval.messages import SearchResponse
from callslip.retrieval.query.plan import Plan
from callslip.retrieval.query.question import Query
from callslip.retrieval.tracing.trace import Trace

MOST_TURNS = 20
"""The newest turns of a conversation that are stored."""


class Turn(TypedDict):
    """One question of a conversation and its answer, as the checkpointer stores it.

    `base` and `tails` are the parts of the complete question
    (`retrieval.query.followups.Standing`); `at` is in seconds since 1970.
    """

    question: str
    base: str
    tails: list[str]
    text: str
    answered: bool
    trace_id: str
    at: float


def added(before: list[Turn], new: list[Turn]) -> list[Turn]:
    """Append new turns to a conversation; only the newest MOST_TURNS remain."""
    return [*before, *new][-MOST_TURNS:]


@dataclass(frozen=True)
class Question:
    """The question of the request, and its complete form `text`."""

    original: str
    base: str
    tails: tuple[str, ...]
    text: str


@dataclass(frozen=True)
class Variant:
    """How an attempt differs from the first one.

    `documents` are the ids of the documents that it is limited to. `query` is the text that it
    searches for instead of the question.
    """

    action: Action | None = None
    query: str | None = None
    documents: tuple[str, ...] = ()


T = TypeVar("T")


def required(value: T | None) -> T:
    """Return the value of a field that an earlier node has set.

    Raises RuntimeError if the value is None.
    """
    if value is None:
        raise RuntimeError("a node ran before those that it builds on")
    return value


@dataclass(frozen=True)
class State:
    """The state of one question; a node returns the fields that it changes.

    The fields from `plan` to `timings` are the search stages of the current attempt
    (`retrieval.run`); `timings` has milliseconds by stage. `model_judged` says whether the language
    model checked the draft's sentences. `model_left_out` is the reason why the
    language model is not called any more. `reports` has every run of a node so far.
    """

    turns: Annotated[list[Turn], added] = field(default_factory=list)
    request: Annotated[AnswerRequest | None, UntrackedValue] = None
    question: Annotated[Question | None, UntrackedValue] = None
    variant: Annotated[Variant, UntrackedValue] = field(default_factory=Variant)
    plan: Annotated[Plan | None, UntrackedValue] = None
    query: Annotated[Query | None, UntrackedValue] = None
    candidates: Annotated[Candidates | None, UntrackedValue] = None
    facet_weights: Annotated[Weights, UntrackedValue] = field(default_factory=dict)
    retrieved: Annotated[Retrieved | None, UntrackedValue] = None
    searched: Annotated[Searched | None, UntrackedValue] = None
    response: Annotated[SearchResponse | None, UntrackedValue] = None
    timings: Annotated[Mapping[str, float], UntrackedValue] = field(default_factory=dict)
    readings: Annotated[Readings, UntrackedValue] = field(default_factory=dict)
    evidence: Annotated[Evidence, UntrackedValue] = NONE
    draft: Annotated[Draft, UntrackedValue] = field(default_factory=Draft)
    verdict: Annotated[Verdict | None, UntrackedValue] = None
    model_judged: Annotated[bool, UntrackedValue] = False
    attempts: Annotated[tuple[Attempt, ...], UntrackedValue] = ()
    trace: Annotated[Trace | None, UntrackedValue] = None
    model_left_out: Annotated[str | None, UntrackedValue] = None
    reports: Annotated[tuple[NodeReport, ...], UntrackedValue] = ()
