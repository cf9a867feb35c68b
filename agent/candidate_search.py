"""candidate_search: what both legs find."""

from langgraph.runtime import Runtime

from agent.run import Run, Step
from agent.state import State


def candidate_search(state: State, runtime: Runtime[Run]) -> Step:
    """Look for candidates in the whole collection, at most `search.pool` of each leg."""
    assert state.search is not None
    state.search.look()
    found = state.search.lookup
    return Step({}, {"candidates": len(found.first) if found else 0})
