"""observer: creates the trace of the search that the answer is based on."""

from dataclasses import replace
from typing import Any

from langgraph.runtime import Runtime

from callslip.agent.answer_text import AnswerText, answer_text
from callslip.agent.context import RunContext
from callslip.agent.messages import Citation
from callslip.agent.prompting import has_model, prompt
from callslip.agent.reports import Step
from callslip.agent.state import State, required
from callslip.agent.text_fragments import without_text
from callslip.retrieval.tracing.build import trace_of

RECORDED = {"number", "chunk_id", "document_id", "version", "span", "passage"} | {
    *("pages", "boxes", "valid_from", "valid_to", "url", "source_url")
}
"""The fields of a citation without text; `source_url` is recorded without the cited text."""

PROMPTS = ("resolve", "rephrase", "answer", "judge")


def observer(state: State, runtime: Runtime[RunContext]) -> Step:
    """Create the trace: time, sizes, choices and scores of every node, by attempt."""
    context, verdict = runtime.context, required(state.verdict)
    question, searched = required(state.question), required(state.searched)
    answer: dict[str, Any] = {
        "verdict": verdict.model_dump(),
        "attempts": [attempt.model_dump(exclude={"query"}) for attempt in state.attempts],
        "nodes": [
            {
                "node": report.node,
                "attempt": report.attempt,
                "ms": report.milliseconds,
                **report.facts,
            }
            for report in state.reports
        ],
        "model_left_out": state.model_left_out,
    }
    if has_model(context, state.model_left_out) and context.model is not None:
        answer["usage"] = context.model.usage.model_dump()
        answer["prompts"] = {name: prompt(name).version for name in PROMPTS}
    if context.spans is not None:
        answer["w3c_trace_id"] = context.spans.trace_id()
    words = answer_text(question.original, verdict, state.draft)
    answer["record"] = _record(words, by_model=state.draft.by_model)
    cited = tuple(citation.chunk_id for citation in words.citations)
    trace = trace_of(
        searched.plan,
        searched.query,
        searched.retrieved,
        searched.ranked,
        required(state.response),
    )
    trace = replace(trace, cited=cited, answer=answer)
    return Step({"trace": trace}, {"cited": len(cited)})


def _record(words: AnswerText, *, by_model: bool) -> dict[str, Any]:
    """Return what is needed to show the answer again: no text of a document.

    Only sentences of the language model have their text; that of others is in the documents.
    """
    return {
        "sentences": [
            {"text": s.text if by_model else None, "citations": s.citations}
            for s in words.sentences
        ],
        "citations": [recorded(citation) for citation in words.citations],
        "by_model": by_model,
    }


def recorded(citation: Citation) -> dict[str, Any]:
    """A citation as it is recorded: without text, also in the address of its source."""
    source = citation.source_url and without_text(citation.source_url)
    without = citation.model_copy(update={"source_url": source})
    return without.model_dump(mode="json", include=RECORDED)
