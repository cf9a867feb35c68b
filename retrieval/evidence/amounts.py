"""Amounts of a sentence, compared with those of the passages that it cites."""

from collections.abc import Sequence

from callslip.languages.contract import Amount
from callslip.retrieval.evidence.clauses import Clause

FITTING = 2
"""So many words in common bind an amount to the words around it."""

_SAME = 1e-6


def unsupported(sentence: Sequence[Clause], passages: Sequence[Sequence[Clause]]) -> bool:
    """Whether the passages lack an amount of the sentence, or use it for something else.

    They lack an amount that they only have in another currency, half of the day or unit.

    `passages` are the clauses of each passage sentence.
    """
    stated = [
        both for part in passages for c in part for both in zip(c.amounts, c.measures, strict=True)
    ]
    for clause in sentence:
        for amount, measures in zip(clause.amounts, clause.measures, strict=True):
            same = [others for other, others in stated if equal(amount, other)]
            if _counts_nothing(amount):
                if not same and _counted(amount, clause, passages):
                    return True
            elif not same or _differ(measures, same) or _of_another(amount, clause, passages):
                return True
    return False


def _differ(measures: frozenset[str], others: Sequence[frozenset[str]]) -> bool:
    """Whether both sides state measures, such as currencies, and have none in common."""
    stated = frozenset[str]().union(*others)
    return bool(measures and stated) and not measures & stated


def _counted(amount: Amount, clause: Clause, passages: Sequence[Sequence[Clause]]) -> bool:
    """Whether the words around a `one` stand around another number of the passages."""
    return any(
        _fit(clause, c)[0] >= FITTING
        for part in passages
        for c in part
        if any(a.number != 1 and a.dimension in (amount.dimension, "") for a in c.amounts)
    )


def equal(one: Amount, other: Amount) -> bool:
    """Whether two amounts are the same; a number without a unit has any unit."""
    if one.dimension and other.dimension:
        return one.dimension == other.dimension and abs(one.value - other.value) < _SAME
    return abs(one.number - other.number) < _SAME


def _counts_nothing(amount: Amount) -> bool:
    """Whether the amount is the word `one` without a unit, which may stand for an article."""
    return amount.number == 1 and amount.dimension in ("", "people", "times")


def _of_another(amount: Amount, clause: Clause, passages: Sequence[Sequence[Clause]]) -> bool:
    """Whether the words around the amount stand around another amount of the same dimension."""
    own = [c for part in passages for c in part if any(equal(amount, a) for a in c.amounts)]
    rivals = [
        c
        for part in passages
        for c in part
        if any(_rival(amount, a) for a in c.amounts)
        and not any(equal(amount, a) for a in c.amounts)
    ]
    best = max((_fit(clause, c) for c in own), default=(0, 0.0))
    return any(
        best[0] < FITTING and count > best[0] and share > best[1]
        for count, share in (_fit(clause, c) for c in rivals)
    )


def _fit(clause: Clause, other: Clause) -> tuple[int, float]:
    """How many words of a clause another clause has too, and their share of the other's words."""
    shared = sum(2 * len(word & other.terms) >= len(word) for word in clause.words)
    return shared, shared / max(1, len(other.words))


def _rival(amount: Amount, other: Amount) -> bool:
    return not equal(amount, other) and amount.dimension == other.dimension
