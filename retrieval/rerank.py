"""The best candidates read again, with their question, and put in a new order."""

from collections.abc import Sequence
from dataclasses import dataclass

from callslip.errors import RerankerDown, SettingsError
from config.ranking import RerankSettings
from models.reranker import Reranker


@dataclass(frozen=True)
class Reranked:
    """What became of a list of candidates. All by position in that list, but `order`."""

    order: tuple[int, ...]
    """Positions, best first."""
    scores: tuple[float, ...]
    """In the unit of the fused scores; descending along `order` when those were descending."""
    read: tuple[float, ...]
    """The reranker's own scores of the first candidates; empty where it gave none."""
    left_out: str | None
    """Why there are none; None where there are."""


def rerank(
    reranker: Reranker | None,
    query: str,
    passages: Sequence[str],
    fused: Sequence[float],
    settings: RerankSettings,
) -> Reranked:
    """Blend fused scores, descending, with what the reranker says of the first `settings.top`.

    `passages` are the texts of the first candidates; more than are read may be given, and fewer.
    What is not read keeps its score and place behind the rest. Without a reranker, or when it does
    not answer within `settings.timeout_seconds`, the fused order and scores stand as they are.
    """
    head = passages[: settings.top]
    if reranker is None or not head:
        return _as_fused(fused, "there is no reranker" if reranker is None else "nothing to read")
    try:
        read = reranker.scores(query, head, settings.timeout_seconds)
    except (RerankerDown, SettingsError) as error:
        return _as_fused(fused, error.detail)
    scores = [*blend(fused[: len(head)], read, settings.blend_weight), *fused[len(head) :]]
    first = sorted(range(len(head)), key=lambda i: (-scores[i], -settings.blend_weight * read[i]))
    order = (*first, *range(len(head), len(fused)))
    return Reranked(order, tuple(scores), tuple(read), None)


def blend(fused: Sequence[float], read: Sequence[float], weight: float) -> list[float]:
    """The weighted mean of two lists of scores of the same candidates, in the unit of `fused`.

    Each list is first put on 0 to 1, its lowest and its highest score (min-max normalization, Lee
    1997), so that one weight fits rerankers whose scores spread differently; the mean is then put
    between the lowest and the highest fused score. Weight 0 gives `fused` itself. A list whose
    scores are all equal says nothing, and adds the same to all.
    """
    if not weight or not fused:
        return list(fused)
    low, high = min(fused), max(fused)
    pairs = zip(_unit(fused), _unit(read), strict=True)
    return [low + (high - low) * ((1 - weight) * f + weight * r) for f, r in pairs]


def _unit(scores: Sequence[float]) -> list[float]:
    low, high = min(scores), max(scores)
    return [(score - low) / (high - low) if high > low else 0.0 for score in scores]


def _as_fused(fused: Sequence[float], why: str) -> Reranked:
    return Reranked(tuple(range(len(fused))), tuple(fused), (), why)
