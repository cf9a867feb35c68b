"""What every store does with what it is given: schema, writing, reading, deleting, counting."""

import multiprocessing
from collections.abc import Callable
from contextlib import closing

import numpy as np
import pytest
from store_cases import EAST, chunk, ids, unit

from callslip.errors import CollectionNotFound, Conflict, InvalidRequest
from callslip.stores.contract import Store
from callslip.stores.properties.filters import parse
from callslip.stores.records import ChunkRecord, CollectionSchema, DocumentRecord, VectorSpec

pytest_plugins = ["store_fixtures"]


def test_making_a_collection_again_keeps_what_it_holds(store: Store, collection_name: str) -> None:
    store.batch_upsert_chunks(collection_name, [chunk("a")])
    store.ensure_schema(CollectionSchema(collection_name, VectorSpec(2)))
    assert store.count(collection_name) == 1
    assert len(store.vector_query(collection_name, EAST, 5)) == 1


def test_a_probe_writes_and_reads_back_without_a_collection(store: Store) -> None:
    before = store.collections()
    store.probe()
    store.probe()
    assert store.collections() == before


def test_another_dimension_is_a_conflict(store: Store, collection_name: str) -> None:
    with pytest.raises(Conflict, match="2 dimensions, not 3"):
        store.ensure_schema(CollectionSchema(collection_name, VectorSpec(3)))


def test_no_dimension_is_no_schema(store: Store) -> None:
    with pytest.raises(InvalidRequest):
        store.ensure_schema(CollectionSchema("flat", VectorSpec(0)))


def test_dropping_is_idempotent_and_the_name_can_be_used_anew(
    store: Store, collection_name: str
) -> None:
    store.batch_upsert_chunks(collection_name, [chunk("a")])
    store.drop_collection(collection_name)
    store.drop_collection(collection_name)
    with pytest.raises(CollectionNotFound):
        store.count(collection_name)
    store.ensure_schema(CollectionSchema(collection_name, VectorSpec(3)))
    assert store.count(collection_name) == 0
    outcome = store.batch_upsert_chunks(collection_name, [chunk("a", vector=unit(0, 0, 1))])
    assert outcome.stored == ("a",)
    assert ids(store.vector_query(collection_name, unit(0, 0, 1), 5)) == ["a"]


CALLS: dict[str, Callable[[Store, str], object]] = {
    "batch_upsert_documents": lambda s, c: s.batch_upsert_documents(
        c, [DocumentRecord("d", "", "")]
    ),
    "batch_upsert_chunks": lambda s, c: s.batch_upsert_chunks(c, [chunk("a")]),
    "vector_query": lambda s, c: s.vector_query(c, EAST, 1),
    "keyword_query": lambda s, c: s.keyword_query(c, "every", 1),
    "hybrid_query": lambda s, c: s.hybrid_query(c, EAST, "every", 1),
    "get_chunks": lambda s, c: s.get_chunks(c, ["a"]),
    "get_documents": lambda s, c: s.get_documents(c, ["d"]),
    "schema": lambda s, c: s.schema(c),
    "find_ids": lambda s, c: s.find_ids(c),
    "chunk_ids": lambda s, c: s.chunk_ids(c, "d"),
    "chunk_ids_of": lambda s, c: s.chunk_ids_of(c, ["d"]),
    "document_ids": lambda s, c: s.document_ids(c),
    "delete_chunks": lambda s, c: s.delete_chunks(c, ["a"]),
    "delete_documents": lambda s, c: s.delete_documents(c, ["d"]),
    "count": lambda s, c: s.count(c),
    "aggregate_group_by": lambda s, c: s.aggregate_group_by(c, "p"),
    "count_documents": lambda s, c: s.count_documents(c, "p", ["x"]),
}


@pytest.mark.parametrize("call", CALLS)
def test_every_call_names_a_collection_that_does_not_exist(store: Store, call: str) -> None:
    with pytest.raises(CollectionNotFound, match="법 Nowhere"):
        CALLS[call](store, "법 Nowhere")


def test_collections_of_like_names_are_apart(store: Store) -> None:
    pair = ("법령 모음/1", "법령 모음_2f1", "CASE", "case")
    for name in pair:
        store.ensure_schema(CollectionSchema(name, VectorSpec(2)))
        store.batch_upsert_chunks(name, [chunk(f"in {name}")])
    for name in pair:
        assert ids(store.vector_query(name, EAST, 9)) == [f"in {name}"]
        assert ids(store.keyword_query(name, "every", 9)) == [f"in {name}"]
        store.drop_collection(name)


