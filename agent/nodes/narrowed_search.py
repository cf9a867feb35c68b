"""narrowed_search: adds the candidates of the chosen facet branch and keeps the live ones."""

from langgraph.runtime import Runtime

from callslip.agent.context import RunContext
from callslip.agent.reports import Step
from callslip.agent.state import State, required
from callslip.retrieval.run import narrow
from callslip.retrieval.timings import Timings


def narrowed_search(state: State, runtime: Runtime[RunContext]) -> Step:
    """Count the branches in parallel, search one (80 to 300 chunks if possible), and merge."""
    timings = Timings(state.timings)
    retrieved = narrow(
        runtime.context.resources,
        required(state.plan),
        required(state.query),
        required(state.candidates),
        state.facet_weights,
        timings,
    )
    counts = [{"facets": dict(b.facets), "chunks": b.count} for b in retrieved.branches]
    chosen = dict(retrieved.branch.facets) if retrieved.branch else None
    facts = {"branches": counts, "chosen": chosen, "live": len(retrieved.live)}
    return Step({"retrieved": retrieved, "timings": timings}, facts)
