"""Fitting the weights of a ranking on questions with known answers, and what that is worth.

The weights are found by coordinate search for nDCG@10. What they gain is measured on questions that
they were not fitted on (k-fold cross-validation), where all of one question lie in one fold.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np

from callslip.errors import GuardHolds, NotBetter, TooFewQuestions
from retrieval.examples import Example, Examples, Ranked, Weights
from retrieval.offpolicy import OffPolicy, Shown, worst
from retrieval.resampling import Estimate, Floats, Integers, estimate

FOLDS = 5

FEWEST = 50
"""Questions that are needed."""

MATTERS = 0.02
"""A weight that moves candidates of fewer examples than this share is left as it is."""

ROUNDS = 4

LEAST_GAIN = 1e-4
"""In nDCG@10; for less no weight is changed."""

GRIDS: Mapping[str, tuple[float, ...]] = {
    "alpha": tuple(n / 20 for n in range(1, 20)),
    **dict.fromkeys(
        ("proximity", "facets_weight", "memory_weight"),
        (0.0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0),
    ),
}
"""The values that are tried of each weight, beside the present one."""

COLUMNS = {"proximity": 2, "facets_weight": 3, "memory_weight": 4}
"""Which number of a basis a weight multiplies alone."""

SEED = 20261122


@dataclass(frozen=True)
class Tuned:
    """What was found.

    `fitted` names the weights that were free. `before` and `after` are nDCG@10 on held-out
    questions, `gain` is their paired difference. `off_policy` is None where nothing was biased.
    """

    questions: int
    searches: int
    now: Weights
    proposed: Weights
    fitted: tuple[str, ...]
    folds: tuple[Weights, ...]
    before: float
    after: float
    gain: Estimate
    off_policy: OffPolicy | None

    @property
    def changes(self) -> dict[str, float]:
        """The fitted weights as they are to be."""
        return {name: value for name, value in asdict(self.proposed).items() if name in self.fitted}

    def check(self) -> None:
        """Raise NotBetter or GuardHolds where it is not to be applied."""
        if self.gain.low <= 0:
            raise NotBetter(
                f"the held-out gain of {self.gain.mean:+.3f} nDCG@10 is not known to be one: its"
                f" 95 % interval is {self.gain.low:+.3f} to {self.gain.high:+.3f}"
            )
        if self.off_policy is not None and self.off_policy.holds:
            change = self.off_policy.change
            raise GuardHolds(
                "less the bias of what was shown where, the proposal may be worse: the 95 %"
                f" interval of the off-policy estimate is {change.low:+.3f} to {change.high:+.3f}"
            )


def tune(
    given: Sequence[Example],
    now: Ranked,
    *,
    biased: bool,
    told: Callable[[int, int], None] = lambda done, total: None,
) -> Tuned:
    """Fit weights and measure them; `told` hears how many of the fits are done.

    `biased`: the answers are known from what was shown, so off-policy evaluation is needed; every
    example then has places and chances. Raises TooFewQuestions.
    """
    examples = Examples(given) if given else None
    questions = examples.questions if examples else 0
    if examples is None or questions < FEWEST:
        raise TooFewQuestions(f"{questions} different questions can be used, {FEWEST} are needed")
    free = tuple(_free(examples, now))
    parts = divided(examples.groups)
    folds = []
    for fold in range(FOLDS):
        folds.append(fit(examples, now.weights, free, parts != fold))
        told(fold + 1, FOLDS + 1)
    proposed = fit(examples, now.weights, free, np.ones(examples.count, bool))
    told(FOLDS + 1, FOLDS + 1)
    before = examples.ndcg(now.weights)
    after = np.choose(parts, [examples.ndcg(weights) for weights in folds])
    total = examples.shares.sum()
    return Tuned(
        questions=questions,
        searches=examples.count,
        now=now.weights,
        proposed=proposed,
        fitted=free,
        folds=tuple(folds),
        before=float(before @ examples.shares / total),
        after=float(after @ examples.shares / total),
        gain=estimate(after - before, examples.shares, examples.groups),
        off_policy=_off_policy(examples, now.weights, folds, parts) if biased else None,
    )


def fit(
    examples: Examples, start: Weights, free: Sequence[str], chosen: np.typing.NDArray[np.bool_]
) -> Weights:
    """The weights with the best mean nDCG@10 of the chosen examples that are found from `start`.

    One after the other takes its best value of GRIDS, until none changes or ROUNDS are over; of
    equal ones the nearest to the present.
    """
    shares = np.where(chosen, examples.shares, 0.0)
    shares /= shares.sum()

    def worth(weights: Weights) -> float:
        return float(examples.ndcg(weights) @ shares)

    found, best = start, worth(start)
    for _ in range(ROUNDS):
        known = found
        for name in free:
            here = getattr(found, name)
            values = sorted(GRIDS[name], key=lambda value: abs(value - here))
            tried = [replace(found, **{name: value}) for value in values]
            scores = [worth(each) for each in tried]
            at = int(np.argmax(scores))
            if scores[at] > best + LEAST_GAIN:
                found, best = tried[at], scores[at]
        if found == known:
            break
    return found


def divided(groups: Integers, folds: int = FOLDS) -> Integers:
    """The fold of each example, from 0: all of a group in one, the folds of about one size.

    The largest groups are dealt first, each to the smallest fold; chance goes by a fixed seed.
    """
    sizes = np.bincount(groups)
    order = np.random.default_rng(SEED).permutation(len(sizes))
    order = order[np.argsort(-sizes[order], kind="stable")]
    fold_of, filled = np.zeros(len(sizes), np.int64), np.zeros(folds)
    for group in order:
        fold_of[group] = int(np.argmin(filled))
        filled[fold_of[group]] += sizes[group]
    found: Integers = fold_of[groups]
    return found


def _free(examples: Examples, now: Ranked) -> Iterator[str]:
    """The weights that matter here. What is 0 is off, and stays off."""
    if now.weighs_legs:
        yield "alpha"
    for name, column in COLUMNS.items():
        if getattr(now.weights, name) and examples.moved_by(column) >= MATTERS:
            yield name


def _off_policy(
    examples: Examples, now: Weights, folds: Sequence[Weights], parts: Integers
) -> OffPolicy:
    """The estimate for held-out questions, each under the weights that have not seen it."""
    after: Floats = np.choose(parts[examples.of], [examples.gains(each) for each in folds])
    shown = Shown(
        examples.places,
        examples.chances,
        examples.shares[examples.of],
        examples.groups[examples.of],
    )
    return worst(shown, after - examples.gains(now))
