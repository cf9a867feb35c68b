"""Counts the chunks and documents of a collection in a store."""

from functools import partial

from callslip.errors import TenantNotFound
from callslip.stores.contract import Store
from callslip.stores.ledger import Ledger
from callslip.stores.servers.absence import proven


def store_counts(ledger: Ledger, store: Store, collection: str) -> dict[str, int]:
    """The number of chunks in the store for each tenant in the ledger.

    The key is "" if the collection has no tenants.
    """
    counts = {}
    with_tenants = ledger.collections.get(collection).schema.tenants
    for tenant in ledger.tenants.all(collection) if with_tenants else [""]:
        try:
            count = partial(store.count, collection, tenant=tenant)
            counts[tenant] = proven(count, store.ping)
        except TenantNotFound:
            counts[tenant] = 0
    return counts


def document_ids(store: Store, collection: str) -> set[str]:
    """The ids of all documents of a collection in a store, over all tenants."""
    tenants = store.tenants(collection) if store.schema(collection).tenants else [""]
    return set().union(*(store.document_ids(collection, tenant=tenant_) for tenant_ in tenants))


def occupied(store: Store, collection: str) -> bool:
    """Whether the store has a collection of this name with at least one document."""
    return collection in store.collections() and bool(document_ids(store, collection))
