"""A not-found or an empty list counts only if the server said afterwards that it is ready."""

from collections.abc import Callable
from contextlib import closing

import numpy as np
import pytest

from callslip.errors import NotFound, StoreDown, StoreTooOld
from callslip.stores import setup
from callslip.stores.contract import Store
from callslip.stores.records import CollectionSchema, VectorSpec
from callslip.stores.servers.absence import proven

pytest_plugins = ["store_fixtures"]

EMPTY: dict[str, Callable[[Store, str], object]] = {
    "collections": lambda s, c: s.collections(),
    "tenants": lambda s, c: s.tenants(f"{c}t"),
    "chunk_ids": lambda s, c: s.chunk_ids(c, "d"),
    "chunk_ids_of": lambda s, c: s.chunk_ids_of(c, ["d"]),
    "document_ids": lambda s, c: s.document_ids(c),
    "get_documents": lambda s, c: s.get_documents(c, ["d"]),
    "find_ids": lambda s, c: s.find_ids(c),
    "count": lambda s, c: proven(lambda: s.count(c), s.ping),
}

EAST = np.array([1, 0], np.float32)

MISSING: dict[str, Callable[[Store, str], object]] = {
    "schema": lambda s, c: s.schema(f"{c}x"),
    "delete_documents": lambda s, c: s.delete_documents(f"{c}x", ["d"]),
    "drop_collection": lambda s, c: s.drop_collection(f"{c}x"),
    "tenant": lambda s, c: s.chunk_ids(f"{c}t", "d", tenant="nobody"),
}


@pytest.fixture
def starting(store: Store, names: Callable[[], str], monkeypatch: pytest.MonkeyPatch) -> str:
    """An empty collection, and one with tenants beside it, of a server that is not ready."""
    if store.kind == "memory":
        pytest.skip("it has no server")
    name = names()
    store.ensure_schema(CollectionSchema(name, VectorSpec(2)))
    store.ensure_schema(CollectionSchema(f"{name}t", VectorSpec(2), tenants=True))

    def not_ready() -> None:
        raise StoreDown("not ready")

    for part in {store, getattr(store, "_connection", store)}:
        monkeypatch.setattr(part, "ping", not_ready)
    return name


@pytest.mark.long
@pytest.mark.parametrize("call", EMPTY)
def test_an_empty_list_counts_only_from_a_ready_server(
    store: Store, starting: str, call: str
) -> None:
    with pytest.raises(StoreDown, match="not ready"):
        EMPTY[call](store, starting)


def test_a_search_that_finds_nothing_does_not_wait_for_a_proof(store: Store, starting: str) -> None:
    assert store.count(starting) == 0
    assert store.vector_query(starting, EAST, 5) == []
    assert store.vector_query(starting, EAST, 5, method="manhattan") == []
    assert store.keyword_query(starting, "word", 5) == []


@pytest.mark.parametrize("call", MISSING)
def test_a_not_found_counts_only_from_a_ready_server(
    store: Store, starting: str, call: str
) -> None:
    if store.kind == "tfidf":  # it reads its catalog in the same transaction, without a server
        return
    with pytest.raises(StoreDown, match="not ready"):
        MISSING[call](store, starting)


def test_a_server_older_than_the_supported_versions_is_refused(
    open_store: Callable[[], Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(setup, "OLDEST", dict.fromkeys(setup.OLDEST, (99, 0, 0)))
    with closing(open_store()) as made:
        if made.kind in ("tfidf", "memory"):
            return  # it has no server
        with pytest.raises(
            StoreTooOld, match=r"of version [\d.]+; the oldest supported is 99\.0\.0"
        ):
            made.collections()


def test_both_count_from_a_ready_server(store: Store, collection_name: str) -> None:
    for call in EMPTY.keys() - {"collections", "tenants", "chunk_ids", "chunk_ids_of"}:
        assert not EMPTY[call](store, collection_name)
    with pytest.raises(NotFound):
        MISSING["schema"](store, collection_name)
