"""answerer: drafts an answer with citations, with the language model or from extracts."""

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from math import log

from langgraph.runtime import Runtime

from callslip.agent.citations import Citations
from callslip.agent.context import RunContext
from callslip.agent.drafts import Draft, DraftSentence
from callslip.agent.prompting import Written, ask_model, fitting, has_model, shown
from callslip.agent.reports import Step
from callslip.agent.state import Question, State, required
from callslip.errors import BadReply
from callslip.languages import Codes
from callslip.models.language_models.completion import estimated
from callslip.models.text.analyzer import Analyzer
from callslip.models.text.language import differ
from callslip.retrieval.evidence.extracts import Target, extracts, lead, nearest
from callslip.retrieval.evidence.kinds import has_needed
from callslip.retrieval.evidence.labels import has_labels, labels_of
from callslip.retrieval.evidence.numbers import (
    around,
    asks_count,
    has_count,
    has_later_years,
    has_numbers,
    named_numbers,
)
from callslip.retrieval.evidence.rivals import NEAR, contradicting
from callslip.retrieval.evidence.sufficiency import sigmoid, weighed
from callslip.retrieval.messages import Hit
from callslip.retrieval.query.as_of import FROM
from callslip.retrieval.query.time_expressions import read_time, without_time

READER = log(7.0)
"""Added to the log odds if the model says that the passages answer the question. The factor is
assumed, not measured: a model says so seven times as often if the passages do answer it."""

MOST_READ = 3


def answerer(state: State, runtime: Runtime[RunContext]) -> Step:
    """Draft an answer from the hits of this attempt.

    The draft is empty if the evidence is too weak for an approving verdict. The model is called
    only if its answer can lead to an approving verdict.
    """
    context, response = runtime.context, required(state.response)
    if not response.hits:
        return Step({"draft": Draft()}, {"sentences": 0})
    least, left_out = context.settings.agent.confidence_threshold, state.model_left_out
    draft: Draft | None = None
    if has_model(context, left_out) and sigmoid(state.evidence.logit + READER) >= least:
        draft, left_out = _written(state, context, response.hits[: context.settings.agent.passages])
    if draft is None:
        draft = _extracted(state, context) if state.evidence.confidence >= least else Draft()
    facts = {
        "by_model": draft.by_model,
        "declined": draft.declined,
        "sentences": len(draft.sentences),
        "citations": len(draft.citations),
    }
    return Step({"draft": draft, "model_left_out": left_out}, facts)


def _extracted(state: State, context: RunContext) -> Draft:
    searched, response = required(state.searched), required(state.response)
    best = response.hits[0]
    hits = [h for h in response.hits[:MOST_READ] if h.score >= best.score - NEAR]
    if state.variant.action == "DRILLDOWN":
        hits = [h for h in response.hits if h.document_id == best.document_id][:MOST_READ]
    query = searched.query
    idf = weighed(searched.calibration, query.terms)
    resources, most = context.resources, context.settings.agent.sentences
    analyzer = resources.analyzer_of(searched.plan.record)
    target = Target(
        required(state.question).text,
        idf,
        query.vector if query.alpha != 0 else None,
        _newest(required(state.question), idf, analyzer),
    )
    best_extracts = extracts(hits, target, analyzer, resources.embedder, most, state.readings)
    codes = resources.analyzer.codes
    counts = [has_count(e.text, codes) for e in best_extracts]
    if asks_count(target.text, codes) and not any(counts):
        return Draft()
    best_hit = best_extracts[0].hit if best_extracts else None
    if best_hit and not (
        has_needed(target.text, best_extracts[0].text, codes)
        and _is_about(target.text, searched.plan.topic, best_hit, codes)
    ):
        return Draft()
    if best_extracts and (
        other := contradicting(
            best_extracts[0],
            response.hits,
            target,
            analyzer,
            resources.embedder,
            state.readings,
        )
    ):
        best_extracts = [e for e in best_extracts if e.hit is not other.hit] + [other]
        hits = list({h.chunk_id: h for h in (*hits, other.hit)}.values())
    best_extracts.sort(key=lambda e: (e.hit is not best_hit, e.hit.rank, e.span.start))
    citations = _citations(context, hits)
    sentences: dict[tuple[str, int], DraftSentence] = {}
    for e in best_extracts:
        if announced := lead(e, analyzer):
            text = e.hit.text[announced.start - e.hit.span.start : announced.end - e.hit.span.start]
            number = citations.cite(e.hit, announced)
            sentences.setdefault(
                (e.hit.chunk_id, announced.start), DraftSentence(_line(text), (number,))
            )
        numbers = tuple(citations.cite(e.hit, s) for s in (e.header, e.span) if s)
        sentences[e.hit.chunk_id, e.span.start] = DraftSentence(_line(e.text), numbers)
    return Draft(tuple(sentences.values()), citations.all())


def _is_about(question: str, topic: str, hit: Hit, codes: Codes) -> bool:
    """Whether a passage has the numbers and labels that a question names, and not only later years.

    `topic` is the question without its time. The years count if the question has a time and the
    passage no date from which it is in force.
    """
    text, labels = around(hit), labels_of(topic, codes)
    if not has_numbers(named_numbers(topic), text):
        return False
    if not has_labels(labels, f"{text}\n{hit.filename}", codes):
        return False
    stated = None if hit.properties.get(FROM) else read_time(question, _today(), codes)
    return stated is None or not has_later_years(text, stated.day.year)


def _newest(question: Question, idf: Mapping[str, float], analyzer: Analyzer) -> dict[str, float]:
    """Return the IDF of the words of the newest fragment, but for a time; empty without one."""
    if not question.tails:
        return {}
    words = analyzer.analyze(without_time(question.tails[-1], _today(), analyzer.codes)).split()
    return {word: idf[word] for word in words if word in idf}


def _today() -> date:
    return datetime.now().astimezone().date()


def _written(
    state: State, context: RunContext, hits: Sequence[Hit]
) -> tuple[Draft | None, str | None]:
    """Return the model's draft, or None, and the reason if the model is left out from now on."""
    moment = required(state.plan).as_of.moment
    as_of = moment.date().isoformat() if moment else None
    question = f"Question: {required(state.question).text}"
    hits = fitting(hits, context.settings.llm.max_input_tokens - estimated(question))
    content = shown(question, hits, as_of)
    reply, left_out = ask_model(context, state.model_left_out, "answer", content, Written)
    if reply is None:
        return None, left_out
    if not reply.answerable:
        return Draft(by_model=True, declined=True), left_out
    if not reply.sentences:
        return None, f"{BadReply.slug}: it answers without a sentence"
    original, codes = required(state.question).original, context.resources.analyzer.codes
    if all(differ(original, s.text, codes) for s in reply.sentences):
        return None, f"{BadReply.slug}: it answers in another language"
    if any(n > len(hits) for s in reply.sentences for n in s.citations):
        return None, f"{BadReply.slug}: it cites what it was not given"
    citations, analyzer, sentences = _citations(context, hits), context.resources.analyzer, []
    for sentence in reply.sentences:
        cited = [hits[n - 1] for n in dict.fromkeys(sentence.citations)]
        numbers = (citations.cite(h, nearest(sentence.text, h, analyzer)) for h in cited)
        sentences.append(DraftSentence(_line(sentence.text), tuple(numbers)))
    return Draft(tuple(sentences), citations.all(), by_model=True), left_out


def _citations(context: RunContext, hits: Sequence[Hit]) -> Citations:
    return Citations.of(hits, context.resources.backend)


def _line(text: str) -> str:
    return " ".join(text.split())
