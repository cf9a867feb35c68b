"""The collection and the tenant that an invoker works on."""

from typing import Any

from callslip.errors import CollectionNotFound, InvalidRequest, TenantNotFound
from compat.genie.floor import Floor
from stores.filters import is_unicode
from stores.ledger import CollectionRecord
from stores.naming import clean_tenant
from stores.schemas import check_tenant


def place(floor: Floor, collection: Any, tenant: Any) -> CollectionRecord:
    """The collection, and the tenant in it where one is named, which must be there.

    CollectionNotFound and TenantNotFound in the words of the published package; InvalidRequest for
    a name that is none, and where the collection has no tenants, or only within tenants.
    """
    if tenant is not None and not _is_text(tenant):
        raise InvalidRequest("tenant is no text")
    record = collection_of(floor, collection)
    name = clean_tenant(tenant or "")
    check_tenant(record.schema, name)
    if name:
        try:
            floor.ledger.tenants.check(collection, name)
        except TenantNotFound:
            raise TenantNotFound(
                f"Tenant {name} does not exist in collection {collection}"
            ) from None
    return record


def collection_of(floor: Floor, collection: Any) -> CollectionRecord:
    """The collection; errors as for `place`."""
    if collection is None or collection == "":
        raise InvalidRequest("collection is missing")
    if not _is_text(collection):
        raise InvalidRequest("collection is no text")
    try:
        return floor.ledger.collections.get(collection)
    except CollectionNotFound:
        raise CollectionNotFound(f"Collection {collection} does not exist") from None


def _is_text(name: Any) -> bool:
    return isinstance(name, str) and is_unicode(name)
