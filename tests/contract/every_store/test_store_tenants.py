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
def setup(store: Store, names: Callable[[], str]) -> str:
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
    "chunk_ids_of": lambda s, c, t: s.chunk_ids_of(c, ["d"], tenant=t),
    "document_ids": lambda s, c, t: s.document_ids(c, tenant=t),
    "delete_chunks": lambda s, c, t: s.delete_chunks(c, ["a"], tenant=t),
    "delete_documents": lambda s, c, t: s.delete_documents(c, ["d"], tenant=t),
    "count": lambda s, c, t: s.count(c, tenant=t),
    "aggregate_group_by": lambda s, c, t: s.aggregate_group_by(c, "p", tenant=t),
    "count_documents": lambda s, c, t: s.count_documents(c, "p", ["x"], tenant=t),
    "deepest_level": lambda s, c, t: s.deepest_level(c, tenant=t),
}


@pytest.mark.long
@pytest.mark.parametrize("call", CALLS)
def test_every_call_needs_a_tenant_that_exists(store: Store, setup: str, call: str) -> None:
    with pytest.raises(TenantNotFound, match="'부산시'"):
        CALLS[call](store, setup, "부산시")
    with pytest.raises(InvalidRequest, match="has tenants"):
        CALLS[call](store, setup, "")


@pytest.mark.long
@pytest.mark.parametrize("call", CALLS)
def test_a_collection_without_tenants_takes_none(
    store: Store, collection_name: str, call: str
) -> None:
    with pytest.raises(InvalidRequest, match=f"no tenants, '{OURS}'"):
        CALLS[call](store, collection_name, OURS)


@pytest.mark.long
@pytest.mark.parametrize("call", CALLS)
def test_a_tenant_of_no_collection_is_a_missing_collection(store: Store, call: str) -> None:
    with pytest.raises(CollectionNotFound, match="법 Nowhere"):
        CALLS[call](store, "법 Nowhere", OURS)


def test_nobody_sees_anothers_chunks_or_documents(store: Store, setup: str) -> None:
    store.batch_upsert_documents(setup, [DocumentRecord("doc", "ours", "")], tenant=OURS)
    ours = [chunk("a", body="ours", named={"title": EAST}), chunk("b", level=4)]
    store.batch_upsert_chunks(setup, ours, tenant=OURS)
    store.batch_upsert_chunks(setup, [chunk("a", body="theirs")], tenant=THEIRS)
    everything = parse({"document_id ~": "*"}, None)
    for tenant, expected in ((OURS, ["a", "b"]), (THEIRS, ["a"])):
        for where in (None, everything):
            assert ids(store.vector_query(setup, EAST, 9, where, tenant=tenant)) == expected
            assert ids(store.keyword_query(setup, "every", 9, where, tenant=tenant)) == expected
            assert store.count(setup, where, tenant=tenant) == len(expected)
            assert store.find_ids(setup, where, tenant=tenant) == expected
        assert store.chunk_ids(setup, "doc", tenant=tenant)["keyword"] == set(expected)
        assert store.document_ids(setup, tenant=tenant) == {"doc"}
    assert store.get_chunks(setup, ["a", "b"], tenant=THEIRS)[0].body == "theirs"
    assert store.get_documents(setup, ["doc"], tenant=THEIRS) == []
    assert store.deepest_level(setup, tenant=OURS) == 4
    assert store.deepest_level(setup, tenant=THEIRS) == 0
    found = store.vector_query(setup, EAST, 9, tenant=OURS, vector_name="title")
    assert ids(found) == ["a"]
    assert store.vector_query(setup, EAST, 9, tenant=THEIRS, vector_name="title") == []


def test_nobodys_scores_depend_on_anothers_words(store: Store, setup: str) -> None:
    store.batch_upsert_chunks(setup, [chunk("a", terms="x y"), chunk("b", terms="y")], tenant=OURS)
    alone = store.keyword_query(setup, "x y", 9, tenant=OURS)
    crowd = [chunk(f"c{i}", terms="x x x long " * 3) for i in range(30)]
    store.batch_upsert_chunks(setup, crowd, tenant=THEIRS)
    assert store.keyword_query(setup, "x y", 9, tenant=OURS) == alone