def test_a_chunk_comes_back_as_it_was_written(store: Store, collection_name: str) -> None:
    properties = {"n": 7, "f": 7.5, "b": True, "d": "2024-01-31", "l": ["가", "나"], "e": []}
    written = ChunkRecord(
        "조각:1/ä",
        "문서 1",
        "본문\n둘째 줄 \U0001f4da",
        "본문 줄",
        unit(0.6, 0.8),
        section="1장/제2조",
        heading="제2조",
        title="출산장려금 지원 조례",
        filename="조례.pdf",
        lang="ko",
        level=2,
        ordinal=5,
        start=10,
        end=25,
        properties=properties,
        created_at="2024-03-01T09:00:00.000001+00:00",
        updated_at="2024-05-01T00:00:00.000000+00:00",
        pretty="## 제2조\n\n본문",
        anchor="제2조",
    )
    store.batch_upsert_chunks(collection_name, [written])
    (plain,) = store.get_chunks(collection_name, [written.chunk_id])
    assert plain.vector is None
    for name in ("document_id", "body", "section", "heading", "title", "filename", "lang"):
        assert getattr(plain, name) == getattr(written, name)
    assert (plain.level, plain.ordinal, plain.start, plain.end) == (2, 5, 10, 25)
    assert plain.properties == properties
    for name in ("created_at", "updated_at", "pretty", "anchor"):
        assert getattr(plain, name) == getattr(written, name)
    (full,) = store.get_chunks(collection_name, [written.chunk_id], include_vector=True)
    assert full.vector is not None
    assert full.vector.dtype == np.float32
    assert np.allclose(full.vector, written.vector)


def test_terms_and_the_parent_come_back(store: Store, collection_name: str) -> None:
    store.batch_upsert_chunks(
        collection_name, [chunk("p", terms="출산 장려금 x x"), chunk("a", parent_id="p", terms="")]
    )
    parent, child = store.get_chunks(collection_name, ["p", "a"], include_terms=True)
    assert (parent.terms, parent.parent_id) == ("출산 장려금 x x", "")
    assert (child.terms, child.parent_id) == ("", "p")
    assert [c.terms for c in store.get_chunks(collection_name, ["p", "a"])] == [None, None]
    where = parse({"parent_id": "p"}, None)
    assert ids(store.vector_query(collection_name, EAST, 5, where)) == ["a"]
    store.batch_upsert_chunks(collection_name, [chunk("a", parent_id="nobody")])
    assert store.get_chunks(collection_name, ["a"])[0].parent_id == "nobody"


@pytest.mark.long
def test_ids_are_found_whole_and_in_order(store: Store, collection_name: str) -> None:
    rows = [chunk(f"{i:05}", document_id=f"d{i % 3}", level=i % 2) for i in range(2500, 0, -1)]
    store.batch_upsert_chunks(collection_name, rows)
    store.batch_upsert_documents(collection_name, [DocumentRecord("empty", "", "")])
    everyone = sorted(row.chunk_id for row in rows)
    assert store.find_ids(collection_name) == everyone
    odd = [row.chunk_id for row in reversed(rows) if row.level == 1]
    assert store.find_ids(collection_name, parse({"level": 1}, None)) == odd
    assert store.find_ids(collection_name, parse({"document_id ~": "d*", "level": 1}, None)) == odd
    assert store.find_ids(collection_name, parse({"level": 2}, None)) == []
    assert store.chunk_ids(collection_name) == {"vector": set(everyone), "keyword": set(everyone)}
    assert store.document_ids(collection_name) == {"d0", "d1", "d2", "empty"}
    assert store.deepest_level(collection_name) == 1


def test_an_empty_collection_has_no_deepest_level(store: Store, collection_name: str) -> None:
    assert store.deepest_level(collection_name) is None
    assert store.find_ids(collection_name) == []
    assert store.document_ids(collection_name) == set()


def test_an_empty_body_is_kept(store: Store, collection_name: str) -> None:
    store.batch_upsert_chunks(collection_name, [chunk("a", body="", terms="")])
    assert store.get_chunks(collection_name, ["a"])[0].body == ""
    assert ids(store.vector_query(collection_name, EAST, 5)) == ["a"]


def test_chunks_come_in_the_order_they_were_asked_for(store: Store, collection_name: str) -> None:
    store.batch_upsert_chunks(collection_name, [chunk(x) for x in "abcd"])
    found = store.get_chunks(collection_name, ["d", "nobody", "a", "d", "c"])
    assert [c.chunk_id for c in found] == ["d", "a", "d", "c"]
    assert store.get_chunks(collection_name, []) == []


