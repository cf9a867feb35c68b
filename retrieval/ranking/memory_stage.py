"""The memory stage of the ranking: bonuses from the ledger's statistics, and exploration."""

import time
from collections.abc import Mapping, Sequence

from callslip.config.sections.ranking import MemorySettings
from callslip.retrieval.chance import generator
from callslip.retrieval.query.plan import Plan
from callslip.retrieval.ranking.memory import (
    FIRST,
    Explored,
    QuestionMemory,
    bonuses,
    explore,
    explores,
    sampled,
)
from callslip.retrieval.ranking.scored import Scored, in_order
from callslip.stores.ledger import Ledger
from callslip.stores.records import Vector


def remember(
    ledger: Ledger,
    settings: MemorySettings,
    plan: Plan,
    scored: Sequence[Scored],
    question: tuple[Vector | None, str],
    *,
    unit: float,
) -> tuple[list[Scored], Explored | None]:
    """Add the memory bonuses; return the candidates, best first, and the explored chunk.

    `question` is the pair of vector and intent. `unit` is the score difference that a memory weight
    of 1 stands for. `plan.chance` is the random seed. If the collection or tenant has no feedback
    on what the reader may read, or the weight is 0, no score changes and no chunk is explored.
    """
    parameters = plan.parameters
    ratio = _ratio(plan)
    ranked = in_order(scored)
    if not parameters.memory_weight or not ranked:
        return ranked, None
    scope = ledger.memory.scope(plan.collection, plan.tenant)
    if not scope.changes or not ledger.memory.is_known(plan.collection, tenant=plan.tenant):
        return ranked, None
    ids = [s.chunk_id for s in ranked]
    stats = ledger.memory.of(plan.collection, ids, tenant=plan.tenant)
    vector, intent = question
    bonus_of = bonuses(
        {s.chunk_id: s.score for s in ranked},
        stats,
        QuestionMemory(vector, intent, scope.centre),
        weight=unit * parameters.memory_weight,
        half_life_weeks=settings.half_life_weeks,
        now=time.time(),
    )
    chance = generator(plan.chance)
    before = {s.chunk_id: s for s in ranked}
    ranked = _with(bonus_of, ranked)
    if settings.exploration == "thompson" and explores(plan.top, ratio, chance):
        first, rest = ranked[:FIRST], ranked[FIRST:]
        drawn = sampled(bonus_of, stats, chance)
        return [*first, *_with(drawn, [before[s.chunk_id] for s in rest])], None
    if settings.exploration != "epsilon":
        return ranked, None
    tried = {chunk_id for chunk_id, known in stats.items() if known.tried}
    order, explored = explore([s.chunk_id for s in ranked], tried, plan.top, ratio, chance)
    by_id = {s.chunk_id: s for s in ranked}
    return [by_id[chunk_id] for chunk_id in order], explored


def _ratio(plan: Plan) -> float:
    """The share of searches that explore: none where MMR or parents change the order afterwards."""
    parameters = plan.parameters
    if parameters.mmr_lambda < 1 or plan.request.parent_strategy == "replace":
        return 0.0
    return parameters.exploration_ratio


def _with(bonus_of: Mapping[str, float], scored: Sequence[Scored]) -> list[Scored]:
    return in_order(s.plus("memory", bonus_of.get(s.chunk_id, 0.0)) for s in scored)