def test_deleting_for_one_leaves_the_others(store: Store, setup: str) -> None:
    for tenant in (OURS, THEIRS):
        store.batch_upsert_documents(setup, [DocumentRecord("doc", "", "")], tenant=tenant)
        store.batch_upsert_chunks(setup, [chunk("a"), chunk("b")], tenant=tenant)
    store.delete_chunks(setup, ["a"], tenant=OURS)
    assert store.find_ids(setup, tenant=OURS) == ["b"]
    store.delete_documents(setup, ["doc"], tenant=OURS)
    assert store.count(setup, tenant=OURS) == 0
    assert store.document_ids(setup, tenant=OURS) == set()
    assert store.find_ids(setup, tenant=THEIRS) == ["a", "b"]
    assert len(store.get_documents(setup, ["doc"], tenant=THEIRS)) == 1


def test_a_dropped_tenant_is_gone_and_may_come_back_empty(store: Store, setup: str) -> None:
    for tenant in (OURS, THEIRS):
        store.batch_upsert_chunks(setup, [chunk("a")], tenant=tenant)
    assert store.tenants(setup) == sorted([OURS, THEIRS])
    for _ in range(2):
        store.drop_tenant(setup, OURS)
        assert store.tenants(setup) == [THEIRS]
    with pytest.raises(TenantNotFound):
        store.count(setup, tenant=OURS)
    store.ensure_tenant(setup, OURS)
    store.ensure_tenant(setup, OURS)
    assert store.count(setup, tenant=OURS) == 0
    assert store.vector_query(setup, EAST, 9, tenant=OURS) == []
    assert store.count(setup, tenant=THEIRS) == 1


def test_a_collection_with_tenants_is_dropped_whole(store: Store, setup: str) -> None:
    schema = store.schema(setup)
    store.batch_upsert_chunks(setup, [chunk("a")], tenant=OURS)
    store.drop_collection(setup)
    with pytest.raises(CollectionNotFound):
        store.count(setup, tenant=OURS)
    store.ensure_schema(schema)
    assert store.tenants(setup) == []
    store.ensure_tenant(setup, OURS)
    assert store.count(setup, tenant=OURS) == 0


def test_tenants_are_made_only_where_a_collection_has_them(
    store: Store, collection_name: str
) -> None:
    for call in (store.ensure_tenant, store.drop_tenant):
        with pytest.raises(InvalidRequest, match="no tenants"):
            call(collection_name, OURS)
        with pytest.raises(CollectionNotFound):
            call("법 Nowhere", OURS)
    assert store.tenants(collection_name) == []
    with pytest.raises(CollectionNotFound):
        store.tenants("법 Nowhere")
    with pytest.raises(Conflict, match="no tenants"):
        store.ensure_schema(CollectionSchema(collection_name, VectorSpec(2), tenants=True))


def test_a_tenant_without_a_name_is_refused(store: Store, setup: str) -> None:
    with pytest.raises(InvalidRequest):
        store.ensure_tenant(setup, "")


def test_another_process_sees_the_schema_and_the_tenants(
    store: Store, open_store: Callable[[], Store], setup: str
) -> None:
    with closing(open_store()) as other:
        assert setup in other.collections()
        assert other.schema(setup) == store.schema(setup)
        assert other.tenants(setup) == sorted([OURS, THEIRS])
        other.batch_upsert_chunks(setup, [chunk("a")], tenant=OURS)
        other.ensure_tenant(setup, "new")
        other.batch_upsert_chunks(setup, [chunk("n")], tenant="new")
    assert store.find_ids(setup, tenant=OURS) == ["a"]
    assert store.find_ids(setup, tenant="new") == ["n"]


def test_a_collection_that_is_not_there_has_no_schema(store: Store, collection_name: str) -> None:
    assert collection_name in store.collections()
    store.drop_collection(collection_name)
    assert collection_name not in store.collections()
    with pytest.raises(CollectionNotFound, match=collection_name):
        store.schema(collection_name)