def test_an_upsert_replaces_the_whole_chunk(store: Store, collection_name: str) -> None:
    store.batch_upsert_chunks(
        collection_name, [chunk("a", terms="old", properties={"p": "x", "q": 1, "l": ["x", "y"]})]
    )
    store.batch_upsert_chunks(
        collection_name,
        [chunk("a", body="new body", terms="new", vector=unit(0, 1), properties={"p": 2, "l": []})],
    )
    (found,) = store.get_chunks(collection_name, ["a"])
    assert found.body == "new body"
    assert found.properties == {"p": 2, "l": []}
    assert store.keyword_query(collection_name, "old", 5) == []
    assert store.vector_query(collection_name, unit(0, 1), 5)[0].score == pytest.approx(1)
    for filter_ in ({"p": "x"}, {"q": 1}, {"l @": "x"}):
        where = parse(filter_, None)
        assert store.vector_query(collection_name, EAST, 5, where) == []
        assert store.keyword_query(collection_name, "new", 5, where) == []
    assert store.count(collection_name) == 1


def test_an_upsert_of_the_same_text_and_vector_replaces_the_properties(
    store: Store, collection_name: str
) -> None:
    store.batch_upsert_chunks(collection_name, [chunk("a", properties={"p": "x", "l": ["x", "y"]})])
    store.batch_upsert_chunks(
        collection_name,
        [chunk("a", terms="new", level=3, properties={"l": ["y"]}), chunk("b", terms="new")],
    )
    (found, _) = store.get_chunks(collection_name, ["a", "b"])
    assert (found.level, found.properties) == (3, {"l": ["y"]})
    for key, value, expected in (("p", "x", []), ("l @", "x", []), ("l @", "y", ["a"])):
        where = parse({key: value}, None)
        assert ids(store.vector_query(collection_name, EAST, 5, where)) == expected
        assert ids(store.keyword_query(collection_name, "new", 5, where)) == expected


def test_of_one_id_twice_in_a_batch_the_last_is_kept(store: Store, collection_name: str) -> None:
    outcome = store.batch_upsert_chunks(
        collection_name, [chunk("a", body="1"), chunk("a", body="2")]
    )
    assert outcome.stored == ("a",)
    assert store.get_chunks(collection_name, ["a"])[0].body == "2"


def test_a_bad_object_fails_alone_and_is_named(store: Store, collection_name: str) -> None:
    batch = [
        chunk("good 1"),
        chunk("nan", vector=np.array([np.nan, 1], np.float32)),
        chunk("wide", vector=unit(1, 0, 0)),
        chunk("null", properties={"p": None}),
        chunk("mixed", properties={"p": ["x", 1]}),
        chunk(""),
        chunk("good 2"),
    ]
    outcome = store.batch_upsert_chunks(collection_name, batch)
    assert outcome.stored == ("good 1", "good 2")
    assert set(outcome.failed) == {"nan", "wide", "null", "mixed", ""}
    assert all(outcome.failed.values())
    assert store.count(collection_name) == 2
    assert sorted(ids(store.vector_query(collection_name, EAST, 9))) == ["good 1", "good 2"]


def test_an_empty_batch_is_nothing_to_do(store: Store, collection_name: str) -> None:
    assert store.batch_upsert_chunks(collection_name, []).stored == ()
    assert store.batch_upsert_documents(collection_name, []).stored == ()
    store.delete_chunks(collection_name, [])


@pytest.mark.long
def test_a_batch_larger_than_the_server_takes_is_stored_whole(
    store: Store, collection_name: str
) -> None:
    turns = np.linspace(0, np.pi, 6000)
    batch = [chunk(f"{i:04}", vector=unit(np.cos(t), np.sin(t))) for i, t in enumerate(turns)]
    assert len(store.batch_upsert_chunks(collection_name, batch).stored) == 6000
    assert store.count(collection_name) == 6000
    assert {len(half) for half in store.chunk_ids(collection_name, "doc").values()} == {6000}
    everywhere = parse({"document_id ~": "d*c"}, None)
    for where in (None, everywhere):
        for at in (0, 5999):
            assert ids(store.vector_query(collection_name, batch[at].vector, 1, where)) == [
                f"{at:04}"
            ]


def test_huge_texts_are_stored_and_an_overlong_property_is_named(
    store: Store, collection_name: str
) -> None:
    outcome = store.batch_upsert_chunks(
        collection_name,
        [
            chunk("long body", body="긴 글 " * 400_000),
            chunk("long property", properties={"p": "x" * 30_000}),
            chunk("overlong property", properties={"p": "x" * 40_000}),
        ],
    )
    assert outcome.stored == ("long body", "long property")
    assert "'p'" in outcome.failed["overlong property"]
    assert len(store.get_chunks(collection_name, ["long body"])[0].body) == 1_600_000
    for key, value in (("p", "x" * 30_000), ("p ~", "x*")):
        where = parse({key: value}, None)
        assert ids(store.vector_query(collection_name, EAST, 5, where)) == ["long property"]
        assert ids(store.keyword_query(collection_name, "every", 5, where)) == ["long property"]


