"""memory_updater: what is learned, and the turn that the conversation remembers."""

import logging

from langgraph.runtime import Runtime

from agent.run import Run, Step
from agent.state import State, Turn, known
from agent.wording import worded
from callslip.errors import CallslipError

log = logging.getLogger(__name__)


def memory_updater(state: State, runtime: Runtime[Run]) -> Step:
    """Record the search; where the verdict approved, let the cited chunks remember the question.

    An answer does not fail because nothing could be learned from it.
    """
    run, trace = runtime.context, known(state.trace)
    verdict, question = known(state.verdict), known(state.question)
    learned = 0
    try:
        run.learning.record([trace])
        if verdict.approved and run.settings.memory.record:
            outcome, _ = run.learning.outcome(
                trace.trace_id, list(dict.fromkeys(trace.cited)), "validated"
            )
            learned = len(outcome.counted)
    except CallslipError as error:
        log.warning("answer %s taught nothing: %s", trace.trace_id, error.detail)
    turn = Turn(
        question=question.asked,
        base=question.base,
        tails=list(question.tails),
        text=worded(state).text,
        answered=verdict.approved,
        trace_id=trace.trace_id,
        at=run.started,
    )
    return Step({"turns": [turn]}, {"learned": learned})
