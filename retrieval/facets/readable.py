"""The values of a facet, and their counts, as far as a reader may read their passages."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from callslip.errors import StoreDown
from callslip.retrieval.facets.texts import label
from callslip.stores.contract import Store
from callslip.stores.ledger import FacetValue, Ledger
from callslip.stores.ledger.learning.facet_values import FacetScope
from callslip.stores.levels import PASSAGES
from callslip.stores.properties.filters import Where

T = TypeVar("T")

ROUNDS = 3

ALL_PASSAGES = Where(every=(PASSAGES,))


def read_consistently(
    ledger: Ledger,
    collection: str,
    tenant: str,
    read: Callable[[Where | None], T],
    among: Where | None = ALL_PASSAGES,
) -> T:
    """Read something of a store under the filter `among`, without what the reader may not read.

    The ledger decides who may read what, and a store follows a moment later: counts are read again
    if the ledger changed meanwhile. Raises StoreDown while it changes too much.
    """
    for _ in range(ROUNDS):
        before = ledger.readers.unreadable(collection, tenant)
        result = read(before.left_out_of(among))
        if before.complete and before == ledger.readers.unreadable(collection, tenant):
            return result
    raise StoreDown("the readers of many documents are changing", hint="Try again in a moment.")


def readable_values(
    ledger: Ledger, store: Store, at: FacetScope, facet: str, values: Sequence[FacetValue]
) -> list[FacetValue]:
    """The values that a readable passage has, each with the number of these passages.

    The most frequent value is first. Raises StoreDown as `read_consistently` does.
    """
    groups = read_consistently(
        ledger,
        at.collection,
        at.tenant,
        lambda where: store.aggregate_group_by(at.collection, facet, where, tenant=at.tenant),
    )
    counts: Counter[str] = Counter()
    for value, count in groups:
        counts[label(facet, value)] += count
    known = [replace(v, chunks=counts[v.value]) for v in values if counts[v.value]]
    return sorted(known, key=lambda v: (-v.chunks, v.value))
