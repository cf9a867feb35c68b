"""answerer: a draft with citations, by the language model where it may help, else of extracts."""

from collections.abc import Sequence
from math import log

from langgraph.runtime import Runtime

from agent.citing import Citations
from agent.prompting import Written, ask_model, fitting, shown
from agent.run import Run, Step
from agent.state import Draft, Said, State, known
from callslip.errors import BadReply
from models.completion import estimated
from retrieval.extracts import Asked, extracts, nearest
from retrieval.messages import Hit
from retrieval.sufficiency import sigmoid, weighed

READER = log(7.0)
"""What a model's word that the passages answer the question adds to the log odds. Assumed, not
measured: one that reads them says so seven times as often where they do."""

NEAR = 0.05
"""Passages whose score is so near the best one's are read for extracts too."""

MOST_READ = 3


def answerer(state: State, runtime: Runtime[Run]) -> Step:
    """Draft an answer from the hits of this attempt.

    There is none where the evidence is too weak for a verdict that approves; the model is asked
    where its word could change the verdict, and not otherwise.
    """
    run, response = runtime.context, known(state.response)
    if not response.hits:
        return Step({"draft": Draft()}, {"sentences": 0})
    least, draft = run.settings.agent.confidence_threshold, None
    if run.model is not None and sigmoid(state.evidence.logit + READER) >= least:
        draft = _written(state, run, response.hits[: run.settings.agent.passages])
    if draft is None:
        draft = _extracted(state, run) if state.evidence.confidence >= least else Draft()
    facts = {
        "by_model": draft.by_model,
        "declined": draft.declined,
        "sentences": len(draft.sentences),
        "citations": len(draft.citations),
    }
    return Step({"draft": draft}, facts)


def _extracted(state: State, run: Run) -> Draft:
    search, response = known(state.search), known(state.response)
    best = response.hits[0]
    hits = [h for h in response.hits[:MOST_READ] if h.score >= best.score - NEAR]
    if state.way.action == "DRILLDOWN":
        hits = [h for h in response.hits if h.document_id == best.document_id][:MOST_READ]
    idf = weighed(search.background(), search.terms)
    asked = Asked(known(state.question).text, idf, search.vector if search.alpha > 0 else None)
    engine, most = run.engine, run.settings.agent.sentences
    found = extracts(hits, asked, engine.analyzer, engine.embedder, most)
    best_of = found[0].hit if found else None
    found.sort(key=lambda e: (e.hit is not best_of, e.hit.rank, e.span.start))
    citations = _citations(run, hits)
    said = tuple(
        Said(_line(e.text), tuple(citations.cite(e.hit, s) for s in (e.header, e.span) if s))
        for e in found
    )
    return Draft(said, citations.all())


def _written(state: State, run: Run, hits: Sequence[Hit]) -> Draft | None:
    """What the model wrote; None where it cannot be used."""
    moment = known(state.search).plan.as_of.moment
    as_of = moment.date().isoformat() if moment else None
    asked = f"Question: {known(state.question).text}"
    hits = fitting(hits, run.settings.llm.max_input_tokens - estimated(asked))
    reply = ask_model(run, "answer", shown(asked, hits, as_of), Written)
    if reply is None:
        return None
    if not reply.answerable:
        return Draft(by_model=True, declined=True)
    if not reply.sentences:
        run.leave_model_out(f"{BadReply.slug}: it answers without a sentence")
        return None
    if any(n > len(hits) for s in reply.sentences for n in s.citations):
        run.leave_model_out(f"{BadReply.slug}: it cites what it was not given")
        return None
    citations, analyzer, said = _citations(run, hits), run.engine.analyzer, []
    for sentence in reply.sentences:
        cited = [hits[n - 1] for n in dict.fromkeys(sentence.citations)]
        numbers = (citations.cite(h, nearest(sentence.text, h, analyzer)) for h in cited)
        said.append(Said(_line(sentence.text), tuple(numbers)))
    return Draft(tuple(said), citations.all(), by_model=True)


def _citations(run: Run, hits: Sequence[Hit]) -> Citations:
    return Citations.of(hits, run.engine.ledger)


def _line(text: str) -> str:
    return " ".join(text.split())
