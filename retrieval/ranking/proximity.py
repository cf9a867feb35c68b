"""Proximity: the adjacent word pairs that a question and a passage have in common.

These are the ordered pairs of the sequential dependence model (Metzler and Croft 2005); a pair has
the weight of its two words. docs/quality.md has the measured effect.
"""

from collections.abc import Mapping
from itertools import pairwise

LONGEST = 64
"""The maximum number of pairs of a question that count (the first ones)."""


def sequence(question: str, passage: str, idf: Mapping[str, float]) -> float:
    """Return the weighted share, from 0 to 1, of the question's adjacent pairs in the passage.

    `question` and `passage` are analyzed terms, separated by spaces. A pair's weight is the sum of
    the idf of its two terms.
    """
    wanted = list(dict.fromkeys(pairwise(question.split())))[:LONGEST]
    weights = {pair: idf.get(pair[0], 0.0) + idf.get(pair[1], 0.0) for pair in wanted}
    total = sum(weights.values())
    if total <= 0:
        return 0.0
    there = set(pairwise(passage.split()))
    return sum(weight for pair, weight in weights.items() if pair in there) / total
