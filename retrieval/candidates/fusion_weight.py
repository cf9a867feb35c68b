"""Chooses the weight of the vector retriever for one question, from the words that it matches.

    α = BALANCE / (BALANCE + matched)

`matched` is the information of the question's words in the best keyword hit, in nats: the hit's
share of the score of a passage with all words of the question, times the sum of the words' inverse
document frequencies. A hit with many rare words of the question is strong evidence, so that words
weigh more; meaning weighs more if the passages use other words than the question, or if the
question has few words. docs/quality.md has the effect on each judged set, also with BALANCE fitted
without that set.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from callslip.stores.fusion import Scale
from callslip.stores.records import RetrieverHit

BALANCE = 8.0
"""The information, in nats, at which both retrievers have the same weight."""

UNKNOWN = 0.4
"""The weight if the scores are not calibrated, so that the information is unknown."""


@dataclass(frozen=True)
class FusionWeight:
    """The weight `alpha` of the vector retriever, from 0 to 1, and the reason for it.

    `matched` is the information that the best keyword hit matches, `of` that of the question, in
    nats; both are None if the weight was set and not chosen.
    """

    alpha: float
    matched: float | None = None
    of: float | None = None


def choose(keywords: Sequence[RetrieverHit], scale: Scale) -> FusionWeight:
    """Choose the weight for the question of these keyword hits, which `scale` calibrates."""
    best = max((hit.score for hit in keywords), default=0.0)
    matched = max(0.0, scale.information * scale.keyword(best))
    return FusionWeight(BALANCE / (BALANCE + matched), matched, scale.information)
