"""Chunk memory: a bonus for chunks that helped with similar questions before (spec 003 §6).

    bonus = λ · clip(r · (u + n · (r + i)), 0, 1)

u is the decayed utility on a scale that ends at 1, i the share of wins with the question's intent
times `INTENT`, r the similarity of the question to the questions that the chunk answered, and n the
wins minus the losses as a share of all outcomes, at least 0. The specification has no n, so that a
chunk with one win and one loss would have a bonus. The specification uses the plain cosine for r.
With e5 any two questions have a cosine of at least .75, so here r is 0 for questions that are
merely of the same kind (see `likeness`); the bonus is then 0.

The bonus does not lift a chunk past the best candidate unless the question is nearly the mean of
those that the chunk answered, because the retrievers' order is evidence too. docs/quality.md has
the measured effect.
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import numpy as np

from callslip.stores.chunk_stats import ChunkStats
from callslip.stores.records import Vector

__all__ = [
    "FIRST",
    "Explored",
    "QuestionMemory",
    "bonuses",
    "explore",
    "explores",
    "likeness",
    "sampled",
]

FEWEST_QUESTIONS = 20
"""The minimum number of questions for a mean vector (centre) of a collection's questions."""

CENTRED, RAW = (0.40, 0.65), (0.92, 0.97)
"""Cosines at which the similarity is 0 and 1: of centred vectors (the centre is subtracted), and of
raw vectors if no centre is known. In en_stackfaq 79 % of the question pairs with the same answer
and .6 % of the other pairs have a centred cosine above .40; 58 % and .2 % have a raw cosine above
.92."""

CENTRED_SAME, RAW_SAME = (0.85, 1.0), (0.97, 1.0)
"""The same cosines for nearly identical questions, whose chunk may pass the best candidate."""

UP_TO = 0.7
"""The share of the distance to the best score that a bonus may cover."""

INTENT = 0.1
"""The value of i if all wins of a chunk had the question's intent."""

FIRST = 3
"""The number of ranks that exploration never changes."""

FEWEST_SHOWN = 5
"""With fewer hits exploration does nothing."""

REACH = 4
"""An explored chunk comes from the first REACH × `shown` candidates."""


@dataclass(frozen=True)
class QuestionMemory:
    """The question as input of chunk memory.

    `centre` is the mean vector of the collection's questions, or None. Both vectors have the shape
    (dimension,). Without `vector` no candidate gets a bonus.
    """

    vector: Vector | None
    intent: str = ""
    centre: Vector | None = None


@dataclass(frozen=True)
class Explored:
    """An explored chunk: its new rank `position` (from 1) and the probability of the choice."""

    chunk_id: str
    position: int
    probability: float


def bonuses(
    scores: Mapping[str, float],
    stats: Mapping[str, ChunkStats],
    question: QuestionMemory,
    *,
    weight: float,
    half_life_weeks: float,
    now: float,
) -> dict[str, float]:
    """Return the positive bonuses by chunk id, each at most `weight` (λ_mem).

    `scores` has the scores of all candidates before memory; greater is better. `now` is in seconds
    since 1970. The result is empty, so that the ranking does not change, if `weight` is 0, the
    question has no vector, or no candidate has statistics.
    """
    if weight <= 0 or question.vector is None or not scores:
        return {}
    length = question.vector.shape[0]
    known = [stats[i] for i in scores if i in stats and stats[i].dimension == length]
    rows = [centroid for each in known if (centroid := each.centroid) is not None]
    if not rows:
        return {}
    best = max(scores.values())
    likes = zip(known, *likeness(question.vector, question.centre, np.stack(rows)), strict=True)
    bonus_of = {}
    for each, like, same in likes:
        if like <= 0:
            continue
        u = each.utility_now(now, half_life_weeks)
        u /= 1 + abs(u)
        net = max(each.useful - each.useless, 0) / max(each.useful + each.useless, 1)
        intent = INTENT * each.intents.get(question.intent, 0) / max(each.useful, 1)
        bonus = weight * min(max(like * (u + net * (like + intent)), 0.0), 1.0)
        bonus = min(bonus, UP_TO * (best - scores[each.chunk_id]) + weight * same)
        if bonus > 0:
            bonus_of[each.chunk_id] = bonus
    return bonus_of


def likeness(
    vector: Vector, centre: Vector | None, centroids: Vector
) -> tuple[list[float], list[float]]:
    """Return two values in [0, 1] per centroid: similarity to the question, and near-identity.

    `centroids` has the shape (chunks, dimension). The centre of all questions of the collection or
    tenant is subtracted before the cosine, because properties that all questions share (language,
    subject, bias of the embedder) are no evidence of similarity.
    """
    question = vector / max(float(np.linalg.norm(vector)), 1e-12)
    if centre is not None and centre.shape == question.shape:
        cosines = _cosines(centroids - centre, question - centre)
        return _ramp(cosines, CENTRED), _ramp(cosines, CENTRED_SAME)
    cosines = _cosines(centroids, question)
    return _ramp(cosines, RAW), _ramp(cosines, RAW_SAME)


def explores(shown: int, ratio: float, chance: np.random.Generator) -> bool:
    """Whether a search that shows `shown` hits explores: a share `ratio` of searches does.

    A search of fewer than FEWEST_SHOWN hits never does, so that the first FIRST ranks are the best.
    """
    return shown >= FEWEST_SHOWN and float(chance.random()) < ratio


def explore(
    order: Sequence[str],
    tried: AbstractSet[str],
    shown: int,
    ratio: float,
    chance: np.random.Generator,
) -> tuple[list[str], Explored | None]:
    """Epsilon exploration: in a share `ratio` of searches, show one candidate as the last hit.

    The candidate is drawn uniformly from the ranks `shown` + 1 to REACH × `shown`, among the chunks
    without feedback (not in `tried`). The last hit then moves below the hits. If no candidate is
    drawn, the order does not change.
    """
    lifted = list(order)
    if not explores(shown, ratio, chance):
        return lifted, None
    fresh = [chunk_id for chunk_id in lifted[shown : REACH * shown] if chunk_id not in tried]
    if not fresh:
        return lifted, None
    chosen = fresh[int(chance.integers(len(fresh)))]
    lifted.remove(chosen)
    lifted.insert(shown - 1, chosen)
    return lifted, Explored(chosen, shown, ratio / len(fresh))


def sampled(
    bonus_of: Mapping[str, float], stats: Mapping[str, ChunkStats], chance: np.random.Generator
) -> dict[str, float]:
    """Thompson sampling: multiply each bonus by a draw from Beta(1 + useful, 1 + useless).

    The draw varies most for a chunk with little feedback, so other chunks sometimes rank above it
    and get feedback. A bonus never grows.
    """
    return {
        chunk_id: bonus_of[chunk_id]
        * float(chance.beta(1 + stats[chunk_id].useful, 1 + stats[chunk_id].useless))
        for chunk_id in sorted(bonus_of)
    }


def _cosines(rows: Vector, vector: Vector) -> Vector:
    lengths = np.linalg.norm(rows, axis=1) * float(np.linalg.norm(vector))
    cosines: Vector = rows @ vector / np.maximum(lengths, 1e-12)
    return cosines


def _ramp(values: Vector, between: tuple[float, float]) -> list[float]:
    low, high = between
    return [float(value) for value in np.clip((values - low) / (high - low), 0, 1)]
