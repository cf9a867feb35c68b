"""Counts passages and documents by the values of a property, as far as a reader may read them."""

from dataclasses import dataclass

from callslip.retrieval.facets.readable import read_consistently
from callslip.stores.contract import Store
from callslip.stores.ledger import CollectionRecord, Ledger
from callslip.stores.properties.filters import Where
from callslip.stores.records import Scalar


@dataclass(frozen=True)
class ValueCount:
    """How many passages have a value, and how many documents have such a passage."""

    value: Scalar
    chunks: int
    documents: int


@dataclass(frozen=True)
class PropertyCounts:
    """The most frequent values of a property, and the numbers of all.

    `distinct` is the number of all its values; `chunks` and `documents` are those that match the
    filter, with and without the property.
    """

    values: tuple[ValueCount, ...]
    distinct: int
    chunks: int
    documents: int


def count_by(
    ledger: Ledger,
    store: Store,
    record: CollectionRecord,
    tenant: str,
    prop: str,
    where: Where | None,
    limit: int,
) -> PropertyCounts:
    """Count by the `limit` most frequent values; only passages that match the filter count.

    Raises StoreDown as `read_consistently` does.
    """

    def read(readable: Where | None) -> PropertyCounts:
        among = _both(readable, where)
        groups = store.aggregate_group_by(record.name, prop, among, tenant=tenant)
        most = groups[:limit]
        documents = store.count_documents(
            record.name, prop, [value for value, _ in most], among, tenant=tenant
        )
        chunks = store.count(record.name, among, tenant=tenant)
        # A row of an attached table is its own document.
        all_documents = chunks if record.attached else _documents(store, record, tenant, among)
        values = (ValueCount(*group, number) for group, number in zip(most, documents, strict=True))
        return PropertyCounts(tuple(values), len(groups), chunks, all_documents)

    return read_consistently(ledger, record.name, tenant, read)


def _documents(store: Store, record: CollectionRecord, tenant: str, among: Where | None) -> int:
    return len(store.aggregate_group_by(record.name, "document_id", among, tenant=tenant))


def _both(readable: Where | None, where: Where | None) -> Where | None:
    if readable is None or where is None:
        return where or readable
    return Where((*readable.every, *where.every), where.some)
