"""Prepares an answer, and the conversation that it belongs to, for the page."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from urllib.parse import urlencode

from markupsafe import Markup

from callslip.agent.answer_text import in_words, language_of, times
from callslip.agent.messages import Answer, AnswerRequest, AnswerSentence, Citation, TurnMessage
from callslip.api.http.context import current
from callslip.api.page.markdown import inline, is_markdown, passage_of
from callslip.api.page.marking import EXCERPT, Passage, whole
from callslip.errors import ThreadNotFound
from callslip.tasks import answer as agent
from callslip.vocabulary import Certainty, certainty_of, share_right

NEAREST = 240
"""Characters of an uncited nearest passage; the hits below the answer show more of it."""

REASONS = {
    "supported": "the cited passages support it",
    "no-passages": "nothing was found",
    "not-in-force": "what was found was not in force then",
    "not-covered": "no passage seems to answer the question",
    "not-apart": "other documents are as near",
    "not-grounded": "the passages do not say what was written",
    "model-declined": "the language model found no answer in the passages",
}
"""Reasons of a verdict in plain words."""


@dataclass(frozen=True)
class ShownSentence:
    """A sentence, its period of validity, and the numbers of its citations.

    A sentence that cites a Markdown document is markup.
    """

    text: str | Markup
    times: Sequence[str]
    citations: Sequence[int]


@dataclass(frozen=True)
class ShownCitation:
    """A citation with its quote as the page shows it."""

    citation: Citation
    heading: Passage
    quote: Passage | Markup
    in_force: str
    url: str | None


@dataclass(frozen=True)
class ShownAnswer:
    """An answer with the page's notes on it, and the earlier turns of its conversation.

    `right` is the measured share of right answers of this certainty, in words.
    """

    answer: Answer
    lang: str
    sentences: tuple[ShownSentence, ...]
    citations: tuple[ShownCitation, ...]
    reason: str
    certainty: Certainty
    right: str
    thread: str
    earlier: Sequence[tuple[TurnMessage, Markup]]
    """Turns with their texts as markup: a turn does not say which documents it cites."""


@dataclass(frozen=True)
class PageQuestion:
    """A question for the agent, and the earlier turns of its conversation."""

    request: AnswerRequest
    thread: str
    earlier: Sequence[TurnMessage] = ()
    again: bool = False
    """Whether the conversation has the question already (`Agent.answer`)."""

    def shown(self, answer: Answer) -> ShownAnswer:
        """Prepare the answer to this question for the page."""
        language = language_of(answer.question)
        sentences, cited = answer.sentences, answer.citations
        qualified = zip(sentences, times(sentences, cited, language), strict=True)
        query, verdict = answer.understood, answer.verdict
        certainty = certainty_of(verdict.confidence, approved=verdict.approved)
        return ShownAnswer(
            answer=answer,
            lang=language,
            sentences=tuple(
                ShownSentence(_sentence(s, cited), when, s.citations) for s, when in qualified
            ),
            citations=(
                *(_citation(c, query, language, EXCERPT) for c in cited),
                *(_citation(c, query, language, NEAREST) for c in answer.nearest),
            ),
            reason=REASONS[verdict.reason],
            certainty=certainty,
            right=share_right(
                verdict.confidence,
                approved=verdict.approved,
                by_model=answer.written_by == "model",
            ),
            thread=self.thread,
            earlier=[(turn, inline(turn.text)) for turn in self.earlier],
        )


def page_question(request: AnswerRequest) -> PageQuestion:
    """Make a question; if it has a `thread_id`, add the earlier turns of that conversation."""
    earlier = _turns(request)
    return PageQuestion(request, request.thread_id or "", earlier)


def repeatable_question(request: AnswerRequest) -> PageQuestion:
    """As `page_question`, for a URL that may be opened again without growing the conversation."""
    new = page_question(request)
    for at, turn in reversed(list(enumerate(new.earlier))):
        if _plain(turn.question) == _plain(request.question):
            return replace(new, earlier=new.earlier[:at], again=True)
    return new


def _turns(request: AnswerRequest) -> Sequence[TurnMessage]:
    if request.thread_id is None:
        return ()
    try:
        conversation = agent.look(
            current(), request.collection, request.tenant or "", request.thread_id
        )
    except ThreadNotFound:
        return ()
    return conversation.turns


def _sentence(sentence: AnswerSentence, citations: Sequence[Citation]) -> str | Markup:
    cited = (citation for citation in citations if citation.number in sentence.citations)
    marked = any(is_markdown(citation.filename) for citation in cited)
    return inline(sentence.text) if marked else sentence.text


def _citation(citation: Citation, query: str, language: str, longest: int) -> ShownCitation:
    page, _, anchor = (citation.url or "").partition("#")
    return ShownCitation(
        citation=citation,
        heading=whole(citation.heading or citation.title, query),
        quote=passage_of(citation.quote, citation.heading, citation.filename, query, longest),
        in_force=in_words(citation, language),
        url=f"{page}&{urlencode({'q': query})}#{anchor}" if page else None,
    )


def _plain(question: str) -> str:
    return " ".join(question.split())
