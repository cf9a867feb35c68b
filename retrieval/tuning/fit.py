"""Fits the weights of a ranking on questions with known answers, and estimates the gain.

A coordinate search maximizes nDCG@10. The gain is measured by k-fold cross-validation on questions
that were not used for fitting; all examples of one question are in one fold.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np

from callslip.errors import GuardHolds, NotBetter, TooFewQuestions
from callslip.retrieval.tuning.bootstrap import Estimate, Floats, Integers, estimate
from callslip.retrieval.tuning.examples import Example, Examples, Ranked, Weights
from callslip.retrieval.tuning.offpolicy import OffPolicy, Shown, worst

FOLDS = 5

FEWEST = 50
"""The minimum number of questions."""

MATTERS = 0.02
"""A weight is not fitted if it moves candidates in less than this share of the examples."""

ROUNDS = 4

LEAST_GAIN = 1e-4
"""The minimum gain in nDCG@10 for which a weight changes."""

GRIDS: Mapping[str, tuple[float, ...]] = {
    "alpha": tuple(n / 20 for n in range(1, 20)),
    **dict.fromkeys(
        ("proximity", "facets_weight", "memory_weight"),
        (0.0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0),
    ),
}
"""The values that are tried for each weight, in addition to the current one."""

MIDDLE = 0.5
"""The first alpha that is tried if alpha was chosen for each question so far."""

COLUMNS = {"proximity": 2, "facets_weight": 3, "memory_weight": 4}
"""The column of the one feature that each weight multiplies."""

SEED = 20261122


@dataclass(frozen=True)
class Tuned:
    """The result of a fit.

    `fitted` names the weights that were free. `before` and `after` are nDCG@10 on held-out
    questions, `gain` is their paired difference. `off_policy` is None if the answers were not
    biased.
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
        """The fitted weights with their proposed values; without an alpha that stays chosen."""
        values = asdict(self.proposed)
        return {name: values[name] for name in self.fitted if values[name] is not None}

    def check(self) -> None:
        """Raise NotBetter or GuardHolds if the proposal must not be applied."""
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
    question_count: Sequence[Example],
    now: Ranked,
    *,
    biased: bool,
    on_fit: Callable[[int, int], None] = lambda done, total: None,
) -> Tuned:
    """Fit the weights and measure them; `on_fit` is called with the number of finished fits.

    `biased` says that the answers are known only from what was shown, so off-policy evaluation is
    needed; every example then has positions and chances. Raises TooFewQuestions.
    """
    examples = Examples(question_count) if question_count else None
    questions = examples.questions if examples else 0
    if examples is None or questions < FEWEST:
        raise TooFewQuestions(f"{questions} different questions can be used, {FEWEST} are needed")
    free = tuple(_free(examples, now))
    parts = divided(examples.groups)
    folds = []
    for fold in range(FOLDS):
        folds.append(fit(examples, now.weights, free, parts != fold))
        on_fit(fold + 1, FOLDS + 1)
    proposed = fit(examples, now.weights, free, np.ones(examples.count, bool))
    on_fit(FOLDS + 1, FOLDS + 1)
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
    """Search from `start` for the weights with the best mean nDCG@10 of the chosen examples.

    Each weight in turn takes its best value of GRIDS, until no weight changes or after ROUNDS
    rounds. Of equally good values, the one nearest to the current value is chosen.
    """
    shares = np.where(chosen, examples.shares, 0.0)
    shares /= shares.sum()

    def worth(weights: Weights) -> float:
        return float(examples.ndcg(weights) @ shares)

    fitted, best = start, worth(start)
    for _ in range(ROUNDS):
        known = fitted
        for name in free:
            here = getattr(fitted, name)
            middle = MIDDLE if here is None else here
            values = sorted(GRIDS[name], key=lambda value: abs(value - middle))
            tried = [replace(fitted, **{name: value}) for value in values]
            scores = [worth(each) for each in tried]
            at = int(np.argmax(scores))
            if scores[at] > best + LEAST_GAIN:
                fitted, best = tried[at], scores[at]
        if fitted == known:
            break
    return fitted


def divided(groups: Integers, folds: int = FOLDS) -> Integers:
    """The fold of each example, from 0: a group is in one fold, and the folds are of similar size.

    The largest groups are assigned first, each to the smallest fold. The random order has a fixed
    seed.
    """
    sizes = np.bincount(groups)
    order = np.random.default_rng(SEED).permutation(len(sizes))
    order = order[np.argsort(-sizes[order], kind="stable")]
    fold_of, filled = np.zeros(len(sizes), np.int64), np.zeros(folds)
    for group in order:
        fold_of[group] = int(np.argmin(filled))
        filled[fold_of[group]] += sizes[group]
    folds_of: Integers = fold_of[groups]
    return folds_of


def _free(examples: Examples, now: Ranked) -> Iterator[str]:
    """The weights to fit: not 0 (switched off), and their feature varies in enough examples."""
    if now.weighs_retrievers:
        yield "alpha"
    for name, column in COLUMNS.items():
        if getattr(now.weights, name) and examples.moved_by(column) >= MATTERS:
            yield name


def _off_policy(
    examples: Examples, now: Weights, folds: Sequence[Weights], parts: Integers
) -> OffPolicy:
    """The off-policy estimate on held-out questions, with the weights fitted without them."""
    after: Floats = np.choose(parts[examples.of], [examples.gains(each) for each in folds])
    shown = Shown(
        examples.positions,
        examples.chances,
        examples.shares[examples.of],
        examples.groups[examples.of],
    )
    return worst(shown, after - examples.gains(now))
