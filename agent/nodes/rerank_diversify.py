"""rerank_diversify: ranks the passages and measures the evidence of the best ones."""

from langgraph.runtime import Runtime

from callslip.agent.context import RunContext
from callslip.agent.reports import Step
from callslip.agent.state import State, required
from callslip.retrieval.candidates.lookup import calibration_of
from callslip.retrieval.evidence.extracts import Target
from callslip.retrieval.evidence.reading import readings
from callslip.retrieval.evidence.rivals import agreeing
from callslip.retrieval.evidence.sufficiency import Searched, evidence, weighed
from callslip.retrieval.run import rank, respond
from callslip.retrieval.timings import Timings
from callslip.vocabulary import SURE

POOLED = 3
"""The number of passages of the best document that count as evidence after a DRILLDOWN."""


def rerank_diversify(state: State, runtime: Runtime[RunContext]) -> Step:
    """Rank the candidates; set the response with `agent.hits` hits, and the evidence."""
    resources, timings = runtime.context.resources, Timings(state.timings)
    plan, query, retrieved = required(state.plan), required(state.query), required(state.retrieved)
    ranked = rank(resources, plan, query, retrieved, timings)
    response = respond(resources, plan, query, retrieved, ranked, timings)
    calibration = calibration_of(resources, plan, retrieved)
    store = resources.store_of(plan.record.store)
    searched = Searched(store, plan, query, retrieved, ranked, calibration)
    hits = response.hits
    of_nearest = [hit for hit in hits if hit.document_id == hits[0].document_id]
    cited = of_nearest[: POOLED if state.variant.action == "DRILLDOWN" else 1]
    reader, text = resources.reader, required(state.question).text
    read = readings(reader, text, hits) if reader is not None else {}
    ids = [hit.chunk_id for hit in cited]
    measured = evidence(searched, ids, read)
    if measured.confidence < SURE:
        target = Target(text, weighed(calibration, query.terms), None)
        same = agreeing(hits, target, resources.analyzer_of(plan.record), resources.embedder, read)
        if same:
            measured = evidence(searched, ids, read, same)
    facts = {
        "hits": len(hits),
        "scores": [hit.score for hit in hits[:5]],
        "explored": ranked.explored and ranked.explored.chunk_id,
        "content": measured.content,
        "coverage": measured.coverage,
        "margin": measured.margin,
        "read": measured.read,
        "confidence": round(measured.confidence, 4),
        "left_out": sorted(response.left_out),
    }
    update = {"searched": searched, "response": response, "readings": read}
    update |= {"evidence": measured, "timings": timings}
    return Step(update, facts)
