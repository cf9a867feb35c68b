"""Searches that were answered, for tests of what is learned from them."""

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from callslip.retrieval.chance import new_id
from callslip.retrieval.tracing.trace import Question, Trace, TraceHit
from callslip.stores.chunk_stats import Verdict
from callslip.stores.ledger import Ledger, OutcomeRecord
from callslip.stores.records import Vector

EAST: Vector = np.array([1, 0, 0, 0], np.float32)
NORTH: Vector = np.array([0, 1, 0, 0], np.float32)
HALF_LIFE = 6.0


def trace(
    query: str, chunk_ids: Sequence[str], vector: Vector | None = EAST, **given: Any
) -> Trace:
    """A search of `papers` that gave these chunks."""
    question = Question(query, "en", "how-to", ("Leeds", "DPC"), vector)
    hits = tuple(
        TraceHit(chunk_id, "d", rank, rank, 1 / rank, {"fused": 1 / rank})
        for rank, chunk_id in enumerate(chunk_ids, 1)
    )
    plain: dict[str, Any] = {
        "trace_id": new_id(),
        "collection": "papers",
        "tenant": "",
        "stamp": "1",
        "timings": {"legs": 1.5},
        "alpha": 0.4,
        "fusion": "weighted",
    }
    return Trace(question=question, hits=hits, **plain | given)


def say(
    ledger: Ledger,
    trace_id: str,
    chunk_ids: Sequence[str],
    verdict: Verdict = "helpful",
    **given: Any,
) -> OutcomeRecord:
    """Give an outcome of a recorded search."""
    plain = {"half_life_weeks": HALF_LIFE, "now": time.time()}
    return ledger.outcomes.add(trace_id, chunk_ids, verdict, **plain | given)[0]
