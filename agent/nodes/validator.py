"""validator: decides whether the draft is an answer, and which action to try if it is not."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from langgraph.runtime import Runtime

from callslip.agent.answer_text import sentence_messages
from callslip.agent.citations import in_force
from callslip.agent.context import RunContext
from callslip.agent.drafts import Draft, DraftSentence
from callslip.agent.messages import Action, Attempt, Reason, Verdict
from callslip.agent.nodes.answerer import READER
from callslip.agent.prompting import Judged, ask_model, has_model, shown
from callslip.agent.reports import Step
from callslip.agent.state import State, required
from callslip.models.embedders.contract import Embedder
from callslip.models.entities import Recognizer
from callslip.models.text.analyzer import Analyzer
from callslip.models.text.language import differ
from callslip.retrieval.evidence.grounding import grounded
from callslip.retrieval.evidence.overlap import covered
from callslip.retrieval.evidence.sufficiency import sigmoid, weighed
from callslip.retrieval.messages import Hit

TRIES: dict[Reason, tuple[Action, ...]] = {
    "supported": (),
    "no-passages": ("RELAX", "PIVOT"),
    "not-in-force": ("RELAX",),
    "not-covered": ("PIVOT", "RELAX"),
    "not-apart": ("DRILLDOWN", "PIVOT"),
    "not-grounded": ("DRILLDOWN", "RELAX"),
    "model-declined": ("PIVOT", "DRILLDOWN"),
}
"""The actions to try for each reason, in order. Each action is tried once per question."""

WITHOUT_MODEL: frozenset[Reason] = frozenset(("not-in-force",))
"""The reasons for which an action is tried without a language model, too (specification 003, §7).

