"""How much of some terms others have."""

from collections.abc import Mapping, Set


def covered(weights: Mapping[str, float], said: Set[str]) -> float:
    """The share of the terms' weights that is said, in [0, 1]; 0 where there are no terms."""
    total = sum(weights.values())
    return sum(value for term, value in weights.items() if term in said) / total if total else 0.0


def jaccard(a: Set[str], b: Set[str]) -> float:
    """Jaccard's index, in [0, 1]; 0 where both are empty."""
    return len(a & b) / len(a | b) if a or b else 0.0
