"""Documents as responses with the days between which they are in force, which the stores have."""

from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress

from callslip.api.http import responses
from callslip.api.http.context import current
from callslip.api.messages.documents import Document
from callslip.errors import CallslipError
from callslip.stores.ledger import DocumentRecord
from callslip.stores.records import VALIDITY


def with_validity(records: Sequence[DocumentRecord]) -> list[Document]:
    """Convert documents of one collection, and add the days of those that are live.

    The store is read once for each tenant, and only if a chunk of the collection ever had such a
    day. The days are left out if the store does not answer.
    """
    of_tenant: dict[str, list[str]] = defaultdict(list)
    for record in records:
        if responses.live_version(record) is not None:
            of_tenant[record.tenant].append(record.document_id)
    days: dict[str, dict[str, str]] = {}
    if of_tenant:
        with suppress(CallslipError):
            days = _days(records[0].collection, of_tenant)
    return [
        responses.document(record).model_copy(update=days.get(record.document_id, {}))
        for record in records
    ]


def _days(collection: str, of_tenant: dict[str, list[str]]) -> dict[str, dict[str, str]]:
    collections = current().ledger.collections
    if collections.property_names(collection).isdisjoint(VALIDITY):
        return {}
    store = current().store_of(collections.get(collection).store)
    return {
        document.document_id: {
            name: str(document.properties[name]) for name in VALIDITY if name in document.properties
        }
        for tenant, ids in of_tenant.items()
        for document in store.get_documents(collection, ids, tenant=tenant)
    }
