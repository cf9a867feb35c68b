"""The filter of a search: the checked conditions of the request, and the chunk level."""

from collections.abc import Collection
from dataclasses import replace
from difflib import get_close_matches

from callslip.errors import InvalidFilter
from callslip.stores.contract import Store
from callslip.stores.levels import PASSAGES
from callslip.stores.properties.filters import Condition, Operator, Where
from callslip.stores.records import ENRICHED_PROPERTIES, FILTERABLE


def check_properties_known(where: Where | None, known: Collection[str]) -> None:
    """Check the properties that a filter names.

    Raises InvalidFilter if no chunk of the collection ever had one of them.
    """
    for condition in where or ():
        if condition.prop in (*FILTERABLE, *ENRICHED_PROPERTIES) or condition.prop in known:
            continue
        near = get_close_matches(
            condition.prop, [*known, *FILTERABLE, *ENRICHED_PROPERTIES], 1, cutoff=0.7
        )
        raise InvalidFilter(
            f"No document of the collection has a property {condition.prop!r}.",
            hint=f"Did you mean {near[0]!r}?" if near else "Correct its name, or leave it out.",
        )


def passages(where: Where | None) -> Where:
    """Narrow a filter to passages unless it names a level or a parent."""
    if where and any(condition.prop in ("level", "parent_id") for condition in where):
        return where
    return _and(where, PASSAGES)


def at_level(
    store: Store, collection: str, tenant: str, level: int, where: Where | None
) -> Where | None:
    """Narrow a filter to one level; None if the level does not exist.

    Level 0 is the top; level -1 is the deepest level of the collection, or of its tenant.
    """
    if level >= 0:
        return _and(where, Condition("level", "==", float(level)))
    deepest = store.deepest_level(collection, tenant=tenant)
    if deepest is None or deepest + 1 + level < 0:
        return None
    operator: Operator = ">=" if level == -1 else "=="  # so that the condition may equal PASSAGES
    return _and(where, Condition("level", operator, float(deepest + 1 + level)))


def _and(where: Where | None, condition: Condition) -> Where:
    return replace(where, every=(*where.every, condition)) if where else Where(every=(condition,))
