"""Collections and tenants in Weaviate: their schemas, cached and read again if they are stale."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from weaviate.exceptions import WeaviateDeleteManyError, WeaviateQueryException

from callslip.errors import StoreDown
from callslip.stores.properties.filters import Where
from callslip.stores.schemas import check_tenant, tenant_missing
from callslip.stores.servers.absence import believed
from callslip.stores.weaviate import classes, names
from callslip.stores.weaviate.classes import Made
from callslip.stores.weaviate.connection import At, Connection
from callslip.stores.weaviate.filters import Clause, needed, translate

_REFUSED = (WeaviateQueryException, WeaviateDeleteManyError)

T = TypeVar("T")


@dataclass(frozen=True)
class Scope:
    """The handles of a collection, or of one of its tenants, with its schema and properties."""

    made: Made
    tenant: str
    chunks: At
    documents: At


class Catalog:
    """The collections of one connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._known: dict[str, Made] = {}

    def forget(self, collection: str) -> None:
        """Discard the cached schema and properties of the collection."""
        self._known.pop(collection, None)

    def made(self, collection: str) -> Made:
        """The schema and properties of a collection, possibly cached. Raises CollectionNotFound."""
        return self._known.get(collection) or self.look_up(collection)

    def look_up(self, collection: str) -> Made:
        """Read the schema and properties from the server. Raises CollectionNotFound."""
        self.forget(collection)
        made = believed(
            partial(classes.look_up, self._connection, collection), self._connection.ping
        )
        self._known[collection] = made
        return made

    def fresh(self, collection: str, tenant: str) -> Made:
        """Look up the collection and the tenant on the server.

        Call it before each write, because the server would create a missing class or property.
        Raises CollectionNotFound or TenantNotFound.
        """
        made = self.look_up(collection)
        check_tenant(made.schema, tenant)
        if tenant:
            believed(partial(self._check_tenant_exists, made, tenant), self._connection.ping)
        return made

    def _check_tenant_exists(self, made: Made, tenant: str) -> None:
        written, tenants = names.tenant_of(tenant), self.at(made).chunks.tenants
        if not self._connection.call(lambda: tenants.exists(written)):
            raise tenant_missing(made.schema.name, tenant)

    def at(self, made: Made, tenant: str = "") -> Scope:
        """The handles of the collection or of one of its tenants. Sends no request."""
        name, written = made.schema.name, names.tenant_of(tenant) if tenant else ""
        return Scope(
            made,
            tenant,
            self._connection.at(names.class_of(names.CHUNKS, name), written),
            self._connection.at(names.class_of(names.DOCUMENTS, name), written),
        )

    def on(self, collection: str, tenant: str, act: Callable[[Scope], T]) -> T:
        """Call `act` with a collection or a tenant.

        The cached schema becomes stale if another process creates the collection again. If the
        server refuses the call, the collection and tenant are looked up and `act` is called once
        more. Raises NotFound if the collection or tenant is missing, and StoreDown if the server
        refuses the second call too.
        """
        made = self.made(collection)
        check_tenant(made.schema, tenant)
        try:
            return self._act(made, tenant, act)
        except _REFUSED:
            made = self.fresh(collection, tenant)
        try:
            return self._act(made, tenant, act)
        except _REFUSED as error:
            raise StoreDown(
                f"Weaviate refused a query of collection {collection}; its log says more."
            ) from error

    def _act(self, made: Made, tenant: str, act: Callable[[Scope], T]) -> T:
        return self._connection.call(lambda: act(self.at(made, tenant)))

    def clause(self, at: Scope, where: Where | None) -> Clause:
        """Translate a filter. If a property is not in the cache, reads the properties again."""
        if where is None:
            return True
        made = at.made
        if not needed(where) <= made.properties:
            made = self.fresh(made.schema.name, at.tenant)
        return translate(where, made.properties)
