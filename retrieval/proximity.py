"""Words that follow each other in the question and in the passage.

The ordered pairs of the sequential dependence model (Metzler and Croft 2005), each weighing what
its two words do. docs/quality.md has what that is worth.
"""

from collections.abc import Mapping
from itertools import pairwise

LONGEST = 64
"""Pairs of a question that are looked for, the first ones."""


def sequence(question: str, passage: str, idf: Mapping[str, float]) -> float:
    """The share, from 0 to 1, of the question's pairs of neighbours that are neighbours there too.

    Both are analyzed terms, separated by spaces; a pair weighs the sum of its terms' idf.
    """
    wanted = list(dict.fromkeys(pairwise(question.split())))[:LONGEST]
    weights = {pair: idf.get(pair[0], 0.0) + idf.get(pair[1], 0.0) for pair in wanted}
    total = sum(weights.values())
    if total <= 0:
        return 0.0
    there = set(pairwise(passage.split()))
    return sum(weight for pair, weight in weights.items() if pair in there) / total
