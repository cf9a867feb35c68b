"""The invokers that search."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

from callslip.errors import InvalidRequest
from compat.genie.configured import CONFIGURABLE, told, usual
from compat.genie.documents import ChunkedDocument, documents_of, filter_names
from compat.genie.invoker import Invoker, as_object, read_json, read_object
from compat.genie.places import place
from compat.nearest import NEAREST_FIRST, nearest
from compat.raising import validated
from retrieval.messages import SearchRequest

PARAMETERS = CONFIGURABLE[: CONFIGURABLE.index("batch_size")]
"""What a configuration and a request may say."""

UNUSED = ("filename", "alpha", "auto_limit")
"""Fields of the published package's request that are nothing to a search by vectors alone."""

DEFAULT_VECTOR = "default"
"""What the published package calls the vector that has no name."""


STRANGERS_HINT = "Send a query_embedding of the table's own model."


class SearchInvoker(Invoker):
    """A similarity search; gives documents, each with the chunks of it that were found."""

    def answer(self, content: str) -> list[ChunkedDocument]:
        """The documents, the one with the nearest chunk first."""
        request = self.request(self.asked(content))
        hint = "Send query_embedding, or set embedder.kind in the settings."
        response = nearest(self._floor.search, request, hint, STRANGERS_HINT)
        return documents_of(response.hits, request.method or "cosine")

    @abstractmethod
    def asked(self, content: str) -> dict[str, Any]:
        """The question, and the parameters that the content gives."""

    def request(self, asked: Mapping[str, Any]) -> SearchRequest:
        """The search: what is asked over what is configured over the defaults."""
        wanted: dict[str, Any] = {"method": "cosine", "operation_level": "every", **NEAREST_FIRST}
        wanted |= {**usual(self._parameters, PARAMETERS), **asked}
        collection = place(self._floor, wanted.get("collection"), wanted.get("tenant"))
        names = self._floor.ledger.collections.property_names(collection.name)
        for group in ("having_all", "having_any"):
            wanted[group] = filter_names(wanted.get(group), names)
        if wanted.get("vector_name") == DEFAULT_VECTOR:
            wanted["vector_name"] = (
                DEFAULT_VECTOR if DEFAULT_VECTOR in collection.schema.named else None
            )
        return validated(SearchRequest, wanted)


class WeaviateSimilaritySearchInvoker(SearchInvoker):
    """Searches for the text that it is called with; all parameters are configured."""

    takes_text = True

    def asked(self, content: str) -> dict[str, Any]:
        """The text is the question."""
        return {"query": content}


class WeaviateSimilaritySearchRequestInvoker(SearchInvoker):
    """Searches for the vector in a JSON object, which may give any parameter."""

    def asked(self, content: str) -> dict[str, Any]:
        """The parameters of the object; what is null is as configured."""
        return self._asked(read_object(content))

    def _asked(self, given: Mapping[str, Any]) -> dict[str, Any]:
        if given.get("auto_limit") is not None:
            raise InvalidRequest("auto_limit is not offered", hint="Set top or horizon instead.")
        found = told(given, (*PARAMETERS, "query_embedding", *UNUSED))
        if "query_embedding" not in found:
            raise InvalidRequest("query_embedding is missing")
        return {name: value for name, value in found.items() if name not in UNUSED}


class WeaviateVectorSimilaritySearchInvoker(WeaviateSimilaritySearchRequestInvoker):
    """The same; the vector alone, as a list of numbers, will do."""

    def asked(self, content: str) -> dict[str, Any]:
        """The list is the vector; the parameters of an object."""
        value = read_json(content)
        return self._asked(
            {"query_embedding": value} if isinstance(value, list) else as_object(value)
        )
