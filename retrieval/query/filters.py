"""The filter of a search: the checked conditions of the request, and the chunk level."""

from collections.abc import Collection
from difflib import get_close_matches

from callslip.errors import InvalidFilter
from callslip.stores.contract import Store
from callslip.stores.ledger import Unreadable
from callslip.stores.levels import PASSAGES
from callslip.stores.properties.filters import Condition, Operator, Where, also
from callslip.stores.records import AUDIENCE, ENRICHED_PROPERTIES, FILTERABLE, TIMES

_ALWAYS = (*FILTERABLE, *TIMES, *ENRICHED_PROPERTIES)
"""The names that a filter can use in every collection."""


def check_not_reserved(where: Where | None) -> None:
    """Raise InvalidFilter if a filter names the property that only the server uses."""
    if any(condition.prop == AUDIENCE for condition in where or ()):
        raise InvalidFilter(f"{AUDIENCE!r} is no property that a filter can name.")


def check_properties_known(where: Where | None, known: Collection[str]) -> None:
    """Check the properties that a filter names.

    Raises InvalidFilter if no chunk of the collection ever had one of them.
    """
    for condition in where or ():
        if condition.prop in _ALWAYS or condition.prop in known:
            continue
        near = get_close_matches(condition.prop, [*known, *_ALWAYS], 1, cutoff=0.7)
        raise InvalidFilter(
            f"No document of the collection has a property {condition.prop!r}.",
            hint=f"Did you mean {near[0]!r}?" if near else "Correct its name, or leave it out.",
        )


def passages(where: Where | None) -> Where:
    """Narrow a filter to passages unless it names a level or a parent."""
    if where and any(condition.prop in ("level", "parent_id") for condition in where):
        return where
    return also(where, PASSAGES)


def at_level(
    store: Store,
    collection: str,
    tenant: str,
    level: int,
    where: Where | None,
    unreadable: Unreadable,
) -> Where | None:
    """Narrow a filter to one level; None if the level does not exist.

    Level 0 is the top; level -1 is the deepest level of the collection, or of its tenant.
    """
    if level >= 0:
        return also(where, Condition("level", "==", float(level)))
    deepest = _deepest(store, collection, tenant, unreadable)
    if deepest is None or deepest + 1 + level < 0:
        return None
    operator: Operator = ">=" if level == -1 else "=="  # so that the condition may equal PASSAGES
    return also(where, Condition("level", operator, float(deepest + 1 + level)))


def _deepest(store: Store, collection: str, tenant: str, unreadable: Unreadable) -> int | None:
    if not unreadable:
        return store.deepest_level(collection, tenant=tenant)
    where = unreadable.left_out_of(None)
    levels = store.aggregate_group_by(collection, "level", where, tenant=tenant)
    return max((int(level) for level, _ in levels), default=None)
