"""listener: what is asked, standing by itself."""

from langgraph.runtime import Runtime

from agent.prompting import Resolved, ask_model, lines
from agent.run import Run, Step
from agent.state import Question, State, known
from retrieval.followups import Standing, stand
from retrieval.plan import check_query


def listener(state: State, runtime: Runtime[Run]) -> Step:
    """Resolve a follow-up against the turns before it; by the model where there is one.

    Raises EmptyQuery and QueryTooLong.
    """
    run = runtime.context
    longest = run.settings.search.max_query_chars
    asked = check_query(known(state.request).question, longest)
    before = [Standing(turn["base"], tuple(turn["tails"])) for turn in state.turns]
    standing = stand(asked, before)
    by_model = False
    if before and run.model is not None:
        earlier = [f"- {turn['question']}" for turn in state.turns[-5:]]
        reply = ask_model(run, "resolve", lines("Earlier:", *earlier, "Now:", asked), Resolved)
        if reply is not None and any(map(str.isalnum, reply.question)):
            standing, by_model = Standing(" ".join(reply.question.split())), True
    text = standing.text[:longest]
    question = Question(asked, standing.base, standing.tails, text)
    facts = {
        "characters": len(asked),
        "turns": len(before),
        "follow_up": text != " ".join(asked.split()),
        "by_model": by_model,
    }
    return Step({"question": question}, facts)
