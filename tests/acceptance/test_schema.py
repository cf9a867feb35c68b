"""What was ingested can be filtered and counted by each of its fields (specification 003 §9.1).

On articles of law and RFCs with their dates, in the stores that run here by themselves; the
contract suite holds every store to every operator.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from functools import cache
from typing import Any

import pytest
from judged_parts import LONGEST, Hold, Tell, in_test_all, sets
from stack import Stack

from callslip.evals.client import JsonClient
from callslip.evals.judge import ingested, scratch_name
from callslip.stores.properties.filters import Condition, Where, instant
from callslip.stores.records import visible
from callslip.stores.registry import make_store

pytestmark = pytest.mark.timeout(LONGEST)

OUR_LAWS, OUR_RULES = "own_law_versions", "own_rule_versions"
LAWS, RFCS = "ko_law_versions", "en_rfc_small"

WHERE = [
    *((OUR_LAWS, "chroma"), (OUR_LAWS, "tfidf"), (OUR_RULES, "chroma")),
    *(
        pytest.param(name, kind, marks=in_test_all)
        for name, kind in ((LAWS, "chroma"), (LAWS, "tfidf"), (RFCS, "chroma"))
    ),
]

FIELDS = (
    *("section", "level", "ordinal", "lang", "parent_id"),
    *("document_id", "filename", "title", "group"),
)
DATES = ("valid_from", "valid_to")

PASSAGES = Where((Condition("level", ">=", 2.0),))

CollectionIn = Callable[[str, str], str]


@pytest.fixture(scope="module")
def collection_in(client: JsonClient, held: Hold) -> Iterator[CollectionIn]:
    """The collection of a set in a store; what was embedded for one is not embedded for another."""
    with ExitStack() as kept:

        @cache
        def collection(name: str, kind: str) -> str:
            loaded = held(name)
            if kind == "chroma":
                return loaded.collection
            scratch = scratch_name(name)
            kept.enter_context(ingested(client, scratch, loaded.judged, [], kind))
            return scratch

        yield collection


def chunks_of(stack: Stack, kind: str, collection: str) -> dict[str, dict[str, Any]]:
    """What filters see of every passage, read from the store."""
    with closing(make_store(stack.settings, kind)) as store:
        ids = store.find_ids(collection, PASSAGES)
        return {chunk.chunk_id: visible(chunk) for chunk in store.get_chunks(collection, ids)}


@pytest.mark.long
@pytest.mark.parametrize(("name", "kind"), WHERE)
def test_every_field_of_documents_and_chunks_filters_at_the_server(
    stack: Stack, client: JsonClient, held: Hold, collection_in: CollectionIn, name: str, kind: str
) -> None:
    collection = collection_in(name, kind)
    chunks = chunks_of(stack, kind, collection)
    question = next(iter(held(name).judged.queries.values()))

    def found(**having: object) -> set[str]:
        body = {"collection": collection, "query": question, "as_of": "any", "top": 200}
        return {hit["chunk_id"] for hit in client.search({**body, "having_all": having})["hits"]}

    for field in FIELDS:
        value, _ = Counter(c[field] for c in chunks.values()).most_common()[-1]
        assert found(**{field: value}) == {i for i, c in chunks.items() if c[field] == value}, field
    for field in DATES:
        days = {i: day for i, c in chunks.items() if (day := instant(c.get(field) or ""))}
        middle = sorted(days.values())[len(days) // 2]
        meant = {i for i, day in days.items() if day <= middle}
        assert found(**{f"{field} <=": middle.isoformat()}) == meant, field
    entity = next(e for c in chunks.values() for e in c.get("entities", ()))
    meant = {i for i, c in chunks.items() if entity in c.get("entities", ())}
    assert found(**{"entities @": entity}) == meant


@pytest.mark.parametrize(("name", "kind"), WHERE)
def test_aggregates_by_every_field_count_its_values(
    stack: Stack, collection_in: CollectionIn, tell: Tell, name: str, kind: str
) -> None:
    collection = collection_in(name, kind)
    chunks = chunks_of(stack, kind, collection)
    with closing(make_store(stack.settings, kind)) as store:
        for field in FIELDS + DATES:
            groups = dict(store.aggregate_group_by(collection, field, PASSAGES))
            held_by = (c[field] for c in chunks.values() if c.get(field) is not None)
            assert groups == Counter(held_by), field
    tell(
        f"schema, {name} in {kind}: {len(FIELDS + DATES)} fields of {len(chunks)} passages filter"
        " and aggregate"
    )


@pytest.mark.parametrize("kind", ["chroma", "tfidf"])
@pytest.mark.parametrize("laws", sets(OUR_LAWS, LAWS))
def test_the_server_proposes_facets_by_aggregates(
    stack: Stack, client: JsonClient, collection_in: CollectionIn, laws: str, kind: str
) -> None:
    collection = collection_in(laws, kind)
    proposed = client.get(f"/v1/collections/{collection}/facets/proposals")["properties"]
    counted = {found["name"]: found["values"] for found in proposed}["n_versions"]
    versions = Counter(f"{c['n_versions']:g}" for c in chunks_of(stack, kind, collection).values())
    assert counted == {value: versions[value] for value in counted}
