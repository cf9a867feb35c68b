"""The statistics of a chunk from the outcomes of searches, and their arithmetic.

An outcome can be added and withdrawn without rounding errors: counts are integers, and so are the
sums of question vectors, in units of 2**-30. So neither order nor withdrawal changes the sums.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from callslip.stores.records import Vector
from callslip.vocabulary import Verdict as Verdict

WEEK = 604_800.0

UNIT = 1 << 30
"""Components of unit vectors are integers in units of 1/UNIT: exact to 1e-9, for 8e9 questions."""

Sum = npt.NDArray[np.int64]


def decay(value: float, weeks: float, half_life: float) -> float:
    """`value · 0.5^(weeks / half_life)` (specification 003 §6.2); never more than the value."""
    return float(value * 0.5 ** (max(weeks, 0.0) / half_life))


@dataclass(frozen=True)
class Win:
    """An outcome for one chunk: its time, its question, and whether it is positive or negative."""

    at: float
    useful: bool
    intent: str = ""
    entities: Sequence[str] = ()
    vector: Vector | None = None


@dataclass(frozen=True)
class ChunkStats:
    """The statistics of a chunk. `utility` is its value at the time `utility_at`, in wins.

    `question_sum` has shape (dimension,) in units of 1/UNIT; None if no question had a vector.
    """

    chunk_id: str
    document_id: str
    useful: int = 0
    useless: int = 0
    last_useful_at: float | None = None
    utility: float = 0.0
    utility_at: float = 0.0
    intents: Mapping[str, int] = field(default_factory=dict)
    entities: Mapping[str, int] = field(default_factory=dict)
    questions: int = 0
    question_sum: Sum | None = None

    @property
    def tried(self) -> bool:
        """Whether the chunk has any outcome, useful or useless."""
        return self.useful + self.useless > 0

    @property
    def centroid(self) -> Vector | None:
        """The mean of the unit vectors of the questions that the chunk answered.

        Shape (dimension,).
        """
        if self.question_sum is None:
            return None
        mean: Vector = (self.question_sum / (self.questions * UNIT)).astype(np.float32)
        return mean

    def utility_now(self, now: float, half_life_weeks: float) -> float:
        """Wins minus losses with exponential decay: one half-life halves the weight of each."""
        return decay(self.utility, (now - self.utility_at) / WEEK, half_life_weeks)

    def add(self, win: Win, now: float, half_life_weeks: float) -> tuple["ChunkStats", bool]:
        """The statistics with one more outcome, and whether its question's vector was added."""
        added = self._moved(win, 1, now, half_life_weeks)
        whole = whole_of(win.vector) if win.useful else None
        if whole is None or (self.question_sum is not None and len(whole) != self.dimension):
            return added, False
        total = whole if self.question_sum is None else self.question_sum + whole
        return replace(added, questions=self.questions + 1, question_sum=total), True

    def take(
        self, win: Win, now: float, half_life_weeks: float, *, with_vector: bool
    ) -> "ChunkStats":
        """The statistics without this outcome, and without its vector if that was added."""
        left = self._moved(win, -1, now, half_life_weeks)
        whole = whole_of(win.vector)
        if not with_vector or whole is None or self.question_sum is None:
            return left
        if self.questions == 1:
            return replace(left, questions=0, question_sum=None)
        rest = self.question_sum - whole
        return replace(left, questions=self.questions - 1, question_sum=rest)

    @property
    def dimension(self) -> int:
        """The dimension of the questions' vectors; 0 if no question had a vector."""
        return 0 if self.question_sum is None else len(self.question_sum)

    def _moved(self, win: Win, by: int, now: float, half_life_weeks: float) -> "ChunkStats":
        worth = by if win.useful else -by
        utility = self.utility_now(now, half_life_weeks) + decay(
            worth, (now - win.at) / WEEK, half_life_weeks
        )
        if not win.useful:
            return replace(self, useless=self.useless + by, utility=utility, utility_at=now)
        last = max(self.last_useful_at or win.at, win.at) if by > 0 else self.last_useful_at
        return replace(
            self,
            useful=self.useful + by,
            last_useful_at=last if self.useful + by else None,
            utility=utility,
            utility_at=now,
            intents=_counted(self.intents, [win.intent] if win.intent else [], by),
            entities=_counted(self.entities, win.entities, by),
        )


def whole_of(vector: Vector | None) -> Sum | None:
    """The vector, normalized to length 1, in integer units; None for a vector of length 0."""
    if vector is None:
        return None
    wide = np.asarray(vector, np.float64)
    length = float(np.linalg.norm(wide))
    if not 0 < length < np.inf:
        return None
    whole: Sum = np.rint(wide / length * UNIT).astype(np.int64)
    return whole


def _counted(known: Mapping[str, int], names: Sequence[str], by: int) -> dict[str, int]:
    counts = Counter(known)
    for name in names:
        counts[name] += by
    return {name: count for name, count in sorted(counts.items()) if count > 0}