Only a model has other words for a search, and reads what a wider or narrower one brings. Of the
answers that further attempts brought without a model, most were wrong (docs/quality.md)."""

COVERED = 0.5
"""The minimum coverage at which weak evidence means `not-apart` (other documents are as good)
rather than `not-covered` (the passage does not answer), if another document has a passage."""


def validator(state: State, runtime: Runtime[RunContext]) -> Step:
    """Check grounding, validity time and coverage; drop unsupported sentences.

    The verdict on the first attempt stands unless a later attempt is surer. The verdict has no
    action after `agent.max_iters` repeated attempts or if no action is left.
    """
    context, response = runtime.context, required(state.response)
    certain = _Certain(state, context)
    draft, left_out, model_judged = _supported(state, context, certain)
    reason, confidence = _judge(state, draft, context)
    verdict = Verdict(
        approved=reason == "supported",
        reason=reason,
        action=_action(reason, state, context, left_out),
        confidence=confidence,
    )
    if verdict.approved:
        certain.send(draft)
    attempt = Attempt(
        trace_id=response.trace_id,
        action=state.variant.action,
        query=response.query,
        hits=len(response.hits),
        verdict=verdict,
    )
    update = {
        "draft": draft,
        "verdict": verdict,
        "attempts": (*state.attempts, attempt),
        "model_judged": model_judged,
        "model_left_out": left_out,
    }
    dropped = len(state.draft.sentences) - len(draft.sentences)
    return Step(update, {**verdict.model_dump(), "sentences_dropped": dropped})


def _action(
    reason: Reason, state: State, context: RunContext, left_out: str | None
) -> Action | None:
    """Return the action of the next attempt; None if there is none."""
    if len(state.attempts) >= context.settings.agent.max_iters:
        return None
    if reason not in WITHOUT_MODEL and not has_model(context, left_out):
        return None
    tried = [attempt.action for attempt in state.attempts] + [state.variant.action]
    return next((action for action in TRIES[reason] if action not in tried), None)


def _judge(state: State, draft: Draft, context: RunContext) -> tuple[Reason, float]:
    """Return the reason of the verdict and the confidence.

    A later attempt must be surer than the first one, unless the first one was refused for its
    validity time alone.
    """
    reason, confidence = _judge_alone(state, draft, context)
    first = state.attempts[0].verdict if state.attempts else None
    confidence = round(confidence, 4)
    surer = first is None or first.reason == "not-in-force" or confidence > first.confidence
    return (reason if surer or reason != "supported" else required(first).reason), confidence


def _judge_alone(state: State, draft: Draft, context: RunContext) -> tuple[Reason, float]:
    logit = state.evidence.logit + (READER if draft.by_model else 0.0)
    confidence = sigmoid(logit)
    if draft.declined:
        return "model-declined", min(confidence, sigmoid(state.evidence.logit - READER))
    if state.response is None or not state.response.hits:
        return "no-passages", 0.0
    if confidence < context.settings.agent.confidence_threshold:
        covered_elsewhere = state.evidence.coverage >= COVERED and _has_rival(state)
        return ("not-apart" if covered_elsewhere else "not-covered"), confidence
    if not draft.sentences:  # none was written, or all were dropped
        return ("not-grounded" if state.draft.sentences else "not-covered"), confidence
    moment = state.plan.as_of.moment if state.plan else None
    if not all(in_force(citation, moment) for citation in draft.citations):
        return "not-in-force", confidence
    if draft.by_model and state.evidence.coverage >= COVERED and not _about(state, draft):
        return "not-covered", confidence
    return "supported", confidence


def _has_rival(state: State) -> bool:
    """Whether a passage of another document has a part of the evidence of the best one."""
    documents = {hit.document_id for hit in required(state.response).hits}
    return len(documents) > 1 and state.evidence.margin < state.evidence.content


def _about(state: State, draft: Draft) -> bool:
    """Whether the cited passages contain at least one content word of the question."""
    searched = required(state.searched)
    cited = sorted({citation.chunk_id for citation in draft.citations})
    terms_of = searched.retrieved.reader.terms(cited)
    cited_terms = frozenset(term for terms in terms_of.values() for term in terms.split())
    return covered(weighed(searched.calibration, searched.query.terms), cited_terms) > 0


class _Certain:
    """Sends sentences of a draft as soon as no later check can refuse them."""

    def __init__(self, state: State, context: RunContext) -> None:
        self._state, self._context, self._sent = state, context, 0

    def add(self, supported: Sequence[DraftSentence]) -> None:
        """Send the sentences that were not sent, unless the verdict could still be another.

        Further sentences only add citations: of those in the draft, which are all checked here.
        """
        whole = self._state.draft
        if self._context.settings.agent.judge == "model":
            return
        used = {n for sentence in supported for n in sentence.citations}
        so_far = replace(
            whole,
            sentences=tuple(supported),
            citations=tuple(c for c in whole.citations if c.number in used),
        )
        reasons = {_judge(self._state, each, self._context)[0] for each in (so_far, whole)}
        if reasons == {"supported"}:
            self.send(so_far)

    def send(self, draft: Draft) -> None:
        """Send the sentences of the draft that were not sent."""
        for message in sentence_messages(draft)[self._sent :]:
            self._context.on_sentence(message)
        self._sent = max(self._sent, len(draft.sentences))


def _supported(
    state: State, context: RunContext, certain: _Certain
) -> tuple[Draft, str | None, bool]:
    """Return the draft with supported sentences only, and whether the language model judged them.

    The second value is the reason if the model is left out. Extracts are not checked, because an
    extract is its own citation.
    """
    draft, left_out, judged = state.draft, state.model_left_out, False
    if not draft.by_model or state.response is None:
        return draft, left_out, judged
    hits = {hit.chunk_id: hit for hit in state.response.hits}
    cited = {c.number: hits[c.chunk_id] for c in draft.citations}
    question, its = required(state.question).original, context.resources
    supported: list[DraftSentence] = []
    for s in draft.sentences:
        its_passages = Passages.of([cited[n] for n in s.citations])
        if supports(its_passages, s.text, question, its.analyzer, its.embedder, its.recognizer):
            supported.append(s)
            certain.add(supported)
    if supported and context.settings.agent.judge == "model":
        supported, left_out, judged = _judged(supported, cited, context, left_out)
    used = {n for sentence in supported for n in sentence.citations}
    citations = tuple(c for c in draft.citations if c.number in used)
    return replace(draft, sentences=tuple(supported), citations=citations), left_out, judged


@dataclass(frozen=True)
class Passages:
    """The texts of the passages that a sentence cites, with their titles and headings."""

    texts: tuple[str, ...]
    titles: tuple[str, ...] = ()

    @classmethod
    def of(cls, hits: Sequence[Hit]) -> "Passages":
        """Return the passages of these hits."""
        titles = (each for h in hits for each in (h.title, h.section, h.heading) if each)
        return cls(tuple(h.text for h in hits), tuple(titles))


def supports(
    passages: Passages,
    sentence: str,
    question: str,
    analyzer: Analyzer,
    embedder: Embedder,
    recognizer: Recognizer,
) -> bool:
    """Whether a sentence of the model is in the question's language and supported by passages."""
    if differ(question, sentence, analyzer.codes):
        return False
    entities = recognizer.find_by_form(sentence)
    names = [e.name for e in entities if e.kind not in ("date", "programme")]
    return grounded(sentence, passages.texts, analyzer, embedder, names, passages.titles)


def _judged(
    sentences: Sequence[DraftSentence],
    cited: Mapping[int, Hit],
    context: RunContext,
    left_out: str | None,
) -> tuple[list[DraftSentence], str | None, bool]:
    """Return the sentences that the model judges supported; all if the model cannot be used.

    The last value says whether the model judged.
    """
    hits = list(
        {h.chunk_id: h for s in sentences for n in s.citations for h in [cited[n]]}.values()
    )
    task = f"Sentences to check: 1 to {len(sentences)}"
    content = shown(task, hits, sentences=[sentence.text for sentence in sentences])
    reply, left_out = ask_model(context, left_out, "judge", content, Judged)
    if reply is None:
        return list(sentences), left_out, False
    supported = [s for number, s in enumerate(sentences, 1) if number in reply.supported]
    return supported, left_out, True
