"""Properties and terms of chunks without their texts and vectors."""

from collections.abc import Callable

import pytest
from store_cases import chunk

from callslip.errors import CollectionNotFound, InvalidRequest, TenantNotFound
from callslip.stores.contract import Store
from callslip.stores.records import CollectionSchema, VectorSpec

pytest_plugins = ["store_fixtures"]

NAMES = ("kind", "tags", "year", "draft", "section", "lang", "level", "since")


def test_properties_are_what_filters_see(store: Store, collection_name: str) -> None:
    law = {"kind": "law", "tags": ["a", "b"], "year": 2019, "draft": False, "since": "2019-01-01"}
    store.batch_upsert_chunks(
        collection_name,
        [
            chunk("a", properties={**law, "other": "x"}, section="1/scope", lang="en", level=2),
            chunk("b", properties={"kind": 7}, level=0),
        ],
    )
    found = store.properties(collection_name, ["b", "nowhere", "a", "a"], NAMES)
    assert found == {
        "a": {**law, "section": "1/scope", "lang": "en", "level": 2},
        "b": {"kind": 7, "level": 0},
    }
    assert store.properties(collection_name, ["a"], []) == {"a": {}}
    assert store.properties(collection_name, [], NAMES) == {}


def test_properties_follow_a_chunk_that_is_written_again_and_go_with_it(
    store: Store, collection_name: str
) -> None:
    store.batch_upsert_chunks(collection_name, [chunk("a", properties={"kind": "law", "year": 1})])
    store.batch_upsert_chunks(collection_name, [chunk("a", properties={"kind": "faq"})])
    assert store.properties(collection_name, ["a"], NAMES) == {"a": {"kind": "faq", "level": 0}}
    store.delete_chunks(collection_name, ["a"])
    assert store.properties(collection_name, ["a"], NAMES) == {}


@pytest.mark.long
def test_properties_of_many_chunks_come_at_once(store: Store, collection_name: str) -> None:
    ids = [f"c{i:04}" for i in range(700)]
    store.batch_upsert_chunks(
        collection_name, [chunk(i, properties={"kind": i}, document_id=i[:3]) for i in ids]
    )
    found = store.properties(collection_name, ids, ["kind", "document_id"])
    assert found == {i: {"kind": i, "document_id": i[:3]} for i in ids}


def test_properties_are_a_tenants_own(store: Store, names: Callable[[], str]) -> None:
    collection_name = names()
    with pytest.raises(CollectionNotFound):
        store.properties(collection_name, ["a"], NAMES)
    store.ensure_schema(CollectionSchema(collection_name, VectorSpec(2), tenants=True))
    store.ensure_tenant(collection_name, "one")
    store.ensure_tenant(collection_name, "two")
    store.batch_upsert_chunks(
        collection_name, [chunk("a", properties={"kind": "law"})], tenant="one"
    )
    assert store.properties(collection_name, ["a"], ["kind"], tenant="one") == {
        "a": {"kind": "law"}
    }
    assert store.properties(collection_name, ["a"], ["kind"], tenant="two") == {}
    with pytest.raises(InvalidRequest):
        store.properties(collection_name, ["a"], NAMES)
    with pytest.raises(TenantNotFound):
        store.properties(collection_name, ["a"], NAMES, tenant="three")


@pytest.mark.long
def test_terms_are_what_was_written_last(store: Store, collection_name: str) -> None:
    ids = [f"c{i:04}" for i in range(700)]
    store.batch_upsert_chunks(collection_name, [chunk(i, terms=f"word {i}") for i in ids])
    store.batch_upsert_chunks(collection_name, [chunk("c0001", terms="another")])
    store.delete_chunks(collection_name, ["c0002"])
    found = store.terms(collection_name, [*ids, "c0000", "nowhere"])
    kept = set(ids) - {"c0001", "c0002"}
    assert found == {"c0001": "another", **{i: f"word {i}" for i in kept}}
    assert store.terms(collection_name, []) == {}


def test_terms_are_a_tenants_own(store: Store, names: Callable[[], str]) -> None:
    collection_name = names()
    with pytest.raises(CollectionNotFound):
        store.terms(collection_name, ["a"])
    store.ensure_schema(CollectionSchema(collection_name, VectorSpec(2), tenants=True))
    store.ensure_tenant(collection_name, "one")
    store.ensure_tenant(collection_name, "two")
    store.batch_upsert_chunks(collection_name, [chunk("a", terms="law")], tenant="one")
    assert store.terms(collection_name, ["a"], tenant="one") == {"a": "law"}
    assert store.terms(collection_name, ["a"], tenant="two") == {}
