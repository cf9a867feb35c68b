"""Ranking parameters: from the request, else from the collection, else from the settings."""

from typing import Any

from pydantic import ConfigDict

from callslip.config.settings import Settings
from callslip.messages.options import Ranking
from callslip.messages.ranking import RankingMessage
from callslip.retrieval.messages import SearchRequest


class RankingParameters(RankingMessage):
    """The ranking parameters of a search; for their meaning see `messages.options.Ranking`."""

    model_config = ConfigDict(frozen=True)


def ranking_parameters(
    settings: Settings, collection: Ranking, request: SearchRequest
) -> RankingParameters:
    """Return the ranking parameters of a request."""
    values: dict[str, Any] = {
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
    values |= collection.model_dump(exclude_none=True)
    if request.ranking is not None:
        values |= request.ranking.model_dump(exclude_none=True)
    values |= request.model_dump(include={"alpha", "fusion"}, exclude_none=True)
    return RankingParameters(**values)
