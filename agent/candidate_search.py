"""candidate_search: what both legs find."""

from langgraph.runtime import Runtime

from agent.run import Run, Step
from agent.state import State, known


def candidate_search(state: State, runtime: Runtime[Run]) -> Step:
    """Look for candidates in the whole collection, at most `search.pool` of each leg."""
    search = known(state.search)
    search.look()
    found = search.lookup
    return Step({}, {"candidates": len(found.first) if found else 0})
