"""Proximity: the adjacent word pairs that a question and a passage have in common.

These are the ordered pairs of the sequential dependence model (Metzler and Croft 2005); a pair has
the weight of its two words. docs/quality.md has the measured effect.
"""

from collections.abc import Mapping
from itertools import pairwise

LONGEST = 64
"""The maximum number of pairs of a question that count (the first ones)."""


def sequences(
    question: str, passages: Mapping[str, str], idf: Mapping[str, float]
) -> dict[str, float]:
    """Return the weighted share, from 0 to 1, of the question's adjacent pairs in each passage.

    `question` and the passages, which are by chunk id, are analyzed terms, separated by spaces. A
    pair's weight is the sum of the idf of its two terms.
    """
    wanted = list(dict.fromkeys(pairwise(question.split())))[:LONGEST]
    weights = {f" {a} {b} ": idf.get(a, 0.0) + idf.get(b, 0.0) for a, b in wanted}
    total = sum(weights.values())
    if total <= 0:
        return {}
    shares = {}
    for chunk_id, passage in passages.items():
        there = f" {' '.join(passage.split())} "
        shares[chunk_id] = sum(w for pair, w in weights.items() if pair in there) / total
    return shares
