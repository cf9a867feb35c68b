"""narrowed_search: the candidates with those of the branch that was chosen, as far as live."""

from langgraph.runtime import Runtime

from agent.run import Run, Step
from agent.state import State, known


def narrowed_search(state: State, runtime: Runtime[Run]) -> Step:
    """Count the branches side by side, search the narrowest of 80 to 300 chunks, merge."""
    search = known(state.search)
    search.narrow()
    found = search.found
    counts = [{"facets": dict(b.facets), "chunks": b.count} for b in found.branches]
    chosen = dict(found.branch.facets) if found.branch else None
    facts = {"branches": counts, "chosen": chosen, "live": len(found.live)}
    return Step({}, facts)
