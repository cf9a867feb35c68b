"""Renders the text of an answer: sentences with citation numbers and dates, or why it has none."""

from collections.abc import Sequence
from dataclasses import dataclass

from callslip.agent.drafts import Draft
from callslip.agent.messages import AnswerSentence, Citation, SentenceMessage, Verdict
from callslip.models.text.language import lang

NOT_HERE = {
    "en": "No sure answer in these documents. The passages that came nearest are listed.",
    "ko": "이 문서들에서 확실한 답을 찾지 못했습니다. 가장 가까운 구절을 함께 보여 드립니다.",
}

NO_PASSAGE = {
    "en": "Nothing was found for this question.",
    "ko": "이 질문에 대해 찾은 내용이 없습니다.",
}


@dataclass(frozen=True)
class AnswerText:
    """The text of an answer, its sentences, and its citations numbered from 1."""

    text: str
    sentences: tuple[AnswerSentence, ...] = ()
    citations: tuple[Citation, ...] = ()


def answer_text(question: str, verdict: Verdict | None, draft: Draft) -> AnswerText:
    """Render the draft if the verdict approved it.

    Else return NOT_HERE or, if no passage was found, NO_PASSAGE in the question's language.
    """
    language = language_of(question)
    if verdict is None or not verdict.approved:
        empty = verdict is not None and verdict.reason == "no-passages"
        return AnswerText((NO_PASSAGE if empty else NOT_HERE)[language])
    return _of(draft, language)


def sentence_messages(draft: Draft) -> list[SentenceMessage]:
    """Return the sentences of a draft with their citations, numbered as in the answer."""
    words = _of(draft, "en")
    return [
        SentenceMessage(text=each.text, citations=[words.citations[n - 1] for n in each.citations])
        for each in words.sentences
    ]


def _of(draft: Draft, language: str) -> AnswerText:
    order = dict.fromkeys(n for sentence in draft.sentences for n in sentence.citations)
    number = {old: new for new, old in enumerate(order, 1)}
    by_old = {c.number: c for c in draft.citations}
    citations = tuple(by_old[old].model_copy(update={"number": n}) for old, n in number.items())
    sentences = tuple(
        AnswerSentence(text=sentence.text, citations=[number[n] for n in sentence.citations])
        for sentence in draft.sentences
    )
    lines = [
        " ".join([sentence.text, *(f"({time})" for time in fresh), _marks(sentence)])
        for sentence, fresh in zip(sentences, times(sentences, citations, language), strict=True)
    ]
    return AnswerText(" ".join(lines), sentences, citations)


def times(
    sentences: Sequence[AnswerSentence], citations: Sequence[Citation], language: str
) -> list[list[str]]:
    """Return, for each sentence, the validity periods of its citations that are not yet stated."""
    stated: set[str] = set()
    fresh_of = []
    for sentence in sentences:
        its = dict.fromkeys(in_words(citations[n - 1], language) for n in sentence.citations)
        fresh = [time for time in its if time and time not in stated]
        stated.update(fresh)
        fresh_of.append(fresh)
    return fresh_of


def language_of(question: str) -> str:
    """Return the language of the answer to a question: `ko` or `en`."""
    return "ko" if lang(question) == "ko" else "en"


def _marks(sentence: AnswerSentence) -> str:
    return "".join(f"[{n}]" for n in sentence.citations)


def in_words(citation: Citation, language: str) -> str:
    """Return the validity period of a passage in words; empty if it has no bounds."""
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
