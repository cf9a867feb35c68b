"""planner: plans the search of each attempt, its scope and its ranking parameters."""

from typing import Any

from langgraph.runtime import Runtime

from callslip.agent.context import RunContext
from callslip.agent.drafts import Draft
from callslip.agent.prompting import Rephrased, ask_model
from callslip.agent.reports import Step
from callslip.agent.state import State, Variant, required
from callslip.retrieval.evidence.sufficiency import NONE
from callslip.retrieval.messages import SearchRequest
from callslip.retrieval.run import make_plan, make_query
from callslip.retrieval.timings import Timings
from callslip.vocabulary import WITHOUT_EXPLORATION

WIDEST = 500
"""The number of candidates of each retriever after RELAX."""

WITHIN = 3
"""The maximum number of documents that a DRILLDOWN searches."""


def planner(state: State, runtime: Runtime[RunContext]) -> Step:
    """Plan the next search. The request's filters and moment apply to every attempt.

    Raises the errors of `retrieval.query.plan.make_plan` if the request is not valid.
    """
    context, request = runtime.context, required(state.request)
    variant, left_out = _variant(state, context)
    having_all = dict(request.having_all or {})
    if variant.documents:
        having_all["document_id in"] = list(variant.documents)
    fields: dict[str, Any] = {
        "collection": request.collection,
        "query": variant.query or required(state.question).text,
        "tenant": request.tenant,
        "top": min(context.settings.agent.hits, context.settings.search.max_top),
        "having_all": having_all or None,
        "having_any": request.having_any,
        "as_of": _as_of(state, variant),
        "ranking": _ranking(variant, state),
    }
    timings = Timings()
    plan = make_plan(context.resources, SearchRequest(**fields), timings)
    query = make_query(context.resources, plan, timings)
    understood = plan.understood
    facts = {
        "action": variant.action,
        "intent": understood.intent if understood else "",
        "lang": understood.lang if understood else "",
        "entities": len(understood.entities) if understood else 0,
        "alpha": query.alpha,  # null: chosen for the question
        "as_of": plan.as_of.moment and plan.as_of.moment.isoformat(),
        "documents": len(variant.documents),
        "rephrased": variant.query is not None,
        "left_out": sorted(query.left_out),
    }
    update = {
        "variant": variant,
        "plan": plan,
        "query": query,
        "timings": timings,
        "draft": Draft(),
        "evidence": NONE,
        "response": None,
        "model_left_out": left_out,
    }
    return Step(update, facts)


def _variant(state: State, context: RunContext) -> tuple[Variant, str | None]:
    """Return the variant for the last verdict's action, and the reason if the model is left out."""
    action, left_out = state.verdict.action if state.verdict else None, state.model_left_out
    question = required(state.question)
    if action == "DRILLDOWN" and state.response is not None:
        nearest = dict.fromkeys(hit.document_id for hit in state.response.hits)
        return Variant(action, documents=tuple(nearest)[:WITHIN]), left_out
    if action == "PIVOT":
        reply, left_out = ask_model(context, left_out, "rephrase", question.text, Rephrased)
        if reply is not None and any(map(str.isalnum, reply.query)):
            longest = context.settings.search.max_query_chars
            return Variant(action, query=" ".join(reply.query.split())[:longest]), left_out
    return Variant(action), left_out


def _as_of(state: State, variant: Variant) -> str | None:
    """Return the request's moment.

    A rephrased question without a requested moment keeps the moment of the previous plan.
    """
    requested = state.request.as_of if state.request else None
    if requested is not None or variant.query is None or state.plan is None:
        return requested
    moment = state.plan.as_of.moment
    return "any" if moment is None else moment.isoformat()


def _ranking(variant: Variant, state: State) -> dict[str, Any]:
    """Return the changed ranking parameters.

    The hotset is disabled, because its result has no other candidates to compare the best with.
    """
    ranking: dict[str, Any] = {"hotset": False, **WITHOUT_EXPLORATION}
    if variant.action == "RELAX":
        ranking |= {"pool": WIDEST, "narrow": False, "facets_weight": 0.0, "memory_weight": 0.0}
    if variant.action == "PIVOT" and variant.query is None and state.response is not None:
        ranking["alpha"] = 0.8 if state.response.alpha < 0.5 else 0.2
    return ranking
