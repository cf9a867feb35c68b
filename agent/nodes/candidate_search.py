"""candidate_search: searches with both retrievers."""

from langgraph.runtime import Runtime

from callslip.agent.context import RunContext
from callslip.agent.reports import Step
from callslip.agent.state import State, required
from callslip.retrieval.run import corpus_version, find_candidates
from callslip.retrieval.timings import Timings


def candidate_search(state: State, runtime: Runtime[RunContext]) -> Step:
    """Search the whole collection; each retriever returns at most `search.pool` candidates."""
    plan, query, timings = required(state.plan), required(state.query), Timings(state.timings)
    resources = runtime.context.resources
    version = corpus_version(resources, plan)
    first = find_candidates(resources, plan, query, version, timings)
    update = {"candidates": first, "timings": timings}
    return Step(update, {"candidates": len(first.candidates)})
