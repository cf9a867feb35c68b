"""Comparing the hits of several collections for one query, ranked by vector similarity alone."""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from callslip.compat.context import AdapterContext
from callslip.compat.faq.rows import FIELDS, entry_id
from callslip.compat.nearest import NEAREST_FIRST, nearest
from callslip.errors import InvalidRequest
from callslip.retrieval.messages import Hit, SearchRequest, Span, Text
from callslip.retrieval.query.plan import check_query
from callslip.stores.records import Value

DIGITS = 6
"""Decimal places of a similarity: 32-bit floats have no more, and equal texts reach exactly 1."""

HINT = "Set embedder.kind in the settings."

STRANGERS_HINT = (
    "Leave it out; or, where its vectors are of the embedder that runs here, detach it and attach"
    " it again with `--vectors ours`."
)


class Question(BaseModel):
    """A query with its limits; the settings provide a limit that is null."""

    model_config = ConfigDict(extra="forbid")

    query: Text = Field(description="the question, in English or Korean")
    top_k: int | None = Field(
        None,
        ge=1,
        strict=True,
        description="most hits of each collection, and of all; left out: faq.top_k",
    )
    threshold: float | None = Field(
        None,
        ge=-1,
        le=1,
        strict=True,
        allow_inf_nan=False,
        description="least cosine similarity of a hit; left out: faq.threshold",
    )


VECTOR_SEARCH = {"id", "text", "metadata", "distance", "similarity", "collection_name"}
"""The fields of a hit of `VectorSearch`."""


class ComparedHit(BaseModel):
    """A hit in the format of `VectorSearch`, and the passage that it is."""

    id: str = Field(description="`faq_` and the row's id; of other documents the chunk's id")
    text: str
    metadata: dict[str, Any] = Field(
        description="question, answer and id; else the properties, and `source_url` if it is known"
    )
    distance: float = Field(description="1 - similarity")
    similarity: float = Field(description="cosine, -1 to 1")
    collection_name: str
    document_id: str
    title: str = Field(description="of the document")
    heading: str = Field(description="of the passage; empty without one")
    span: Span = Field(description="characters of the passage in its document")


class Comparison(BaseModel):
    """The hits of each collection, best first, and the merged hits, in which each entry is once."""

    query: str
    top_k: int
    threshold: float
    collections: dict[str, list[ComparedHit]]
    merged: list[ComparedHit]


def compare(context: AdapterContext, question: Question, collections: Sequence[str]) -> Comparison:
    """Search each collection in turn; raise the errors of a search.

    Raises InvalidRequest if `top_k` is above `search.max_top`, and CollectionNotFound before any
    collection is searched.
    """
    settings = context.settings
    top_k = settings.faq.top_k if question.top_k is None else question.top_k
    threshold = settings.faq.threshold if question.threshold is None else question.threshold
    if top_k > settings.search.max_top:
        raise InvalidRequest(
            f"top_k is {top_k}, at most {settings.search.max_top} hits are given",
            hint="Lower top_k, or raise search.max_top in the settings.",
        )
    check_query(question.query, settings.search.max_query_chars)
    for name in collections:
        context.ledger.collections.get(name)  # fail before any search if one is missing
    hits_by_collection = {
        name: _collection_hits(context, question.query, name, top_k, threshold)
        for name in collections
    }
    return Comparison(
        query=question.query,
        top_k=top_k,
        threshold=threshold,
        collections=hits_by_collection,
        merged=merged(hits_by_collection, top_k),
    )


def merged(
    hits_by_collection: Mapping[str, Sequence[ComparedHit]], top_k: int
) -> list[ComparedHit]:
    """Return the `top_k` best hits of all collections; of each entry, only the most similar hit.

    The `id` in the metadata identifies an entry; without one, the hit's own id does. Of equal hits
    the one from the first collection stays and ranks first.
    """
    best: dict[str, ComparedHit] = {}
    for hits in hits_by_collection.values():
        for hit in hits:
            entry = str(hit.metadata.get("id", hit.id))
            if entry not in best or hit.similarity > best[entry].similarity:
                best[entry] = hit
    order = list(hits_by_collection)
    ranked = sorted(
        best.values(), key=lambda h: (-h.similarity, order.index(h.collection_name))
    )  # a stable sort keeps the order of equal hits within a collection
    return ranked[:top_k]


def identity(chunk_id: str, properties: Mapping[str, Value]) -> str:
    """Return the id of a hit: the row's id for a row of an FAQ, otherwise the chunk's id."""
    return entry_id(properties["id"]) if properties.keys() >= set(FIELDS) else chunk_id


def _collection_hits(
    context: AdapterContext, query: str, name: str, top_k: int, threshold: float
) -> list[ComparedHit]:
    request = SearchRequest.model_validate(
        {"collection": name, "query": query, "top": top_k, "method": "cosine", **NEAREST_FIRST}
    )
    hits = [_hit(hit, name) for hit in nearest(context.search, request, HINT, STRANGERS_HINT).hits]
    near = [hit for hit in hits if hit.similarity >= round(threshold, DIGITS)]
    return sorted(near, key=lambda hit: -hit.similarity)


def with_source(hit: Hit) -> dict[str, Any]:
    """Return the properties of a hit, with the address of its document's source if it is known."""
    return hit.properties | ({"source_url": hit.source_url} if hit.source_url else {})


def _hit(hit: Hit, collection: str) -> ComparedHit:
    vector_hit = hit.legs.vector
    similarity = round(vector_hit.score, DIGITS) + 0.0 if vector_hit else -1.0  # + 0.0: not -0.0
    return ComparedHit(
        id=identity(hit.chunk_id, hit.properties),
        text=hit.text,
        metadata=with_source(hit),
        distance=round(1 - similarity, DIGITS),
        similarity=similarity,
        collection_name=collection,
        document_id=hit.document_id,
        title=hit.title,
        heading=hit.heading,
        span=hit.span,
    )
