"""Overlap measures of term sets."""

from collections.abc import Mapping, Set


def covered(weights: Mapping[str, float], stated: Set[str]) -> float:
    """Return the weighted share of the terms in `stated`, in [0, 1]; 0 if there are no terms."""
    total = sum(weights.values())
    return sum(value for term, value in weights.items() if term in stated) / total if total else 0.0


def jaccard(a: Set[str], b: Set[str]) -> float:
    """Return the Jaccard index, in [0, 1]; 0 if both sets are empty."""
    return len(a & b) / len(a | b) if a or b else 0.0
