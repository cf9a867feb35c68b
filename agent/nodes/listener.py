"""listener: rewrites a follow-up question so that it is complete without earlier questions."""

from langgraph.runtime import Runtime

from callslip.agent.context import RunContext
from callslip.agent.prompting import Resolved, ask_model, lines
from callslip.agent.reports import Step
from callslip.agent.state import Question, State, required
from callslip.retrieval.query.followups import Standing, stand
from callslip.retrieval.query.plan import check_query

SHOWN = 5
"""The maximum number of earlier questions in the prompt of the language model."""


def listener(state: State, runtime: Runtime[RunContext]) -> Step:
    """Resolve a follow-up question with the answered turns; use the model if there is one.

    The documents did not have the topic of a refused turn, so no later question inherits it.
    Raises EmptyQuery if the question has no letter or digit, QueryTooLong if it is too long.
    """
    context = runtime.context
    longest = context.settings.search.max_query_chars
    original = check_query(required(state.request).question, longest)
    answered = [turn for turn in state.turns if turn["answered"]]
    before = [Standing(turn["base"], tuple(turn["tails"])) for turn in answered]
    standing = stand(original, before, context.settings.language_codes)
    by_model, left_out = False, state.model_left_out
    if before:
        earlier = [f"- {turn['question']}" for turn in answered[-SHOWN:]]
        content = lines("Earlier:", *earlier, "Now:", original)
        reply, left_out = ask_model(context, state.model_left_out, "resolve", content, Resolved)
        if reply is not None and any(map(str.isalnum, reply.question)):
            standing, by_model = Standing(" ".join(reply.question.split())), True
    text = standing.text[:longest]
    question = Question(original, standing.base, standing.tails, text)
    facts = {
        "characters": len(original),
        "turns": len(before),
        "follow_up": text != " ".join(original.split()),
        "by_model": by_model,
    }
    return Step({"question": question, "model_left_out": left_out}, facts)
