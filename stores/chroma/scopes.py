"""Finds the Chroma tables and the keyword index of each collection and tenant by their names."""

import threading
from collections import OrderedDict
from collections.abc import Callable

from callslip.errors import CallslipError, CollectionNotFound, KeywordsLost, StoreDown
from callslip.stores.chroma import names
from callslip.stores.chroma.connection import Connection, Missing
from callslip.stores.chroma.scope import Scope
from callslip.stores.chroma.table import Table
from callslip.stores.fulltext.contract import KeywordIndexes, Keywords
from callslip.stores.records import CollectionSchema
from callslip.stores.schemas import check_tenant, load_schema, tenant_missing

MOST_SCOPES = 1024
"""The most scopes that are kept, a few KB each; to make one takes 35 µs."""


class Scopes:
    """Makes the scopes of collections and tenants, and keeps those used last for all threads."""

    def __init__(self, connection: Connection, indexes: KeywordIndexes) -> None:
        self._connection, self._indexes = connection, indexes
        self._scopes: OrderedDict[tuple[str, str], tuple[CollectionSchema, Scope]] = OrderedDict()
        self._lock = threading.Lock()

    def schema_table(self, collection: str) -> Table:
        """The table that stores the schema of a collection."""
        return Table(self._connection, names.schema_of(collection), _missing(collection, ""))

    def schema(self, collection: str) -> CollectionSchema:
        """The schema of a collection. Raises CollectionNotFound."""
        return load_schema(self.schema_table(collection).about()["schema"])

    def of(self, collection: str, tenant: str = "") -> Scope:
        """The scope of a collection or a tenant, the same object for all threads."""
        schema = self.schema(collection)
        check_tenant(schema, tenant)
        return self.of_schema(schema, tenant)

    def of_schema(self, schema: CollectionSchema, tenant: str) -> Scope:
        """The scope of a collection with this schema; made anew if the schema is another one."""
        with self._lock:
            known, parts = self._scopes.get((schema.name, tenant), (None, None))
            if parts is None or known != schema:
                parts = self._make(schema, tenant)
                self._scopes[schema.name, tenant] = schema, parts
                if len(self._scopes) > MOST_SCOPES:
                    self._scopes.popitem(last=False)
            self._scopes.move_to_end((schema.name, tenant))
            return parts

    def keywords(self, collection: str, tenant: str) -> Keywords:
        """The keyword index of a collection or tenant; found by its name if Chroma is down.

        Then a wrong tenant of a collection without tenants is a missing index.
        """
        try:
            return self.of(collection, tenant).keywords
        except StoreDown:
            with self._lock:
                _known, parts = self._scopes.get((collection, tenant), (None, None))
            return parts.keywords if parts else self._index_of(collection, tenant)

    def _index_of(self, collection: str, tenant: str) -> Keywords:
        name = names.folder_of(collection, tenant)
        return self._indexes.of(name, collection, lambda: self._absent(collection, tenant))

    def _absent(self, collection: str, tenant: str) -> CallslipError:
        """The error for a keyword index that does not exist: it is lost if Chroma has its tables.

        Raises StoreDown if Chroma does not answer.
        """
        missing = _missing(collection, tenant)
        documents = Table(self._connection, names.documents_of(collection, tenant), missing)
        if not documents.exists():
            return missing()
        return KeywordsLost(f"The keyword index of {collection} is lost.")

    def _make(self, schema: CollectionSchema, tenant: str) -> Scope:
        collection, missing = schema.name, _missing(schema.name, tenant)

        def tables(name_of: Callable[[str, str, str], str]) -> dict[str, Table]:
            return {
                name: Table(
                    self._connection,
                    name_of(collection, tenant, name),
                    missing,
                    schema.vector(name).metric,
                )
                for name in ("", *schema.named)
            }

        return Scope(
            tables(names.chunks_of),
            tables(names.parents_of),
            Table(self._connection, names.documents_of(collection, tenant), missing),
            self._index_of(collection, tenant),
        )


def _missing(collection: str, tenant: str) -> Missing:
    if tenant:
        return lambda: tenant_missing(collection, tenant)
    return lambda: CollectionNotFound(f"Collection {collection} does not exist.")