def test_documents_come_back_and_are_replaced(store: Store, collection_name: str) -> None:
    one = DocumentRecord("문서 1", "제목", "a.pdf", {"n": 1, "l": ["x"]})
    outcome = store.batch_upsert_documents(collection_name, [one, DocumentRecord("", "", "")])
    assert outcome.stored == ("문서 1",)
    assert list(outcome.failed) == [""]
    assert store.get_documents(collection_name, ["nobody", "문서 1"]) == [one]
    other = DocumentRecord("문서 1", "새 제목", "b.pdf")
    store.batch_upsert_documents(collection_name, [other])
    assert store.get_documents(collection_name, ["문서 1"]) == [other]


def test_deleted_chunks_are_gone_from_every_half(store: Store, collection_name: str) -> None:
    store.batch_upsert_chunks(collection_name, [chunk("a"), chunk("b"), chunk("c")])
    store.delete_chunks(collection_name, iter(["a", "nobody", "a"]))
    assert store.chunk_ids(collection_name, "doc") == {"vector": {"b", "c"}, "keyword": {"b", "c"}}
    assert ids(store.vector_query(collection_name, EAST, 9)) == ["b", "c"]
    assert ids(store.keyword_query(collection_name, "every", 9)) == ["b", "c"]
    assert store.count(collection_name) == 2


def test_the_chunks_of_many_documents_are_read_at_once(store: Store, collection_name: str) -> None:
    expected = {f"{i:02}*": {f"{i:02}* {n}" for n in range(i % 3 + 1)} for i in range(70)}
    chunks = [chunk(i, document_id=owner) for owner, ids in expected.items() for i in ids]
    store.batch_upsert_chunks(collection_name, [*chunks, chunk("other")])
    expected["문서"] = set()
    found = store.chunk_ids_of(collection_name, expected)
    assert found == {owner: {"vector": ids, "keyword": ids} for owner, ids in expected.items()}
    assert store.chunk_ids_of(collection_name, []) == {}


@pytest.mark.long
@pytest.mark.parametrize("document_id", ["문서", "2024-01-31", "a*b", "x" * 500])
def test_a_deleted_document_takes_its_chunks_along_and_no_others(
    store: Store, collection_name: str, document_id: str
) -> None:
    store.batch_upsert_documents(collection_name, [DocumentRecord(document_id, "", "")])
    store.batch_upsert_chunks(
        collection_name,
        [
            chunk("a", document_id=document_id),
            chunk("b", document_id=document_id + "!"),
            chunk("c", properties={"document_id": document_id}),
        ],
    )
    assert store.chunk_ids(collection_name, document_id) == {"vector": {"a"}, "keyword": {"a"}}
    for _ in range(2):
        store.delete_documents(collection_name, [document_id])
        assert store.get_documents(collection_name, [document_id]) == []
        assert ids(store.vector_query(collection_name, EAST, 9)) == ["b", "c"]
        assert ids(store.keyword_query(collection_name, "every", 9)) == ["b", "c"]


def test_groups_are_counted_by_value_and_type(store: Store, collection_name: str) -> None:
    values: list[object] = ["나", "나", "가", 2, 2.0, 2.5, True, "2", "2024-03-01"]
    values += ["2024-03-01T00:00:00Z", ["나", "다", "나"], []]
    store.batch_upsert_chunks(
        collection_name,
        [*(chunk(f"c{i}", properties={"p": v}) for i, v in enumerate(values)), chunk("none")],
    )
    groups = store.aggregate_group_by(collection_name, "p")
    assert groups[0] == ("나", 3)
    assert {(type(value), value): count for value, count in groups} == {
        (str, "나"): 3,
        (str, "가"): 1,
        (str, "다"): 1,
        (int, 2): 2,
        (float, 2.5): 1,
        (bool, True): 1,
        (str, "2"): 1,
        (str, "2024-03-01"): 1,
        (str, "2024-03-01T00:00:00Z"): 1,
    }
    assert [count for _, count in groups] == sorted((c for _, c in groups), reverse=True)
    assert store.aggregate_group_by(collection_name, "p", parse({"p >": 0}, None)) == [
        (2, 2),
        (2.5, 1),
    ]
    assert store.aggregate_group_by(collection_name, "lang") == [("", 13)]


