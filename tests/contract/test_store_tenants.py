"""How every store keeps tenants apart."""

from collections.abc import Callable
from contextlib import closing

import pytest
from store_cases import EAST, chunk, ids

from callslip.errors import CollectionNotFound, Conflict, InvalidRequest, TenantNotFound
from callslip.stores.contract import Store
from callslip.stores.properties.filters import parse
from callslip.stores.records import CollectionSchema, DocumentRecord, VectorSpec

pytest_plugins = ["store_fixtures"]

OURS, THEIRS = "서울시 A/1", "서울시 a/1"


@pytest.fixture
def house(store: Store, names: Callable[[], str]) -> str:
    """A collection with two tenants of like names."""
    name = names()
    store.ensure_schema(
        CollectionSchema(name, VectorSpec(2), {"title": VectorSpec(2)}, tenants=True)
    )
    for tenant in (OURS, THEIRS):
        store.ensure_tenant(name, tenant)
    return name


CALLS: dict[str, Callable[[Store, str, str], object]] = {
    "batch_upsert_documents": lambda s, c, t: s.batch_upsert_documents(
        c, [DocumentRecord("d", "", "")], tenant=t
    ),
    "batch_upsert_chunks": lambda s, c, t: s.batch_upsert_chunks(c, [chunk("a")], tenant=t),
    "vector_query": lambda s, c, t: s.vector_query(c, EAST, 1, tenant=t),
    "exact": lambda s, c, t: s.vector_query(c, EAST, 1, tenant=t, method="manhattan"),
    "keyword_query": lambda s, c, t: s.keyword_query(c, "every", 1, tenant=t),
    "hybrid_query": lambda s, c, t: s.hybrid_query(c, EAST, "every", 1, tenant=t),
    "get_chunks": lambda s, c, t: s.get_chunks(c, ["a"], tenant=t),
    "get_documents": lambda s, c, t: s.get_documents(c, ["d"], tenant=t),
    "find_ids": lambda s, c, t: s.find_ids(c, tenant=t),
    "chunk_ids": lambda s, c, t: s.chunk_ids(c, "d", tenant=t),
    "document_ids": lambda s, c, t: s.document_ids(c, tenant=t),
    "delete_chunks": lambda s, c, t: s.delete_chunks(c, ["a"], tenant=t),
    "delete_document": lambda s, c, t: s.delete_document(c, "d", tenant=t),
    "count": lambda s, c, t: s.count(c, tenant=t),
    "aggregate_group_by": lambda s, c, t: s.aggregate_group_by(c, "p", tenant=t),
    "deepest_level": lambda s, c, t: s.deepest_level(c, tenant=t),
}


@pytest.mark.parametrize("call", CALLS)
def test_every_call_needs_a_tenant_that_exists(store: Store, house: str, call: str) -> None:
    with pytest.raises(TenantNotFound, match="'부산시'"):
        CALLS[call](store, house, "부산시")
    with pytest.raises(InvalidRequest, match="has tenants"):
        CALLS[call](store, house, "")


@pytest.mark.parametrize("call", CALLS)
def test_a_collection_without_tenants_takes_none(store: Store, shelf: str, call: str) -> None:
    with pytest.raises(InvalidRequest, match=f"no tenants, '{OURS}'"):
        CALLS[call](store, shelf, OURS)


@pytest.mark.parametrize("call", CALLS)
def test_a_tenant_of_no_collection_is_a_missing_collection(store: Store, call: str) -> None:
    with pytest.raises(CollectionNotFound, match="법 Nowhere"):
        CALLS[call](store, "법 Nowhere", OURS)


def test_nobody_sees_anothers_chunks_or_documents(store: Store, house: str) -> None:
    store.batch_upsert_documents(house, [DocumentRecord("doc", "ours", "")], tenant=OURS)
    ours = [chunk("a", body="ours", named={"title": EAST}), chunk("b", level=4)]
    store.batch_upsert_chunks(house, ours, tenant=OURS)
    store.batch_upsert_chunks(house, [chunk("a", body="theirs")], tenant=THEIRS)
    everything = parse({"document_id ~": "*"}, None)
    for tenant, expected in ((OURS, ["a", "b"]), (THEIRS, ["a"])):
        for where in (None, everything):
            assert ids(store.vector_query(house, EAST, 9, where, tenant=tenant)) == expected
            assert ids(store.keyword_query(house, "every", 9, where, tenant=tenant)) == expected
            assert store.count(house, where, tenant=tenant) == len(expected)
            assert store.find_ids(house, where, tenant=tenant) == expected
        assert store.chunk_ids(house, "doc", tenant=tenant)["keyword"] == set(expected)
        assert store.document_ids(house, tenant=tenant) == {"doc"}
    assert store.get_chunks(house, ["a", "b"], tenant=THEIRS)[0].body == "theirs"
    assert store.get_documents(house, ["doc"], tenant=THEIRS) == []
    assert store.deepest_level(house, tenant=OURS) == 4
    assert store.deepest_level(house, tenant=THEIRS) == 0
    found = store.vector_query(house, EAST, 9, tenant=OURS, vector_name="title")
    assert ids(found) == ["a"]
    assert store.vector_query(house, EAST, 9, tenant=THEIRS, vector_name="title") == []


