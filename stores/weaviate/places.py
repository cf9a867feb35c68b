"""Where collections and tenants lie: what is known of them, looked up anew where it is stale."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from weaviate.exceptions import WeaviateDeleteManyError, WeaviateQueryException

from callslip.errors import StoreDown
from stores.filters import Where
from stores.schemas import check_tenant, tenant_missing
from stores.weaviate import classes, names
from stores.weaviate.classes import Made
from stores.weaviate.connection import At, Connection, answering
from stores.weaviate.where import Clause, needed, translate

_REFUSED = (WeaviateQueryException, WeaviateDeleteManyError)

T = TypeVar("T")


@dataclass(frozen=True)
class Place:
    """Where a collection, or one tenant of it, lies, and how it was made."""

    made: Made
    tenant: str
    chunks: At
    documents: At


class Places:
    """The collections of one connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._known: dict[str, Made] = {}

    def forget(self, collection: str) -> None:
        """Look the collection up at its next use."""
        self._known.pop(collection, None)

    def made(self, collection: str) -> Made:
        """How the collection was made, as it is known; CollectionNotFound."""
        return self._known.get(collection) or self.look_up(collection)

    def look_up(self, collection: str) -> Made:
        """Ask the server how the collection was made; CollectionNotFound."""
        self.forget(collection)
        made = classes.look_up(self._connection, collection)
        self._known[collection] = made
        return made

    def fresh(self, collection: str, tenant: str) -> Made:
        """Look the collection and the tenant up.

        Before each write, because the server would make a class or a property that is missing.
        """
        made = self.look_up(collection)
        check_tenant(made.schema, tenant)
        with answering():
            if tenant and not self.at(made).chunks.tenants.exists(names.tenant_of(tenant)):
                raise tenant_missing(collection, tenant)
        return made

    def at(self, made: Made, tenant: str = "") -> Place:
        """Where the collection, or a tenant of it, lies; asks the server nothing."""
        name, written = made.schema.name, names.tenant_of(tenant) if tenant else ""
        return Place(
            made,
            tenant,
            self._connection.at(names.class_of(names.CHUNKS, name), written),
            self._connection.at(names.class_of(names.DOCUMENTS, name), written),
        )

    def on(self, collection: str, tenant: str, act: Callable[[Place], T]) -> T:
        """Do something with a collection or a tenant.

        What is known of it gets stale when another process makes it anew: where the server
        refuses, it is looked up once more, and then said to be missing where it is.
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

    def _act(self, made: Made, tenant: str, act: Callable[[Place], T]) -> T:
        with answering():
            return act(self.at(made, tenant))

    def clause(self, at: Place, where: Where | None) -> Clause:
        """Translate a filter; a property that is not known may be new."""
        if where is None:
            return True
        made = at.made
        if not needed(where) <= made.properties:
            made = self.fresh(made.schema.name, at.tenant)
        return translate(where, made.properties)
