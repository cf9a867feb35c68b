"""The parent strategies: parents added to the hits, or hits replaced with their parents."""

from collections.abc import Mapping, Sequence

from callslip.vocabulary import ParentStrategy


def add_parents(
    hits: Sequence[str], parent_of: Mapping[str, str], strategy: ParentStrategy
) -> list[tuple[str, str]]:
    """Return pairs of chunk id and child id; the child id is "" if the chunk is itself a hit.

    `include` adds each parent once, directly after its first child. `replace` returns each parent
    once, in the order of its first child, and drops hits without a parent. No chunk occurs twice.
    `parent_of` must contain only parents that the search may return.
    """
    placed: dict[str, str] = {}
    for chunk_id in hits:
        if strategy == "include":
            placed.setdefault(chunk_id, "")
        if parent := parent_of.get(chunk_id):
            placed.setdefault(parent, chunk_id)
    return list(placed.items())
