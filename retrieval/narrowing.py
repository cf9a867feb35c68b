"""The filter of a search: conditions of the request, checked, and the level it works on."""

from collections.abc import Collection
from dataclasses import replace
from difflib import get_close_matches

from callslip.errors import InvalidFilter
from stores.contract import Store
from stores.filters import Condition, Operator, Where
from stores.levels import PASSAGES
from stores.records import FILTERABLE, FOUND


def check_properties_known(where: Where | None, known: Collection[str]) -> None:
    """Raise InvalidFilter for a property that no chunk of the collection ever had."""
    for condition in where or ():
        if condition.prop in (*FILTERABLE, *FOUND) or condition.prop in known:
            continue
        near = get_close_matches(condition.prop, [*known, *FILTERABLE, *FOUND], 1, cutoff=0.7)
        raise InvalidFilter(
            f"No document of the collection has a property {condition.prop!r}.",
            hint=f"Did you mean {near[0]!r}?" if near else "Correct its name, or leave it out.",
        )


def passages(where: Where | None) -> Where:
    """Narrow a filter to what is searched unless a level, or the parent of the hits, is named."""
    if where and any(condition.prop in ("level", "parent_id") for condition in where):
        return where
    return _and(where, PASSAGES)


def at_level(
    store: Store, collection: str, tenant: str, level: int, where: Where | None
) -> Where | None:
    """Narrow a filter to one level; None where that level does not exist.

    Zero is the top; -1 is the deepest level that the collection, or its tenant, has.
    """
    if level >= 0:
        return _and(where, Condition("level", "==", float(level)))
    deepest = store.deepest_level(collection, tenant=tenant)
    if deepest is None or deepest + 1 + level < 0:
        return None
    operator: Operator = ">=" if level == -1 else "=="  # so that it may be the same as PASSAGES
    return _and(where, Condition("level", operator, float(deepest + 1 + level)))


def _and(where: Where | None, condition: Condition) -> Where:
    return replace(where, every=(*where.every, condition)) if where else Where(every=(condition,))
