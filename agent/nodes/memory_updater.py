"""memory_updater: updates chunk memory from the answer and adds the turn to the conversation."""

import logging

from langgraph.runtime import Runtime

from callslip.agent.answer_text import answer_text
from callslip.agent.context import RunContext
from callslip.agent.reports import Step
from callslip.agent.state import State, Turn, required
from callslip.errors import CallslipError

log = logging.getLogger(__name__)


def memory_updater(state: State, runtime: Runtime[RunContext]) -> Step:
    """Record the search; if the verdict approved the answer, record an approval of its citations.

    `learned` counts the chunks whose statistics the approval changed: none until something
    independent agrees (`stores.ledger.learning.approvals`).
    An error of this step is logged and does not make the answer fail.
    """
    context, trace = runtime.context, required(state.trace)
    verdict, question = required(state.verdict), required(state.question)
    learned = 0
    try:
        context.learning.record([trace])
        if verdict.approved and context.settings.memory.record:
            outcome, _ = context.learning.outcome(
                trace.trace_id,
                list(dict.fromkeys(trace.cited)),
                "validated",
                user=required(state.request).user,
                by_model=state.model_judged,
            )
            learned = len(outcome.counted)
    except CallslipError as error:
        log.warning("answer %s taught nothing: %s", trace.trace_id, error.detail)
    turn = Turn(
        question=question.original,
        base=question.base,
        tails=list(question.tails),
        text=answer_text(question.original, verdict, state.draft).text,
        answered=verdict.approved,
        trace_id=trace.trace_id,
        at=context.started,
    )
    return Step({"turns": [turn]}, {"learned": learned})