def test_documents_are_counted_by_value_and_not_by_their_chunks(
    store: Store, collection_name: str
) -> None:
    values: dict[str, list[object]] = {
        "one": ["가", "가", ["가", "나"], 2, "2024-03-01"],
        "two": ["가", True, 2.0, "2", "2024-03-01T00:00:00Z", "x*y"],
        "three": [["나"], 2.5, [2], "xzy"],
    }
    store.batch_upsert_chunks(
        collection_name,
        [
            chunk(f"{name}{i}", document_id=name, properties={"p": value, "n": i})
            for name, of_document in values.items()
            for i, value in enumerate(of_document)
        ],
    )
    counted = {"가": 2, "나": 2, "2": 1, "2024-03-01": 1, "2024-03-01T00:00:00Z": 1}
    wanted = [*counted, 2, 2.5, True, "x*y", "nothing"]
    assert sorted(map(str, wanted[:-1])) == sorted(
        str(value) for value, _ in store.aggregate_group_by(collection_name, "p") if value != "xzy"
    )
    documents = store.count_documents(collection_name, "p", wanted)
    assert documents == [*counted.values(), 3, 1, 1, 1, 0]
    where = parse({"n <": 3}, {"document_id in": ["one", "three"]})
    assert store.count_documents(collection_name, "p", ["가", "나", 2], where) == [1, 2, 1]
    assert store.count_documents(collection_name, "unknown", ["가"]) == [0]
    store.delete_documents(collection_name, ["one"])
    assert store.count_documents(collection_name, "p", ["가", "나", 2]) == [1, 1, 2]


def test_groups_forget_what_was_replaced_or_deleted(store: Store, collection_name: str) -> None:
    store.batch_upsert_chunks(collection_name, [chunk(x, properties={"p": x}) for x in "abc"])
    store.batch_upsert_chunks(collection_name, [chunk("a", properties={"p": "b"})])
    store.delete_chunks(collection_name, ["c"])
    assert store.aggregate_group_by(collection_name, "p") == [("b", 2)]


def write_many(open_store: Callable[[], Store], collection: str, writer: str) -> None:
    """Write 40 chunks in batches of four, in a process of its own.

    Their vectors differ: an approximate index does not reach each one of many that are equal.
    """
    angles = np.random.default_rng(list(writer.encode())).uniform(-1, 1, 40)
    chunks = [
        chunk(f"{writer} {i:02}", document_id=writer, vector=unit(np.cos(angle), np.sin(angle)))
        for i, angle in enumerate(angles)
    ]
    with closing(open_store()) as store:
        for i in range(0, 40, 4):
            batch = chunks[i : i + 4]
            assert len(store.batch_upsert_chunks(collection, batch).stored) == 4


@pytest.mark.long
def test_two_processes_that_write_at_once_keep_every_row(
    store: Store, open_store: Callable[[], Store], collection_name: str
) -> None:
    assert store.keyword_query(collection_name, "every", 5) == []
    spawn = multiprocessing.get_context("spawn")
    writers = [
        spawn.Process(target=write_many, args=(open_store, collection_name, name))
        for name in ("one", "two")
    ]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(120)
    assert [writer.exitcode for writer in writers] == [0, 0]
    for name in ("one", "two"):
        expected = {f"{name} {i:02}" for i in range(40)}
        assert store.chunk_ids(collection_name, name) == {"vector": expected, "keyword": expected}
    assert len(store.vector_query(collection_name, EAST, 100)) == 80
    assert len(store.keyword_query(collection_name, "every", 100)) == 80


def test_a_collection_that_another_process_made_anew_is_found(
    store: Store, open_store: Callable[[], Store], collection_name: str
) -> None:
    store.batch_upsert_chunks(collection_name, [chunk("old")])
    assert ids(store.vector_query(collection_name, EAST, 5)) == ids(
        store.keyword_query(collection_name, "every", 5)
    )
    with closing(open_store()) as other:
        other.drop_collection(collection_name)
        with pytest.raises(CollectionNotFound):
            store.keyword_query(collection_name, "every", 5)
        other.ensure_schema(CollectionSchema(collection_name, VectorSpec(3)))
    north = unit(0, 0, 1)
    assert store.vector_query(collection_name, north, 5) == []
    assert store.batch_upsert_chunks(collection_name, [chunk("new", vector=north)]).stored == (
        "new",
    )
    assert ids(store.vector_query(collection_name, north, 5)) == ["new"]
    assert ids(store.keyword_query(collection_name, "every", 5)) == ["new"]
