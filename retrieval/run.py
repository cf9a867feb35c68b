"""Runs a search, from the request to its response and its trace. Independent of Celery and HTTP.

plan → query → candidates → facet weights → retrieved → ranked → response: each stage is a function
that takes and returns frozen values, so that the agent can run the stages as nodes of its graph.
"""

from callslip.retrieval.candidates.lookup import (
    corpus_version,
    find_candidates,
    narrow,
    of_hotset,
    respell,
    weigh_facets,
)
from callslip.retrieval.candidates.not_in_force import count_not_in_force
from callslip.retrieval.candidates.resources import Resources
from callslip.retrieval.messages import SearchRequest, SearchResponse
from callslip.retrieval.query import plan as planning
from callslip.retrieval.query import question
from callslip.retrieval.query.plan import Plan
from callslip.retrieval.query.question import Query
from callslip.retrieval.ranking.response import respond
from callslip.retrieval.ranking.stage import rank
from callslip.retrieval.timings import Timings
from callslip.retrieval.tracing.build import trace_of
from callslip.retrieval.tracing.trace import Trace

__all__ = [
    "corpus_version",
    "count_not_in_force",
    "find_candidates",
    "make_plan",
    "make_query",
    "narrow",
    "rank",
    "respond",
    "search",
    "traced",
    "weigh_facets",
]


def search(resources: Resources, request: SearchRequest) -> SearchResponse:
    """Answer a question.

    Raises EmptyQuery, QueryTooLong, InvalidFilter, InvalidRequest, CollectionNotFound,
    TenantNotFound, VectorNotFound, MetricNotIndexed and StoreCannot for an invalid request, and
    StoreDown if the store does not answer. An embedder or reranker that does not answer is left
    out; `left_out` of the response then has the reason.
    """
    return traced(resources, request)[0]


def traced(resources: Resources, request: SearchRequest) -> tuple[SearchResponse, Trace]:
    """Search as `search` does; also return the trace of the search."""
    with resources.ledger.one_reader():
        return _traced(resources, request, Timings())


def _traced(
    resources: Resources, request: SearchRequest, timings: Timings
) -> tuple[SearchResponse, Trace]:
    plan = make_plan(resources, request, timings)
    query = _as_written(resources, plan, timings)
    candidates = of_hotset(resources, plan, query, timings)
    if candidates is None:
        version = corpus_version(resources, plan)
        query = respell(resources, plan, query, version, timings)
        candidates = find_candidates(resources, plan, query, version, timings)
    weights = weigh_facets(resources, plan, query, timings)
    retrieved = narrow(resources, plan, query, candidates, weights, timings)
    ranked = rank(resources, plan, query, retrieved, timings)
    response = respond(resources, plan, query, retrieved, ranked, timings)
    if request.count_not_in_force or not response.hits:
        with timings.stage("not_in_force"):
            count = count_not_in_force(resources, plan, query, retrieved)
        response = response.model_copy(update={"not_in_force": count, "timings": dict(timings)})
    return response, trace_of(plan, query, retrieved, ranked, response)


def make_plan(resources: Resources, request: SearchRequest, timings: Timings) -> Plan:
    """Check a request and analyze its question; raises the errors of `retrieval.query.plan`."""
    its = resources
    return planning.make_plan(
        its.settings, its.ledger, its.store_of, its.recognizer, request, timings
    )


def make_query(resources: Resources, plan: Plan, timings: Timings) -> Query:
    """Analyze and embed the question of a plan, in the spelling of the collection's passages."""
    query = _as_written(resources, plan, timings)
    return respell(resources, plan, query, corpus_version(resources, plan), timings)


def _as_written(resources: Resources, plan: Plan, timings: Timings) -> Query:
    its = resources
    embedder = its.embedder_of(plan.record, plan.vector_name)
    return question.make_query(plan, its.analyzer_of(plan.record), embedder, its.questions, timings)
