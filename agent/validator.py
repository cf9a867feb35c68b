"""validator: is the draft an answer? And if not, what is to be done otherwise."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from langgraph.runtime import Runtime

from agent.answerer import READER
from agent.citing import in_force
from agent.messages import Action, Attempt, Reason, Verdict
from agent.prompting import Judged, ask_model, shown
from agent.run import Run, Step
from agent.state import Draft, Said, State, known
from retrieval.grounding import grounded
from retrieval.messages import Hit
from retrieval.shares import covered
from retrieval.sufficiency import sigmoid, weighed

TRIES: dict[Reason, tuple[Action, ...]] = {
    "supported": (),
    "no-passages": ("RELAX", "PIVOT"),
    "not-in-force": ("RELAX",),
    "not-covered": ("PIVOT", "RELAX"),
    "not-apart": ("DRILLDOWN", "PIVOT"),
    "not-grounded": ("DRILLDOWN", "RELAX"),
    "model-declined": ("PIVOT", "DRILLDOWN"),
}
"""What may help, by what is wrong; each action once for a question."""

COVERED = 0.5
"""Of a question whose words are said so far, the passage is near others rather than beside it."""


def validator(state: State, runtime: Runtime[Run]) -> Step:
    """Check grounding, time and coverage; drop the sentences that nothing supports.

    After `agent.max_iters` other ways, or when none is left, the verdict has no action.
    """
    run, response = runtime.context, known(state.response)
    draft, dropped = _supported(state, run)
    reason, confidence = _judge(state, draft, run)
    tried = [attempt.action for attempt in state.attempts] + [state.way.action]
    left = [action for action in TRIES[reason] if action not in tried]
    again = bool(left) and len(state.attempts) < run.settings.agent.max_iters
    verdict = Verdict(
        approved=reason == "supported",
        reason=reason,
        action=left[0] if again else None,
        confidence=round(confidence, 4),
    )
    attempt = Attempt(
        trace_id=response.trace_id,
        action=state.way.action,
        query=response.query,
        hits=len(response.hits),
        verdict=verdict,
    )
    update = {"draft": draft, "verdict": verdict, "attempts": (*state.attempts, attempt)}
    return Step(update, {**verdict.model_dump(), "sentences_dropped": dropped})


def _judge(state: State, draft: Draft, run: Run) -> tuple[Reason, float]:
    logit = state.evidence.logit + (READER if draft.by_model else 0.0)
    confidence = sigmoid(logit)
    if draft.declined:
        return "model-declined", min(confidence, sigmoid(state.evidence.logit - READER))
    if state.response is None or not state.response.hits:
        return "no-passages", 0.0
    if confidence < run.settings.agent.confidence_threshold:
        return ("not-covered" if state.evidence.coverage < COVERED else "not-apart"), confidence
    if not draft.sentences:
        return "not-grounded", confidence
    moment = state.search.plan.as_of.moment if state.search else None
    if not all(in_force(citation, moment) for citation in draft.citations):
        return "not-in-force", confidence
    if draft.by_model and state.evidence.coverage >= COVERED and not _about(state, draft):
        return "not-covered", confidence
    return "supported", confidence


def _about(state: State, draft: Draft) -> bool:
    """Whether what is cited has a word of the question: the best passage has most of them."""
    search = known(state.search)
    cited = sorted({citation.chunk_id for citation in draft.citations})
    held = search.terms_of(cited)
    said = frozenset(term for terms in held.values() for term in terms.split())
    return covered(weighed(search.background(), search.terms), said) > 0


def _supported(state: State, run: Run) -> tuple[Draft, int]:
    """The draft without what its citations do not say; an extract is its own citation."""
    draft = state.draft
    if not draft.by_model or state.response is None:
        return draft, 0
    hits = {hit.chunk_id: hit for hit in state.response.hits}
    cited = {c.number: hits[c.chunk_id] for c in draft.citations}
    kept = [s for s in draft.sentences if _says([cited[n].text for n in s.citations], s.text, run)]
    if kept and run.settings.agent.judge == "model":
        kept = _judged(kept, cited, run)
    used = {n for said in kept for n in said.citations}
    citations = tuple(c for c in draft.citations if c.number in used)
    return replace(draft, sentences=tuple(kept), citations=citations), len(draft.sentences) - len(
        kept
    )


def _says(passages: Sequence[str], text: str, run: Run) -> bool:
    engine = run.engine
    names = [e.name for e in engine.recognizer.find_by_form(text) if e.kind != "date"]
    return grounded(text, passages, engine.analyzer, engine.embedder, names)


def _judged(sentences: Sequence[Said], cited: Mapping[int, Hit], run: Run) -> list[Said]:
    """Those that the model finds supported too; all of them where its word cannot be used."""
    hits = list(
        {h.chunk_id: h for said in sentences for n in said.citations for h in [cited[n]]}.values()
    )
    asked = f"Sentences to check: 1 to {len(sentences)}"
    content = shown(asked, hits, sentences=[said.text for said in sentences])
    reply = ask_model(run, "judge", content, Judged)
    if reply is None:
        return list(sentences)
    return [said for number, said in enumerate(sentences, 1) if number in reply.supported]
