"""facet_planner: weighs the facet values for the question."""

from langgraph.runtime import Runtime

from callslip.agent.context import RunContext
from callslip.agent.reports import Step
from callslip.agent.state import State, required
from callslip.retrieval.candidates.branches import propose
from callslip.retrieval.run import weigh_facets
from callslip.retrieval.timings import Timings


def facet_planner(state: State, runtime: Runtime[RunContext]) -> Step:
    """Weigh the values of each facet by their vectors, and propose up to three facet branches."""
    plan, timings = required(state.plan), Timings(state.timings)
    weights = weigh_facets(runtime.context.resources, plan, required(state.query), timings)
    proposed = [dict(branch.facets) for branch in propose(weights, plan.where)]
    update = {"facet_weights": weights, "timings": timings}
    return Step(update, {"weights": weights, "proposed": proposed})
