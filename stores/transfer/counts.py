"""Counting what a store holds of a collection."""

from callslip.errors import TenantNotFound
from stores.contract import Store
from stores.ledger import Ledger


def store_counts(ledger: Ledger, store: Store, collection: str) -> dict[str, int]:
    """How many chunks a store holds of each tenant that the ledger knows; "" where none are."""
    counts = {}
    with_tenants = ledger.collections.get(collection).schema.tenants
    for tenant in ledger.tenants.all(collection) if with_tenants else [""]:
        try:
            counts[tenant] = store.count(collection, tenant=tenant)
        except TenantNotFound:
            counts[tenant] = 0
    return counts


def document_ids(store: Store, collection: str) -> set[str]:
    """The ids of all documents that a store holds of a collection, of every tenant."""
    places = store.tenants(collection) if store.schema(collection).tenants else [""]
    return set().union(*(store.document_ids(collection, tenant=place) for place in places))


def occupied(store: Store, collection: str) -> bool:
    """Whether a store holds anything under a collection's name."""
    return collection in store.collections() and bool(document_ids(store, collection))
