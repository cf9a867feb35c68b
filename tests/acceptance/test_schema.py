"""What was ingested can be filtered and counted by each of its fields (specification 003 §9.1).

On articles of law with their dates, in the stores that run here by themselves; the contract suite
holds every store to every operator.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from functools import cache
from typing import Any

import pytest
from judged_parts import Hold, Tell
from stack import Stack

from evals.client import Desk
from evals.judge import ingested, scratch_name
from stores.filters import Condition, Where
from stores.records import visible
from stores.registry import make_store

SET, KINDS = "ko_law_versions", ("chroma", "tfidf")

OF_CHUNKS = ("section", "level", "ordinal", "lang", "parent_id")
OF_DOCUMENTS = ("document_id", "filename", "title", "act", "article", "n_versions")
DATES = ("valid_from", "valid_to")

PASSAGES = Where((Condition("level", ">=", 2.0),))


@pytest.fixture(scope="module")
def collection_in(desk: Desk, held: Hold) -> Iterator[Callable[[str], str]]:
    """The collection of a store; what was embedded for one is not embedded again for another."""
    with ExitStack() as kept:

        @cache
        def collection(kind: str) -> str:
            shelf = held(SET)
            if kind == "chroma":
                return shelf.collection
            name = scratch_name(SET)
            kept.enter_context(ingested(desk, name, shelf.judged, [], kind))
            return name

        yield collection


def chunks_of(stack: Stack, kind: str, collection: str) -> dict[str, dict[str, Any]]:
    """What filters see of every passage, read from the store."""
    with closing(make_store(stack.settings, kind)) as store:
        ids = store.find_ids(collection, PASSAGES)
        return {chunk.chunk_id: visible(chunk) for chunk in store.get_chunks(collection, ids)}


@pytest.mark.parametrize("kind", KINDS)
def test_every_field_of_documents_and_chunks_filters_at_the_desk(
    stack: Stack, desk: Desk, collection_in: Callable[[str], str], kind: str
) -> None:
    collection = collection_in(kind)
    chunks = chunks_of(stack, kind, collection)

    def found(**having: object) -> set[str]:
        body = {"collection": collection, "query": "신고", "as_of": "any", "having_all": having}
        return {hit["chunk_id"] for hit in desk.search({**body, "top": 200})["hits"]}

    for field in OF_CHUNKS + OF_DOCUMENTS:
        value, count = Counter(c[field] for c in chunks.values()).most_common()[-1]
        meant = {i for i, c in chunks.items() if c[field] == value}
        assert len(meant) == count
        assert found(**{field: value}) == meant, field
    for field in DATES:
        days = sorted(c[field] for c in chunks.values() if c.get(field))
        middle = days[len(days) // 2]
        meant = {i for i, c in chunks.items() if c.get(field) and c[field] <= middle}
        assert found(**{f"{field} <=": middle}) == meant, field
    entity = next(e for c in chunks.values() for e in c.get("entities", ()))
    meant = {i for i, c in chunks.items() if entity in c.get("entities", ())}
    assert found(**{"entities @": entity}) == meant


@pytest.mark.parametrize("kind", KINDS)
def test_aggregates_by_every_field_count_what_filters_find(
    stack: Stack, desk: Desk, collection_in: Callable[[str], str], tell: Tell, kind: str
) -> None:
    collection = collection_in(kind)
    chunks = chunks_of(stack, kind, collection)
    with closing(make_store(stack.settings, kind)) as store:
        for field in OF_CHUNKS + OF_DOCUMENTS + DATES:
            groups = store.aggregate_group_by(collection, field, PASSAGES)
            assert dict(groups) == Counter(c[field] for c in chunks.values() if c.get(field)), field
    proposed = desk.get(f"/v1/collections/{collection}/facets/proposals")["properties"]
    counted = {p["name"]: p["values"] for p in proposed}
    assert counted["n_versions"] == Counter(f"{c['n_versions']:g}" for c in chunks.values())
    fields = OF_CHUNKS + OF_DOCUMENTS + DATES
    tell(f"schema, {kind}: {len(fields)} fields of {len(chunks)} passages filter and aggregate")
