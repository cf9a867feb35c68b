"""An answer in words: its sentences with their numbers and dates, or that there is none."""

from dataclasses import dataclass

from agent.messages import AnswerSentence, Citation
from agent.state import Draft, State
from models.language import lang

NOT_HERE = {
    "en": "Not in these documents. The passages that came nearest are listed.",
    "ko": "이 문서들에는 답이 없습니다. 가장 가까운 구절을 함께 보여 드립니다.",
}


@dataclass(frozen=True)
class Worded:
    """The text of an answer, its sentences, and its citations numbered from 1."""

    text: str
    sentences: tuple[AnswerSentence, ...] = ()
    citations: tuple[Citation, ...] = ()


def worded(state: State) -> Worded:
    """What is answered: the draft where the verdict approved it, else that there is no answer."""
    asked = state.question.asked if state.question else ""
    language = "ko" if lang(asked) == "ko" else "en"
    if state.verdict is None or not state.verdict.approved:
        return Worded(NOT_HERE[language])
    return _of(state.draft, language)


def _of(draft: Draft, language: str) -> Worded:
    order = dict.fromkeys(n for said in draft.sentences for n in said.citations)
    number = {old: new for new, old in enumerate(order, 1)}
    by_old = {c.number: c for c in draft.citations}
    citations = tuple(by_old[old].model_copy(update={"number": n}) for old, n in number.items())
    told: set[str] = set()
    lines, sentences = [], []
    for said in draft.sentences:
        cited = [number[n] for n in said.citations]
        sentences.append(AnswerSentence(text=said.text, citations=cited))
        times = dict.fromkeys(in_words(citations[n - 1], language) for n in cited)
        fresh = [time for time in times if time and time not in told]
        told.update(fresh)
        marks = "".join(f"[{n}]" for n in cited)
        lines.append(" ".join([said.text, *(f"({time})" for time in fresh), marks]))
    return Worded(" ".join(lines), tuple(sentences), citations)


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
