"""Reranking: blends the fused scores of the best candidates with those of a reranker."""

from collections.abc import Sequence
from dataclasses import dataclass

from callslip.config.sections.ranking import RerankSettings
from callslip.errors import RerankerDown, SettingsError
from callslip.models.rerankers.contract import Reranker


@dataclass(frozen=True)
class Reranked:
    """The result of reranking. All fields but `order` and `left_out` are by input position."""

    order: tuple[int, ...]
    """Positions, best first."""
    scores: tuple[float, ...]
    """In the unit of the fused scores; descending along `order` when those were descending."""
    read: tuple[float, ...]
    """The reranker's own scores of the first candidates; empty if the reranker was left out."""
    left_out: str | None
    """The reason why the reranker was left out; None if it returned scores."""


def rerank(
    reranker: Reranker | None,
    query: str,
    passages: Sequence[str],
    fused: Sequence[float],
    settings: RerankSettings,
) -> Reranked:
    """Blend descending fused scores with the reranker's scores of the first `settings.top`.

    `passages` has the texts of the first candidates; it may be longer than `settings.top` or
    shorter. Candidates that the reranker does not read keep their scores and follow the others. If
    there is no reranker, or it does not answer within `settings.timeout_seconds`, order and scores
    do not change.
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
    """Return the weighted mean of two score lists of the same candidates, in the unit of `fused`.

    Each list is first scaled to 0 to 1 (min-max normalization, Lee 1997), so that one weight fits
    rerankers with different score ranges. The mean is then scaled to the range of the fused scores.
    Weight 0 returns `fused`. A list of equal scores adds the same value to every candidate.
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
