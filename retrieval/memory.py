"""Chunk memory: what helped with such questions before ranks a little higher (spec 003 §6).

    bonus = λ · clip(r · (u + r + i), 0, 1)

u is the decayed utility on a scale that ends at 1, i the share of wins with the question's intent,
r how like the question is to those that the chunk answered. The specification has the bare cosine
in the place of r; but any two questions have a cosine of .75 or more with e5, so it says little:
r is 0 for what is merely of the same kind (see `likeness`), and then so is the bonus.

A chunk is lifted up to the best one, not past it, unless the question is nearly one that it has
answered: what the legs found best for this question is evidence too. docs/quality.md has what that
is worth.
"""

import hashlib
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import numpy as np

from stores.chunk_stats import ChunkStats, decay
from stores.records import Vector

__all__ = ["Asked", "Explored", "bonuses", "decay", "explore", "generator", "likeness", "sampled"]

FEWEST_QUESTIONS = 20
"""Of which a centre is the mean; with fewer it would be the questions themselves."""

CENTRED, RAW = (0.40, 0.65), (0.92, 0.97)
"""Cosines from which a question is like those of a chunk, and as like as need be: less the centre,
and where no centre is known. Of the pairs of questions of en_stackfaq with the same answer 79 %
have a centred cosine above .40, of the others .6 %; above a bare .92 it is 58 % and .2 %."""

CENTRED_SAME, RAW_SAME = (0.85, 1.0), (0.97, 1.0)
"""The same for questions that are nearly one: their chunk may pass the best one."""

UP_TO = 0.7
"""Of the way to the best one that any bonus may lift a chunk."""

INTENT = 0.1
"""The bonus of a chunk all of whose wins had the question's intent."""

REACH = 4
"""A chunk that is tried comes from so many times what is shown."""


@dataclass(frozen=True)
class Asked:
    """A question as memory sees it. `centre` is the mean of the collection's questions, or None.

    Both vectors have shape (dimension,); without `vector` nothing is remembered.
    """

    vector: Vector | None
    intent: str = ""
    centre: Vector | None = None


@dataclass(frozen=True)
class Explored:
    """A chunk that was lifted to be tried: to which place (from 1), and how likely that was."""

    chunk_id: str
    place: int
    probability: float


def bonuses(
    scores: Mapping[str, float],
    stats: Mapping[str, ChunkStats],
    asked: Asked,
    *,
    weight: float,
    half_life_weeks: float,
    now: float,
) -> dict[str, float]:
    """The bonus of each candidate that has one, above 0 and at most `weight` (λ_mem).

    `scores` are those of all candidates before memory, the greater the better. Empty at weight 0,
    without a vector and where nothing is known: the ranking is then the very same.
    """
    if weight <= 0 or asked.vector is None or not scores:
        return {}
    length = asked.vector.shape[0]
    known = [stats[i] for i in scores if i in stats and stats[i].dimension == length]
    rows = [centroid for each in known if (centroid := each.centroid) is not None]
    if not rows:
        return {}
    best = max(scores.values())
    likes = zip(known, *likeness(asked.vector, asked.centre, np.stack(rows)), strict=True)
    found = {}
    for each, like, same in likes:
        if like <= 0:
            continue
        u = each.utility_now(now, half_life_weeks)
        u /= 1 + abs(u)
        intent = INTENT * each.intents.get(asked.intent, 0) / max(each.useful, 1)
        bonus = weight * min(max(like * (u + like + intent), 0.0), 1.0)
        bonus = min(bonus, UP_TO * (best - scores[each.chunk_id]) + weight * same)
        if bonus > 0:
            found[each.chunk_id] = bonus
    return found


def likeness(
    vector: Vector, centre: Vector | None, centroids: Vector
) -> tuple[list[float], list[float]]:
    """How like a question is to those of each centroid, and whether nearly the same, in [0, 1].

    Centroids have the shape (chunks, dimension). Cosines are taken less the centre of all questions
    of the place: what questions have in common (the language, the subject, the embedder's own bias)
    makes none of them alike.
    """
    question = vector / max(float(np.linalg.norm(vector)), 1e-12)
    if centre is not None and centre.shape == question.shape:
        cosines = _cosines(centroids - centre, question - centre)
        return _ramp(cosines, CENTRED), _ramp(cosines, CENTRED_SAME)
    cosines = _cosines(centroids, question)
    return _ramp(cosines, RAW), _ramp(cosines, RAW_SAME)


def generator(trace_id: str) -> np.random.Generator:
    """Chance that is the same each time the trace is replayed."""
    seed = hashlib.blake2b(trace_id.encode(), digest_size=8).digest()
    return np.random.default_rng(int.from_bytes(seed, "big"))


def explore(
    order: Sequence[str],
    tried: AbstractSet[str],
    shown: int,
    ratio: float,
    chance: np.random.Generator,
) -> tuple[list[str], Explored | None]:
    """Epsilon: in a share `ratio` of searches one candidate takes the last place that is shown.

    It is drawn evenly from those below what is shown, down to REACH times as many, of which nobody
    ever said anything. The order is the same where none is drawn; it costs the last hit its place.
    """
    given = list(order)
    if chance.random() >= ratio or shown < 1:
        return given, None
    fresh = [chunk_id for chunk_id in given[shown : REACH * shown] if chunk_id not in tried]
    if not fresh:
        return given, None
    chosen = fresh[int(chance.integers(len(fresh)))]
    given.remove(chosen)
    given.insert(shown - 1, chosen)
    return given, Explored(chosen, shown, ratio / len(fresh))


def sampled(
    given: Mapping[str, float], stats: Mapping[str, ChunkStats], chance: np.random.Generator
) -> dict[str, float]:
    """Thompson sampling: each bonus times a draw of Beta(1 + useful, 1 + useless).

    What was seldom tried is uncertain and gives way now and then, so that others can show what they
    are worth. A bonus never grows.
    """
    return {
        chunk_id: given[chunk_id]
        * float(chance.beta(1 + stats[chunk_id].useful, 1 + stats[chunk_id].useless))
        for chunk_id in sorted(given)
    }


def _cosines(rows: Vector, vector: Vector) -> Vector:
    lengths = np.linalg.norm(rows, axis=1) * float(np.linalg.norm(vector))
    found: Vector = rows @ vector / np.maximum(lengths, 1e-12)
    return found


def _ramp(values: Vector, between: tuple[float, float]) -> list[float]:
    low, high = between
    return [float(value) for value in np.clip((values - low) / (high - low), 0, 1)]
