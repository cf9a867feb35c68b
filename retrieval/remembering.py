"""Chunk memory in a ranking: what the ledger knows of the candidates, and a chance for others."""

import time
from collections.abc import Sequence

from config.ranking import MemorySettings
from retrieval.knobs import Knobs
from retrieval.memory import Asked, Explored, bonuses, explore, generator, sampled
from retrieval.plan import Plan
from retrieval.scored import Scored, in_order
from stores.ledger import Ledger
from stores.records import Vector


def remember(
    ledger: Ledger,
    settings: MemorySettings,
    plan: Plan,
    scored: Sequence[Scored],
    question: tuple[Vector | None, str],
    *,
    unit: float,
    shown: int,
    trace_id: str,
) -> tuple[list[Scored], Explored | None]:
    """Candidates in their order, best first, with the bonus of what helped before.

    `question` is its vector and intent, `unit` what 1 is worth in scores, `shown` how many hits
    are given. Chance goes by the trace's id. A place that has learned nothing, or a weight of 0,
    gives the very same scores and nothing is tried.
    """
    knobs: Knobs = plan.knobs
    ranked = in_order(scored)
    if not knobs.memory_weight or not ranked:
        return ranked, None
    place = ledger.memory.place(plan.collection, plan.tenant)
    if not place.changes:
        return ranked, None
    ids = [s.chunk_id for s in ranked]
    stats = ledger.memory.of(plan.collection, ids, tenant=plan.tenant)
    vector, intent = question
    found = bonuses(
        {s.chunk_id: s.score for s in ranked},
        stats,
        Asked(vector, intent, place.centre),
        weight=unit * knobs.memory_weight,
        half_life_weeks=settings.half_life_weeks,
        now=time.time(),
    )
    chance = generator(trace_id)
    if settings.exploration == "thompson":
        found = sampled(found, stats, chance)
    ranked = in_order(s.plus("memory", found.get(s.chunk_id, 0.0)) for s in ranked)
    if settings.exploration != "epsilon":
        return ranked, None
    tried = {chunk_id for chunk_id, known in stats.items() if known.tried}
    order, explored = explore(
        [s.chunk_id for s in ranked], tried, shown, knobs.exploration_ratio, chance
    )
    by_id = {s.chunk_id: s for s in ranked}
    return [by_id[chunk_id] for chunk_id in order], explored
