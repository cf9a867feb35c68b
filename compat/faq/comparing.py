"""A question to several collections, by nothing but the similarity of vectors."""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from callslip.errors import InvalidRequest
from compat.faq.rows import FIELDS, entry_id
from compat.floor import Floor
from compat.nearest import NEAREST_FIRST, nearest
from config import get_settings
from retrieval.messages import Hit, SearchRequest, Text
from retrieval.plan import check_query
from stores.records import Value

DIGITS = 6
"""Of similarities: 32 bits hold no more, and the same text is at 1."""

HINT = "Set embedder.kind in the settings."

STRANGERS_HINT = (
    "Leave it out; or, where its vectors are of the embedder that runs here, detach it and attach"
    " it again with `--vectors ours`."
)


class Question(BaseModel):
    """What is asked; what is null is as the settings say."""

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


class Found(BaseModel):
    """A hit, in the shape of VectorSearch."""

    id: str = Field(description="`faq_` and the row's id; of other documents the chunk's id")
    text: str
    metadata: dict[str, Any] = Field(description="question, answer and id; else the properties")
    distance: float = Field(description="1 - similarity")
    similarity: float = Field(description="cosine, -1 to 1")
    collection_name: str


class Comparison(BaseModel):
    """The hits of each collection, best first, and those of all together, each entry once."""

    query: str
    top_k: int
    threshold: float
    collections: dict[str, list[Found]]
    merged: list[Found]


def compare(floor: Floor, question: Question, collections: Sequence[str]) -> Comparison:
    """Ask every collection in turn; raises what a search raises."""
    settings = get_settings()
    top_k = settings.faq.top_k if question.top_k is None else question.top_k
    threshold = settings.faq.threshold if question.threshold is None else question.threshold
    if top_k > settings.search.max_top:
        raise InvalidRequest(
            f"top_k is {top_k}, at most {settings.search.max_top} hits are given",
            hint="Lower top_k, or raise search.max_top in the settings.",
        )
    check_query(question.query, settings.search.max_query_chars)
    for name in collections:
        floor.ledger.collections.get(name)  # before any is searched
    found = {name: _found(floor, question.query, name, top_k, threshold) for name in collections}
    return Comparison(
        query=question.query,
        top_k=top_k,
        threshold=threshold,
        collections=found,
        merged=merged(found, top_k),
    )


def merged(found: Mapping[str, Sequence[Found]], top_k: int) -> list[Found]:
    """The best hits of all, each entry once where it is most similar.

    An entry is known by `id` of its metadata, else by its own id; of equal similarity the first
    collection's hit is kept, and stands first.
    """
    best: dict[str, Found] = {}
    for hits in found.values():
        for hit in hits:
            entry = str(hit.metadata.get("id", hit.id))
            if entry not in best or hit.similarity > best[entry].similarity:
                best[entry] = hit
    order = list(found)
    ranked = sorted(
        best.values(), key=lambda h: (-h.similarity, order.index(h.collection_name))
    )  # stable: hits of one collection stay as they were
    return ranked[:top_k]


def identity(chunk_id: str, properties: Mapping[str, Value]) -> str:
    """What a hit is called: a row of an FAQ by its id."""
    return entry_id(properties["id"]) if properties.keys() >= set(FIELDS) else chunk_id


def _found(floor: Floor, query: str, name: str, top_k: int, threshold: float) -> list[Found]:
    request = SearchRequest.model_validate(
        {"collection": name, "query": query, "top": top_k, "method": "cosine", **NEAREST_FIRST}
    )
    hits = [_hit(hit, name) for hit in nearest(floor.search, request, HINT, STRANGERS_HINT).hits]
    near = [hit for hit in hits if hit.similarity >= round(threshold, DIGITS)]
    return sorted(near, key=lambda hit: -hit.similarity)


def _hit(hit: Hit, collection: str) -> Found:
    leg = hit.legs.vector
    similarity = round(leg.score, DIGITS) + 0.0 if leg else -1.0  # + 0.0: not -0.0
    return Found(
        id=identity(hit.chunk_id, hit.properties),
        text=hit.text,
        metadata=hit.properties,
        distance=round(1 - similarity, DIGITS),
        similarity=similarity,
        collection_name=collection,
    )
