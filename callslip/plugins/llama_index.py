"""A retriever for LlamaIndex: `pip install 'callslip[llama-index]'`."""

from typing import Any

from llama_index.core.callbacks import CallbackManager
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import (
    NodeRelationship,
    NodeWithScore,
    QueryBundle,
    RelatedNodeInfo,
    TextNode,
)
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters

from callslip.client import models
from callslip.plugins.conditions import Condition, Group, having, refused
from callslip.plugins.requests import FOR_READERS, TOP, SearchOptions, Server, metadata_of

_OPERATORS = {
    **{each: each for each in ("==", "!=", ">", ">=", "<", "<=", "in")},
    **{"nin": "not-in", "contains": "@", "any": "contains"},
}
"""LlamaIndex's operators, each with the server's."""


class CallslipRetriever(BaseRetriever):
    """Retrieves passages of a collection.

    retriever = CallslipRetriever("main", similarity_top_k=3)
    retriever.retrieve("how long is parental leave?")
    """

    def __init__(
        self,
        collection: str,
        *,
        url: str | None = None,
        key: str | None = None,
        timeout: float = 120.0,
        similarity_top_k: int | None = TOP,
        filters: MetadataFilters | None = None,
        callback_manager: CallbackManager | None = None,
        verbose: bool = False,
        **options: Any,
    ) -> None:
        """`options` are those of a search: tenant, alpha, as_of, having_all … (docs/filters.md).

        Without `url`, CALLSLIP_API__URL and CALLSLIP_API__KEY have the server's URL and its key.
        Raises InvalidRequest if the server has no such filter or option.
        """
        super().__init__(callback_manager=callback_manager, verbose=verbose)
        self._server = Server(url, key, timeout)
        self._options = SearchOptions(collection, similarity_top_k).with_options(**options)
        if filters is not None:
            self._options = self._options.filtered(having(_tree(filters)))

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return _nodes(self._server.search(self._options, query_bundle.query_str))

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return _nodes(await self._server.search_async(self._options, query_bundle.query_str))


def _nodes(response: models.SearchResponse) -> list[NodeWithScore]:
    """Convert hits to nodes; a language model reads only FOR_READERS and the properties."""
    nodes = []
    for hit in response.hits:
        metadata = metadata_of(hit, response)
        hidden = [name for name in metadata if name not in {*FOR_READERS, *hit.properties}]
        node = TextNode(
            id_=hit.chunk_id,
            text=hit.text,
            metadata=metadata,
            start_char_idx=hit.span.start,
            end_char_idx=hit.span.end,
            excluded_llm_metadata_keys=hidden,
            excluded_embed_metadata_keys=hidden,
            relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=hit.document_id)},
        )
        nodes.append(NodeWithScore(node=node, score=hit.score))
    return nodes


def _tree(filters: MetadataFilters) -> Group:
    """Parse a filter; LlamaIndex passes enumerations as members or as their values."""
    word = getattr(filters.condition, "value", filters.condition) or "and"
    if word not in ("and", "or"):
        raise refused(f"the condition {word!r}")
    parts = (
        _condition(each) if isinstance(each, MetadataFilter) else _tree(each)
        for each in filters.filters
    )
    return Group(word == "or", tuple(parts))


def _condition(metadata_filter: MetadataFilter) -> Condition:
    operator = getattr(metadata_filter.operator, "value", metadata_filter.operator)
    if operator not in _OPERATORS:
        raise refused(f"the operator {operator!r} of {metadata_filter.key!r}")
    return Condition(metadata_filter.key, _OPERATORS[operator], metadata_filter.value)