def test_nobodys_scores_depend_on_anothers_words(store: Store, house: str) -> None:
    store.batch_upsert_chunks(house, [chunk("a", terms="x y"), chunk("b", terms="y")], tenant=OURS)
    alone = store.keyword_query(house, "x y", 9, tenant=OURS)
    crowd = [chunk(f"c{i}", terms="x x x long " * 3) for i in range(30)]
    store.batch_upsert_chunks(house, crowd, tenant=THEIRS)
    assert store.keyword_query(house, "x y", 9, tenant=OURS) == alone


def test_deleting_for_one_leaves_the_others(store: Store, house: str) -> None:
    for tenant in (OURS, THEIRS):
        store.batch_upsert_documents(house, [DocumentRecord("doc", "", "")], tenant=tenant)
        store.batch_upsert_chunks(house, [chunk("a"), chunk("b")], tenant=tenant)
    store.delete_chunks(house, ["a"], tenant=OURS)
    assert store.find_ids(house, tenant=OURS) == ["b"]
    store.delete_document(house, "doc", tenant=OURS)
    assert store.count(house, tenant=OURS) == 0
    assert store.document_ids(house, tenant=OURS) == set()
    assert store.find_ids(house, tenant=THEIRS) == ["a", "b"]
    assert len(store.get_documents(house, ["doc"], tenant=THEIRS)) == 1


def test_a_dropped_tenant_is_gone_and_may_come_back_empty(store: Store, house: str) -> None:
    for tenant in (OURS, THEIRS):
        store.batch_upsert_chunks(house, [chunk("a")], tenant=tenant)
    assert store.tenants(house) == sorted([OURS, THEIRS])
    for _ in range(2):
        store.drop_tenant(house, OURS)
        assert store.tenants(house) == [THEIRS]
    with pytest.raises(TenantNotFound):
        store.count(house, tenant=OURS)
    store.ensure_tenant(house, OURS)
    store.ensure_tenant(house, OURS)
    assert store.count(house, tenant=OURS) == 0
    assert store.vector_query(house, EAST, 9, tenant=OURS) == []
    assert store.count(house, tenant=THEIRS) == 1


def test_a_collection_with_tenants_is_dropped_whole(store: Store, house: str) -> None:
    schema = store.schema(house)
    store.batch_upsert_chunks(house, [chunk("a")], tenant=OURS)
    store.drop_collection(house)
    with pytest.raises(CollectionNotFound):
        store.count(house, tenant=OURS)
    store.ensure_schema(schema)
    assert store.tenants(house) == []
    store.ensure_tenant(house, OURS)
    assert store.count(house, tenant=OURS) == 0


def test_tenants_are_made_only_where_a_collection_has_them(store: Store, shelf: str) -> None:
    for call in (store.ensure_tenant, store.drop_tenant):
        with pytest.raises(InvalidRequest, match="no tenants"):
            call(shelf, OURS)
        with pytest.raises(CollectionNotFound):
            call("법 Nowhere", OURS)
    assert store.tenants(shelf) == []
    with pytest.raises(CollectionNotFound):
        store.tenants("법 Nowhere")
    with pytest.raises(Conflict, match="no tenants"):
        store.ensure_schema(CollectionSchema(shelf, VectorSpec(2), tenants=True))


def test_a_tenant_without_a_name_is_refused(store: Store, house: str) -> None:
    with pytest.raises(InvalidRequest):
        store.ensure_tenant(house, "")


def test_another_process_sees_the_schema_and_the_tenants(
    store: Store, open_store: Callable[[], Store], house: str
) -> None:
    with closing(open_store()) as other:
        assert house in other.collections()
        assert other.schema(house) == store.schema(house)
        assert other.tenants(house) == sorted([OURS, THEIRS])
        other.batch_upsert_chunks(house, [chunk("a")], tenant=OURS)
        other.ensure_tenant(house, "new")
        other.batch_upsert_chunks(house, [chunk("n")], tenant="new")
    assert store.find_ids(house, tenant=OURS) == ["a"]
    assert store.find_ids(house, tenant="new") == ["n"]


def test_a_collection_that_is_not_there_has_no_schema(store: Store, shelf: str) -> None:
    assert shelf in store.collections()
    store.drop_collection(shelf)
    assert shelf not in store.collections()
    with pytest.raises(CollectionNotFound, match=shelf):
        store.schema(shelf)
