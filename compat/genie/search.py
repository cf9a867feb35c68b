"""The invokers that search by vector similarity."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

from callslip.compat.errors import validated
from callslip.compat.genie.configuration import CONFIGURABLE, checked_parameters, usual
from callslip.compat.genie.documents import ChunkedDocument, documents_of, filter_names
from callslip.compat.genie.invoker import Invoker, as_object, read_json, read_object
from callslip.compat.genie.known_names import known_names
from callslip.compat.genie.scope import scoped_collection
from callslip.compat.nearest import NEAREST_FIRST, nearest
from callslip.errors import InvalidRequest
from callslip.ingestion.provided_chunks import ChunkScope
from callslip.retrieval.messages import SearchRequest
from callslip.stores.naming import clean_tenant
from callslip.vocabulary import DEFAULT_VECTOR

PARAMETERS = CONFIGURABLE[: CONFIGURABLE.index("batch_size")]
"""The parameters that a configuration and a request may set."""

UNUSED = ("filename", "alpha", "auto_limit")
"""Fields of the published package's request that do not apply to a search by vectors alone.

`auto_limit` must be null.
"""

STRANGERS_HINT = "Send a query_embedding of the table's own model."


class SearchInvoker(Invoker):
    """Searches by similarity; the answer is documents, each with its matching chunks."""

    def answer(self, content: str) -> list[ChunkedDocument]:
        """Return the documents, first the document with the nearest chunk."""
        request = self.request(self.request_fields(content))
        hint = "Send query_embedding, or set embedder.kind in the settings."
        response = nearest(self._context.search, request, hint, STRANGERS_HINT)
        return documents_of(response.hits, request.method or "cosine")

    @abstractmethod
    def request_fields(self, content: str) -> dict[str, Any]:
        """Return the query, and the parameters in the content."""

    def request(self, request_fields: Mapping[str, Any]) -> SearchRequest:
        """Return the search; the request's parameters override the configured ones."""
        wanted: dict[str, Any] = {"method": "cosine", "operation_level": "every", **NEAREST_FIRST}
        wanted |= {**usual(self._parameters, PARAMETERS), **request_fields}
        collection = scoped_collection(
            self._context, wanted.get("collection"), wanted.get("tenant")
        )
        tenant = clean_tenant(wanted.get("tenant") or "")
        scope = ChunkScope(self._context.backend, collection.store, collection.name, tenant)
        names = known_names(scope, scope.ledger.collections.property_names(collection.name))
        for group in ("having_all", "having_any"):
            wanted[group] = filter_names(wanted.get(group), names)
        if wanted.get("vector_name") == DEFAULT_VECTOR:
            wanted["vector_name"] = (
                DEFAULT_VECTOR if DEFAULT_VECTOR in collection.schema.named else None
            )
        return validated(SearchRequest, wanted)


class WeaviateSimilaritySearchInvoker(SearchInvoker):
    """Searches with the content as the query; all parameters come from the configuration."""

    takes_text = True

    def request_fields(self, content: str) -> dict[str, Any]:
        """Return the text as the query."""
        return {"query": content}


class WeaviateSimilaritySearchRequestInvoker(SearchInvoker):
    """Searches with the vector in a JSON object, which may also set any parameter."""

    def request_fields(self, content: str) -> dict[str, Any]:
        """Return the parameters in the JSON object; the configuration replaces a null value."""
        return self._checked_fields(read_object(content))

    def _checked_fields(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        if fields.get("auto_limit") is not None:
            raise InvalidRequest("auto_limit is not offered", hint="Set top or horizon instead.")
        parameters = checked_parameters(fields, (*PARAMETERS, "query_embedding", *UNUSED))
        if "query_embedding" not in parameters:
            raise InvalidRequest("query_embedding is missing")
        return {name: value for name, value in parameters.items() if name not in UNUSED}


class WeaviateVectorSimilaritySearchInvoker(WeaviateSimilaritySearchRequestInvoker):
    """Searches with the vector in a JSON object, or with a list of numbers as the vector."""

    def request_fields(self, content: str) -> dict[str, Any]:
        """Return the list as the vector, or the parameters in the JSON object."""
        value = read_json(content)
        return self._checked_fields(
            {"query_embedding": value} if isinstance(value, list) else as_object(value)
        )
