"""Amounts of a sentence, compared with those of the passages that it cites."""

from collections.abc import Sequence

from callslip.languages.contract import Amount
from callslip.retrieval.evidence.clauses import Clause

FITTING = 2
"""So many words in common bind an amount to the words around it."""

_SAME = 1e-6


def unsupported(sentence: Sequence[Clause], passages: Sequence[Sequence[Clause]]) -> bool:
    """Whether the passages lack an amount of the sentence, or use it for something else.

    `passages` are the clauses of each passage sentence.
    """
    stated = [a for part in passages for clause in part for a in clause.amounts]
    for clause in sentence:
        for amount in clause.amounts:
            if _counts_nothing(amount):
                continue
            if not any(equal(amount, other) for other in stated):
                return True
            if _of_another(amount, clause, sentence, passages):
                return True
    return False


def equal(one: Amount, other: Amount) -> bool:
    """Whether two amounts are the same; a number without a unit has any unit."""
    if one.dimension and other.dimension:
        return one.dimension == other.dimension and abs(one.value - other.value) < _SAME
    return abs(one.number - other.number) < _SAME


def _counts_nothing(amount: Amount) -> bool:
    """Whether the amount is the word `one` without a unit, which may stand for an article."""
    return amount.number == 1 and amount.dimension in ("", "people", "times")


def _of_another(
    amount: Amount, clause: Clause, sentence: Sequence[Clause], passages: Sequence[Sequence[Clause]]
) -> bool:
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
