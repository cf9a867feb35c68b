"""Finding the collection and the tenant that a request to an invoker names."""

from typing import Any

from callslip.compat.context import AdapterContext
from callslip.errors import CollectionNotFound, InvalidRequest, TenantNotFound
from callslip.stores.ledger import CollectionRecord
from callslip.stores.naming import clean_tenant
from callslip.stores.properties.filters import is_unicode
from callslip.stores.schemas import check_tenant


def scoped_collection(context: AdapterContext, collection: Any, tenant: Any) -> CollectionRecord:
    """Return the collection, and check that the tenant, if one is named, exists in it.

    What the caller may not see does not exist.
    Raises CollectionNotFound and TenantNotFound with the messages of the published package.
    Raises InvalidRequest for an invalid name, for a tenant in a collection without tenants, and for
    no tenant in a collection with tenants.
    """
    if tenant is not None and not _is_text(tenant):
        raise InvalidRequest("tenant is no text")
    record = collection_of(context, collection)
    name = clean_tenant(tenant or "")
    check_tenant(record.schema, name)
    if name:
        try:
            context.caller.check(collection, name)
            context.ledger.tenants.check(collection, name)
        except TenantNotFound:
            raise TenantNotFound(
                f"Tenant {name} does not exist in collection {collection}"
            ) from None
    return record


def collection_of(context: AdapterContext, collection: Any) -> CollectionRecord:
    """Return the collection; errors as for `scoped_collection`."""
    if collection is None or collection == "":
        raise InvalidRequest("collection is missing")
    if not _is_text(collection):
        raise InvalidRequest("collection is no text")
    try:
        record = context.ledger.collections.get(collection)
        if not context.caller.sees_collection(collection, tenants=record.schema.tenants):
            raise CollectionNotFound("hidden")
        return record
    except CollectionNotFound:
        raise CollectionNotFound(f"Collection {collection} does not exist") from None


def _is_text(name: Any) -> bool:
    return isinstance(name, str) and is_unicode(name)
