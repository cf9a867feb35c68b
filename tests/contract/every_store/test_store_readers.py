"""Every store leaves out the chunks of audiences and documents that a reader may not read."""

import pytest
from store_cases import EAST, chunk, ids

from callslip.readers import audience_of
from callslip.stores.contract import Store
from callslip.stores.ledger import Unreadable
from callslip.stores.ledger.documents.readers import MOST_AUDIENCES, MOST_DUE
from callslip.stores.properties.filters import MAX_VALUES, parse
from callslip.stores.records import AUDIENCE, DocumentRecord, for_audience

pytest_plugins = ["store_fixtures"]

BOARD, SALES = audience_of(("group:board",)), audience_of(("group:sales",))

MANY = tuple(f"{n:032x}" for n in range(MOST_AUDIENCES - 1))


@pytest.fixture
def filled(store: Store, collection_name: str) -> str:
    """Chunks for everyone, for the board and for sales."""
    for document_id, audience, chunk_ids in (
        ("open", "", ["a", "b"]),
        ("board", BOARD, ["c", "d"]),
        ("sales", SALES, ["e"]),
    ):
        chunks = [chunk(i, document_id=document_id, properties={"kind": i}) for i in chunk_ids]
        record, chunks = for_audience(audience, DocumentRecord(document_id, "", ""), chunks)
        store.batch_upsert_documents(collection_name, [record])
        assert not store.batch_upsert_chunks(collection_name, chunks).failed
    return collection_name


HIDDEN = (
    (Unreadable((BOARD,)), ["a", "b", "e"]),
    (Unreadable((BOARD, SALES)), ["a", "b"]),
    (Unreadable((*MANY, BOARD)), ["a", "b", "e"]),
    (Unreadable((BOARD,), ("open",)), ["e"]),
    (Unreadable(MANY, (*MANY[: MOST_DUE - 1], "board")), ["a", "b", "e"]),
    (Unreadable(), ["a", "b", "c", "d", "e"]),
)
"""What a reader may not read, and the chunks that are left."""


@pytest.mark.long
def test_what_a_reader_may_not_read_is_left_out(store: Store, filled: str) -> None:
    for hidden, expected in HIDDEN:
        where = hidden.left_out_of(None)
        assert ids(store.vector_query(filled, EAST, 9, where)) == expected
        assert ids(store.keyword_query(filled, "every", 9, where)) == expected
        assert sorted(c.chunk_id for c in store.hybrid_query(filled, EAST, "every", 9, where)) == (
            expected
        )
        assert store.count(filled, where) == len(expected)
        assert store.find_ids(filled, where) == expected
        assert sorted(store.aggregate_group_by(filled, "kind", where)) == [(i, 1) for i in expected]
        documents = store.count_documents(filled, "kind", list("abcde"), where)
        assert documents == [int(i in expected) for i in "abcde"]
    _check_narrowed(store, filled)


def _check_narrowed(store: Store, filled: str) -> None:
    """A filter of the client, as long as it may be, is narrowed."""
    values = ["c", "a", *MANY, *(f"{n}" for n in range(MAX_VALUES - len(MANY) - 2))]
    where = Unreadable((*MANY, BOARD), MANY[:MOST_DUE]).left_out_of(
        parse({"kind in": values}, None)
    )
    assert ids(store.keyword_query(filled, "every", 9, where)) == ["a"]
    assert ids(store.vector_query(filled, EAST, 9, where)) == ["a"]
    either = parse(None, {"kind": "c", "kind ==": "e"})
    assert store.find_ids(filled, Unreadable((BOARD,)).left_out_of(either)) == ["e"]


def test_a_collection_of_chunks_for_everyone_needs_no_property(
    store: Store, collection_name: str
) -> None:
    store.batch_upsert_chunks(collection_name, [chunk("a")])
    where = Unreadable((BOARD,)).left_out_of(None)
    assert ids(store.keyword_query(collection_name, "every", 9, where)) == ["a"]
    assert AUDIENCE not in store.get_chunks(collection_name, ["a"])[0].properties
