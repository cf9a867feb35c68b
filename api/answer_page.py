"""An answer as the page shows it, and the conversation that it belongs to."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from urllib.parse import urlencode

from agent.messages import Answer, AnswerRequest, Citation, TurnMessage
from agent.wording import in_words, language_of, times
from api.marking import EXCERPT, Passage, body, excerpt, whole
from callslip.errors import ThreadNotFound
from tasks import answer as agent

NEAREST = 240
"""Characters of a passage that only came near; the hits below have more of it."""

REASONS = {
    "supported": "the cited passages support it",
    "no-passages": "nothing was found",
    "not-in-force": "what was found was not in force then",
    "not-covered": "the passages do not say what the question is about",
    "not-apart": "other documents are as near",
    "not-grounded": "the passages do not say what was written",
    "model-declined": "the language model found no answer in the passages",
}
"""Reasons of a verdict as a person says them."""


@dataclass(frozen=True)
class ShownSentence:
    """A sentence, since when and until when it holds, and the numbers of its citations."""

    text: str
    times: Sequence[str]
    citations: Sequence[int]


@dataclass(frozen=True)
class ShownCitation:
    """A citation with its quote as the page shows it."""

    citation: Citation
    heading: Passage
    quote: Passage
    in_force: str
    url: str | None


@dataclass(frozen=True)
class ShownAnswer:
    """An answer with what the page says of it, and the turns of its conversation before it."""

    answer: Answer
    lang: str
    sentences: tuple[ShownSentence, ...]
    citations: tuple[ShownCitation, ...]
    reason: str
    thread: str
    earlier: Sequence[TurnMessage]


@dataclass(frozen=True)
class Asked:
    """A question to be asked, and the turns of its conversation before it."""

    request: AnswerRequest
    thread: str
    earlier: Sequence[TurnMessage] = ()
    words: str = ""

    def shown(self, answer: Answer) -> ShownAnswer:
        """Its answer as the page shows it."""
        question = self.words or answer.question
        language = language_of(question)
        said, cited = answer.sentences, answer.citations
        qualified = zip(said, times(said, cited, language), strict=True)
        query = answer.understood
        return ShownAnswer(
            answer=answer.model_copy(update={"question": question}),
            lang=language,
            sentences=tuple(ShownSentence(s.text, when, s.citations) for s, when in qualified),
            citations=(
                *(_citation(c, query, language, EXCERPT) for c in cited),
                *(_citation(c, query, language, NEAREST) for c in answer.nearest),
            ),
            reason=REASONS[answer.verdict.reason],
            thread=self.thread,
            earlier=self.earlier,
        )


def asked(request: AnswerRequest) -> Asked:
    """The question as the next one of its conversation, if it has one."""
    earlier = _turns(request)
    return Asked(request, request.thread_id or "", earlier)


def asked_again(request: AnswerRequest, longest: int) -> Asked:
    """The same, for an address that may be opened again and again: a conversation does not grow.

    A question that it holds is asked by itself, as it was understood then.
    """
    new = asked(request)
    for at, turn in reversed(list(enumerate(new.earlier))):
        if _plain(turn.question) == _plain(request.question):
            alone = {"question": turn.understood[:longest], "thread_id": None}
            again = request.model_copy(update=alone)
            return replace(new, request=again, earlier=new.earlier[:at], words=turn.question)
    return new


def _turns(request: AnswerRequest) -> Sequence[TurnMessage]:
    if request.thread_id is None:
        return ()
    try:
        found = agent.look(request.collection, request.tenant or "", request.thread_id)
    except ThreadNotFound:
        return ()
    return found.turns


def _citation(citation: Citation, query: str, language: str, longest: int) -> ShownCitation:
    page, _, anchor = (citation.url or "").partition("#")
    return ShownCitation(
        citation=citation,
        heading=whole(citation.heading or citation.title, query),
        quote=excerpt(body(citation.quote, citation.heading), query, longest),
        in_force=in_words(citation, language),
        url=f"{page}&{urlencode({'q': query})}#{anchor}" if page else None,
    )


def _plain(question: str) -> str:
    return " ".join(question.split())
