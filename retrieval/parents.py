"""What becomes of hits whose chunk lies within another one."""

from collections.abc import Mapping, Sequence
from typing import Literal

ParentStrategy = Literal["include", "replace"]


def place_parents(
    hits: Sequence[str], parent_of: Mapping[str, str], strategy: ParentStrategy
) -> list[tuple[str, str]]:
    """Order hits and parents; gives chunk ids with the child that a parent came by, else "".

    `include` adds each parent once, right after the first child that names it. `replace` gives
    each parent once, in the order of its first child, and drops hits that have none. No chunk is
    given twice. `parent_of` has only parents that may be seen.
    """
    placed: dict[str, str] = {}
    for chunk_id in hits:
        if strategy == "include":
            placed.setdefault(chunk_id, "")
        if parent := parent_of.get(chunk_id):
            placed.setdefault(parent, chunk_id)
    return list(placed.items())
