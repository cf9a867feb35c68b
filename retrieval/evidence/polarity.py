"""Whether a sentence denies what a passage states, or states what a passage denies."""

import re
from collections import Counter
from collections.abc import Sequence

from callslip.languages import Codes
from callslip.retrieval.evidence.amounts import equal
from callslip.retrieval.evidence.clauses import Clause, claims_of, terms

_STATES = re.compile(
    r"[.!?。;,:)]\W{0,9}\Z|[다요]\W{0,9}\Z|\A\W{0,9}(?:and|but)\b|[고며나만]\s{0,9}\Z"
)
"""Matches clauses that are no headings."""


def contradicted(
    sentence: Sequence[Clause], passages: Sequence[Sequence[Clause]], codes: Codes
) -> bool:
    """Whether a clause and the passage clauses nearest to it differ by a negation or an opposite.

    `passages` are the clauses of each passage sentence.
    """
    if not passages:
        return False
    worth = _Worth(passages)
    nearest = _nearest(sentence, passages, worth)
    own = [_matching(clause, nearest, worth) for clause in sentence]
    return any(
        matches
        and (
            all((clause.negations - other.negations) % 2 for other in matches)
            or _opposite(clause.text, [other.text for other in matches], codes)
        )
        for clause, matches in zip(sentence, own, strict=True)
    )


class _Worth:
    """Weighs what clauses share: terms by the number of passage sentences that have them."""

    def __init__(self, passages: Sequence[Sequence[Clause]]) -> None:
        self._having = Counter(term for part in passages for term in terms([part]))

    def of(self, clause: Clause, others: Sequence[Clause]) -> float:
        """Return the weight of the terms and amounts that a clause shares with other clauses."""
        known = terms([others])
        shared = sum(
            sum(1 / self._having[term] for term in word & known) / len(word)
            for word in clause.words
        )
        stated = [amount for other in others for amount in other.amounts]
        shared += 2 * sum(any(equal(a, b) for b in stated) for a in clause.amounts)
        return shared if _STATES.search(others[-1].text) else shared / 2


def _nearest(
    sentence: Sequence[Clause], passages: Sequence[Sequence[Clause]], worth: _Worth
) -> list[Sequence[Clause]]:
    """The passage sentences which share the most with a clause of the sentence."""
    chosen = set()
    for clause in sentence:
        shared = [worth.of(clause, part) for part in passages]
        if max(shared):
            chosen |= {at for at, weight in enumerate(shared) if weight == max(shared)}
    return [passages[at] for at in sorted(chosen)]


def _matching(clause: Clause, parts: Sequence[Sequence[Clause]], worth: _Worth) -> list[Clause]:
    others = [(worth.of(clause, [other]), other) for part in parts for other in part]
    most = max((weight for weight, _ in others), default=0.0)
    return [other for weight, other in others if most and weight == most]


def _opposite(text: str, others: Sequence[str], codes: Codes) -> bool:
    """Whether the text has one of two opposites and all the others have the other one alone."""
    return any(
        this.search(text)
        and not that.search(text)
        and all(that.search(other) and not this.search(other) for other in others)
        for one, two in claims_of(text, codes).opposites
        for this, that in ((one, two), (two, one))
    )
