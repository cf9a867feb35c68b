"""Searches that rank by vector distance alone, as vector stores do."""

from collections.abc import Callable
from typing import Any

from callslip.errors import EmbedderDown, InvalidRequest
from callslip.retrieval.messages import STRANGERS, SearchRequest, SearchResponse
from callslip.vocabulary import WITHOUT_EXPLORATION

NEAREST_FIRST: dict[str, Any] = {
    "alpha": 1.0,
    "fusion": "weighted",
    "as_of": "any",
    "ranking": {
        "proximity": 0,
        "facets_weight": 0,
        "memory_weight": 0,
        **WITHOUT_EXPLORATION,
        "rerank": False,
        "mmr_lambda": 1,
        "narrow": False,
        "hotset": False,
    },
}
"""The fields of a search request that switch off every other ranking signal."""

NO_EMBEDDER = "this installation has no embedder, so a text cannot be searched by its vector"


def nearest(
    search: Callable[[SearchRequest], SearchResponse],
    request: SearchRequest,
    hint: str,
    strangers: str,
) -> SearchResponse:
    """Search by vector distance; raise an error if the search ran without vectors.

    Raises EmbedderDown if the embedder does not answer, InvalidRequest with `hint` if there is no
    embedder, and InvalidRequest with `strangers` if another model made an attached table's vectors.
    """
    response = search(request)
    if "vector" in response.left_out:
        reason = response.left_out["vector"]
        if reason == STRANGERS:
            raise InvalidRequest(
                f"collection {request.collection!r} cannot be searched by meaning: {reason}",
                hint=strangers,
            )
        raise EmbedderDown(reason)
    if not response.alpha:
        raise InvalidRequest(NO_EMBEDDER, hint=hint)
    return response
