"""What a score is linear in: what each weight of a ranking is multiplied with.

    score = α · vector + (1 − α) · (keyword + p · proximity) + f · facets + m · memory + rest

with α, p, f and m the knobs `alpha`, `proximity`, `facets_weight` and `memory_weight`. So other
weights can be tried on searches that were answered, without asking again (retrieval/tuning.py).
"""

from collections.abc import Sequence
from typing import NamedTuple

from retrieval.knobs import Knobs
from retrieval.scored import Scored
from stores.fusion import Scale

DIGITS = 6


class Basis(NamedTuple):
    """Of one candidate. None: the weight was 0, so that nothing is known of what it would do.

    `vector` and `keyword` are what the legs' scores are worth; both are None, and `rest` has the
    first part of the score, where the fusion is not calibrated, the vector leg had no weight or the
    hotset answered. `rest` has what a reranker added too.
    """

    vector: float | None
    keyword: float | None
    proximity: float | None
    facets: float | None
    memory: float | None
    rest: float


def basis(scored: Scored, alpha: float, knobs: Knobs, scale: Scale | None) -> Basis:
    """The basis of a candidate that was ranked with these weights, rounded.

    `alpha` is the one that held: it is 0 where the embedder did not answer.
    """
    parts = scored.parts
    vector = keyword = None
    rest = parts.get("rerank", 0.0)
    if scale is None or not alpha or knobs.fusion != "calibrated":
        rest += next(iter(parts.values()))  # fused, or of the hotset
    else:
        leg = scored.candidate.keyword
        keyword = scale.keyword(leg.score) if leg else 0.0
        vector = (parts["fused"] - (1 - alpha) * keyword) / alpha
    return Basis(
        _rounded(vector),
        _rounded(keyword),
        _share(parts.get("proximity", 0.0), (1 - alpha) * knobs.proximity),
        _share(parts.get("prior", 0.0), knobs.facets_weight),
        _share(parts.get("memory", 0.0), knobs.memory_weight),
        round(rest, DIGITS),
    )


def bases(scored: Sequence[Scored], alpha: float, knobs: Knobs, scale: Scale | None) -> list[Basis]:
    """The basis of each; 40 take about .2 ms."""
    return [basis(each, alpha, knobs, scale) for each in scored]


def _share(part: float, weight: float) -> float | None:
    return round(part / weight, DIGITS) if weight else None


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, DIGITS)
