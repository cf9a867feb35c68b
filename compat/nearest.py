"""Searches in which nothing but the distance of vectors ranks, as vector stores are asked."""

from collections.abc import Callable
from typing import Any

from callslip.errors import EmbedderDown, InvalidRequest
from retrieval.messages import STRANGERS, SearchRequest, SearchResponse

NEAREST_FIRST: dict[str, Any] = {
    "alpha": 1.0,
    "fusion": "weighted",
    "as_of": "any",
    "ranking": {
        "proximity": 0,
        "facets_weight": 0,
        "memory_weight": 0,
        "exploration_ratio": 0,
        "rerank": False,
        "mmr_lambda": 1,
        "narrow": False,
        "hotset": False,
    },
}
"""Nothing but the distance ranks."""

NO_EMBEDDER = "this installation has no embedder, so a text cannot be searched by its vector"


def nearest(
    search: Callable[[SearchRequest], SearchResponse],
    request: SearchRequest,
    hint: str,
    strangers: str,
) -> SearchResponse:
    """Search by vectors; EmbedderDown, or InvalidRequest with a hint, where there are none.

    `strangers` is the hint where they are those of an attached table's own model.
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
