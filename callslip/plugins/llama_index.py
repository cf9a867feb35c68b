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
from callslip.plugins.wanted import FOR_READERS, TOP, Desk, Wanted, metadata_of

_OPERATORS = {
    **{each: each for each in ("==", "!=", ">", ">=", "<", "<=", "in")},
    **{"nin": "not-in", "contains": "@", "any": "contains"},
}
"""LlamaIndex's words for the desk's operators."""


class CallslipRetriever(BaseRetriever):
    """Passages of a collection.

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

        Without `url` CALLSLIP_API__URL and CALLSLIP_API__KEY say where the desk is and its key.
        InvalidRequest where a filter or an option is none that the desk has.
        """
        super().__init__(callback_manager=callback_manager, verbose=verbose)
        self._desk = Desk(url, key, timeout)
        self._wanted = Wanted(collection, similarity_top_k).but(**options)
        if filters is not None:
            self._wanted = self._wanted.filtered(having(_tree(filters)))

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return _nodes(self._desk.search(self._wanted, query_bundle.query_str))

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return _nodes(await self._desk.search_async(self._wanted, query_bundle.query_str))


def _nodes(found: models.SearchResponse) -> list[NodeWithScore]:
    """Of the metadata a language model is told only what helps it to read."""
    nodes = []
    for hit in found.hits:
        metadata = metadata_of(hit, found)
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
    """Enumerations come as themselves or as their words."""
    word = getattr(filters.condition, "value", filters.condition) or "and"
    if word not in ("and", "or"):
        raise refused(f"the condition {word!r}")
    parts = (
        _condition(each) if isinstance(each, MetadataFilter) else _tree(each)
        for each in filters.filters
    )
    return Group(word == "or", tuple(parts))


def _condition(given: MetadataFilter) -> Condition:
    operator = getattr(given.operator, "value", given.operator)
    if operator not in _OPERATORS:
        raise refused(f"the operator {operator!r} of {given.key!r}")
    return Condition(given.key, _OPERATORS[operator], given.value)
