"""planner: where and by which numbers is looked, the first time and each time after."""

from typing import Any

from langgraph.runtime import Runtime

from agent.prompting import Rephrased, ask_model
from agent.run import Run, Step
from agent.state import Draft, State, Way, known
from retrieval.messages import SearchRequest
from retrieval.search import Search
from retrieval.sufficiency import NONE

WIDEST = 500
"""Candidates of each leg when the plan is relaxed."""

WITHIN = 3
"""Documents that a drilldown looks within."""


def planner(state: State, runtime: Runtime[Run]) -> Step:
    """Plan the next search: its filters and its time are the request's, whatever the verdict.

    Raises what a search raises for a request that cannot be answered.
    """
    run, asked = runtime.context, known(state.request)
    way = _way(state, run)
    having_all = dict(asked.having_all or {})
    if way.documents:
        having_all["document_id in"] = list(way.documents)
    wanted: dict[str, Any] = {
        "collection": asked.collection,
        "query": way.query or known(state.question).text,
        "tenant": asked.tenant,
        "top": min(run.settings.agent.hits, run.settings.search.max_top),
        "having_all": having_all or None,
        "having_any": asked.having_any,
        "as_of": _as_of(state, way),
        "ranking": _ranking(way, state),
    }
    search = Search(run.engine, SearchRequest(**wanted))
    search.read()
    search.embed()
    told = search.understood
    facts = {
        "action": way.action,
        "intent": told.intent if told else "",
        "lang": told.lang if told else "",
        "entities": len(told.entities) if told else 0,
        "alpha": search.alpha,
        "as_of": search.plan.as_of.moment and search.plan.as_of.moment.isoformat(),
        "documents": len(way.documents),
        "rephrased": way.query is not None,
        "left_out": sorted(search.left_out),
    }
    update = {"way": way, "search": search, "draft": Draft(), "evidence": NONE, "response": None}
    return Step(update, facts)


def _way(state: State, run: Run) -> Way:
    action = state.verdict.action if state.verdict else None
    if action == "DRILLDOWN" and state.response is not None:
        nearest = dict.fromkeys(hit.document_id for hit in state.response.hits)
        return Way(action, documents=tuple(nearest)[:WITHIN])
    if action == "PIVOT" and run.model is not None and state.question is not None:
        reply = ask_model(run, "rephrase", state.question.text, Rephrased)
        if reply is not None and any(map(str.isalnum, reply.query)):
            longest = run.settings.search.max_query_chars
            return Way(action, query=" ".join(reply.query.split())[:longest])
    question = known(state.question)
    if action == "PIVOT" and question.text != question.asked:
        return Way(action, query=question.asked)  # it may have stood by itself
    return Way(action)


def _as_of(state: State, way: Way) -> str | None:
    """The request's; of other words, the moment that the question's own were understood as."""
    given = state.request.as_of if state.request else None
    if given is not None or way.query is None or state.search is None:
        return given
    moment = state.search.plan.as_of.moment
    return "any" if moment is None else moment.isoformat()


def _ranking(way: Way, state: State) -> dict[str, Any]:
    """What is ranked otherwise. The hotset never answers: it has nothing to compare."""
    ranking: dict[str, Any] = {"hotset": False}
    if way.action is not None:
        ranking["exploration_ratio"] = 0.0
    if way.action == "RELAX":
        ranking |= {"pool": WIDEST, "narrow": False, "facets_weight": 0.0, "memory_weight": 0.0}
    if way.action == "PIVOT" and way.query is None and state.search is not None:
        ranking["alpha"] = 0.8 if state.search.alpha < 0.5 else 0.2
    return ranking
