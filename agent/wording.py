"""An answer in words: its sentences with their numbers and dates, or that there is none."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent.messages import AnswerSentence, Citation
from models.language import lang

if TYPE_CHECKING:  # its channels are LangGraph's, which a desk that words citations does without
    from agent.state import Draft, State

NOT_HERE = {
    "en": "No sure answer in these documents. The passages that came nearest are listed.",
    "ko": "이 문서들에서 확실한 답을 찾지 못했습니다. 가장 가까운 구절을 함께 보여 드립니다.",
}


@dataclass(frozen=True)
class Worded:
    """The text of an answer, its sentences, and its citations numbered from 1."""

    text: str
    sentences: tuple[AnswerSentence, ...] = ()
    citations: tuple[Citation, ...] = ()


def worded(state: "State") -> Worded:
    """What is answered: the draft where the verdict approved it, else that there is no answer."""
    asked = state.question.asked if state.question else ""
    language = language_of(asked)
    if state.verdict is None or not state.verdict.approved:
        return Worded(NOT_HERE[language])
    return _of(state.draft, language)


def _of(draft: "Draft", language: str) -> Worded:
    order = dict.fromkeys(n for said in draft.sentences for n in said.citations)
    number = {old: new for new, old in enumerate(order, 1)}
    by_old = {c.number: c for c in draft.citations}
    citations = tuple(by_old[old].model_copy(update={"number": n}) for old, n in number.items())
    sentences = tuple(
        AnswerSentence(text=said.text, citations=[number[n] for n in said.citations])
        for said in draft.sentences
    )
    lines = [
        " ".join([said.text, *(f"({time})" for time in fresh), _marks(said)])
        for said, fresh in zip(sentences, times(sentences, citations, language), strict=True)
    ]
    return Worded(" ".join(lines), sentences, citations)


def times(
    sentences: Sequence[AnswerSentence], citations: Sequence[Citation], language: str
) -> list[list[str]]:
    """For each sentence when what it cites is in force, as far as none before it said the same."""
    told: set[str] = set()
    found = []
    for said in sentences:
        its = dict.fromkeys(in_words(citations[n - 1], language) for n in said.citations)
        fresh = [time for time in its if time and time not in told]
        told.update(fresh)
        found.append(fresh)
    return found


def language_of(question: str) -> str:
    """The language that a question is answered in: `ko` or `en`."""
    return "ko" if lang(question) == "ko" else "en"


def _marks(said: AnswerSentence) -> str:
    return "".join(f"[{n}]" for n in said.citations)


def in_words(citation: Citation, language: str) -> str:
    """Since when and until when a passage is in force; empty where nothing says so."""
    since = citation.valid_from and citation.valid_from.date().isoformat()
    until = citation.valid_to and citation.valid_to.date().isoformat()
    if language == "ko":
        parts = [f"{since}부터" if since else "", f"{until} 전까지" if until else ""]
        return f"{' '.join(filter(None, parts))} 시행" if since or until else ""
    if since and until:
        return f"in force from {since} until {until}"
    if since:
        return f"in force since {since}"
    return f"in force until {until}" if until else ""
