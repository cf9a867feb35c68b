"""The numbers that a search goes by: the request's, else the collection's, else the settings'."""

from typing import Any

from pydantic import BaseModel

from config.settings import Settings
from retrieval.messages import SearchRequest
from stores.fusion import Fusion
from stores.options import Ranking


class Knobs(BaseModel, frozen=True):
    """See `stores.options.Ranking` and the settings of the same names."""

    alpha: float
    fusion: Fusion
    pool: int
    proximity: float
    facets_weight: float
    facets_top: int
    memory_weight: float
    exploration_ratio: float
    rerank: bool
    rerank_top: int
    mmr_lambda: float
    narrow: bool
    hotset: bool


def knobs(settings: Settings, collection: Ranking, request: SearchRequest) -> Knobs:
    """What holds for this request."""
    wanted: dict[str, Any] = {
        "alpha": settings.search.alpha,
        "fusion": settings.search.fusion,
        "pool": settings.search.pool,
        "proximity": settings.search.proximity,
        "facets_weight": settings.facets.weight,
        "facets_top": settings.facets.top_per_facet,
        "memory_weight": settings.memory.weight,
        "exploration_ratio": settings.memory.exploration_ratio,
        "rerank": settings.rerank.provider != "none",
        "rerank_top": settings.rerank.top,
        "mmr_lambda": settings.rerank.mmr_lambda,
        "narrow": settings.search.narrow,
        "hotset": settings.search.hotset > 0,
    }
    wanted |= collection.model_dump(exclude_none=True)
    if request.ranking is not None:
        wanted |= request.ranking.model_dump(exclude_none=True)
    wanted |= request.model_dump(include={"alpha", "fusion"}, exclude_none=True)
    return Knobs(**wanted)
