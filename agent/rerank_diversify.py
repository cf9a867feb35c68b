"""rerank_diversify: the passages in their order, and what speaks for the best of them."""

from langgraph.runtime import Runtime

from agent.run import Run, Step
from agent.state import State, known
from retrieval.sufficiency import evidence

POOLED = 3
"""Passages of the nearest document whose words count together after a drilldown."""


def rerank_diversify(state: State, runtime: Runtime[Run]) -> Step:
    """Rerank with soft prior, chunk memory and MMR; keep the first `agent.hits`."""
    search = known(state.search)
    response = search.rank()
    hits = response.hits
    together = [hit for hit in hits if hit.document_id == hits[0].document_id]
    cited = together[: POOLED if state.way.action == "DRILLDOWN" else 1]
    found = evidence(search, [hit.chunk_id for hit in cited])
    facts = {
        "hits": len(hits),
        "scores": [hit.score for hit in hits[:5]],
        "explored": search.explored and search.explored.chunk_id,
        "content": found.content,
        "coverage": found.coverage,
        "margin": found.margin,
        "confidence": round(found.confidence, 4),
        "left_out": sorted(response.left_out),
    }
    return Step({"response": response, "evidence": found}, facts)
