"""What the nodes of the graph know: one object, of which only the conversation is kept.

Everything but `turns` is of one question, and is never written down by a checkpointer.
"""

from dataclasses import dataclass, field
from typing import Annotated, TypedDict, TypeVar

from langgraph.channels import UntrackedValue

from agent.messages import Action, AnswerRequest, Attempt, Citation, Verdict
from retrieval.messages import SearchResponse
from retrieval.search import Search
from retrieval.sufficiency import NONE, Evidence
from retrieval.trace import Trace

MOST_TURNS = 20
"""Of a conversation, the newest."""


class Turn(TypedDict):
    """One question of a conversation and its answer, as the checkpointer keeps it.

    `base` and `tails` are the question standing by itself, see `retrieval.followups.Standing`.
    """

    question: str
    base: str
    tails: list[str]
    text: str
    answered: bool
    trace_id: str
    at: float


def added(before: list[Turn], new: list[Turn]) -> list[Turn]:
    """The turns of a conversation with a new one, as far as they are kept."""
    return [*before, *new][-MOST_TURNS:]


@dataclass(frozen=True)
class Question:
    """The question as it was asked, and standing by itself."""

    asked: str
    base: str
    tails: tuple[str, ...]
    text: str


@dataclass(frozen=True)
class Said:
    """A sentence of a draft, and what it cites: numbers of the draft's citations."""

    text: str
    citations: tuple[int, ...]


@dataclass(frozen=True)
class Draft:
    """An answer that nobody checked. `declined`: the model found none in the passages."""

    sentences: tuple[Said, ...] = ()
    citations: tuple[Citation, ...] = ()
    by_model: bool = False
    declined: bool = False


@dataclass(frozen=True)
class Way:
    """How an attempt differs from the first one.

    `documents` are those that it looks within, `query` what is searched in the question's place.
    """

    action: Action | None = None
    query: str | None = None
    documents: tuple[str, ...] = ()


T = TypeVar("T")


def known(value: T | None) -> T:
    """What an earlier node has put into the state."""
    if value is None:
        raise RuntimeError("a node ran before those that it builds on")
    return value


@dataclass
class State:
    """See above. A node returns those fields that it changes."""

    turns: Annotated[list[Turn], added] = field(default_factory=list)
    request: Annotated[AnswerRequest | None, UntrackedValue] = None
    question: Annotated[Question | None, UntrackedValue] = None
    way: Annotated[Way, UntrackedValue] = field(default_factory=Way)
    search: Annotated[Search | None, UntrackedValue] = None
    response: Annotated[SearchResponse | None, UntrackedValue] = None
    evidence: Annotated[Evidence, UntrackedValue] = NONE
    draft: Annotated[Draft, UntrackedValue] = field(default_factory=Draft)
    verdict: Annotated[Verdict | None, UntrackedValue] = None
    attempts: Annotated[tuple[Attempt, ...], UntrackedValue] = ()
    trace: Annotated[Trace | None, UntrackedValue] = None
