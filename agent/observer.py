"""observer: what was done, in numbers, as the trace of the search that was answered from."""

from dataclasses import replace
from typing import Any

from langgraph.runtime import Runtime

from agent.prompting import prompt
from agent.run import Run, Step
from agent.state import State, known
from agent.wording import worded
from retrieval.tracing import trace_of

PROMPTS = ("resolve", "rephrase", "answer", "judge")


def observer(state: State, runtime: Runtime[Run]) -> Step:
    """Make the trace: every node with its time, sizes, choices and scores, attempt by attempt."""
    run, verdict = runtime.context, known(state.verdict)
    told: dict[str, Any] = {
        "verdict": verdict.model_dump(),
        "attempts": [attempt.model_dump(exclude={"query"}) for attempt in state.attempts],
        "nodes": [
            {
                "node": report.node,
                "attempt": report.attempt,
                "ms": report.milliseconds,
                **report.facts,
            }
            for report in run.reports
        ],
        "model_left_out": run.model_left_out,
    }
    if run.model is not None:
        told["usage"] = run.model.usage.model_dump()
        told["prompts"] = {name: prompt(name).version for name in PROMPTS}
    if run.spans is not None:
        told["w3c_trace_id"] = run.spans.trace_id()
    cited = tuple(citation.chunk_id for citation in worded(state).citations)
    trace = replace(trace_of(known(state.search), known(state.response)), cited=cited, answer=told)
    return Step({"trace": trace}, {"cited": len(cited)})
