"""facet_planner: which facets the question is about."""

from langgraph.runtime import Runtime

from agent.run import Run, Step
from agent.state import State, known
from retrieval.branches import propose


def facet_planner(state: State, runtime: Runtime[Run]) -> Step:
    """Weigh the values of each facet by their vectors, and propose one to three sets of them."""
    search = known(state.search)
    search.weigh()
    sets = propose(search.weights, search.plan.where)
    return Step({}, {"weights": search.weights, "proposed": [dict(s.facets) for s in sets]})
