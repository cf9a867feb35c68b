"""What is special about Weaviate: its classes as specified, its limits, and losing its server."""

import multiprocessing
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from faulty_proxy import Faults, faulty_proxy
from store_cases import EAST, agrees, chunk, ids, unit
from weaviate.classes.aggregate import GroupByAggregate
from weaviate.classes.config import DataType, Property
from weaviate.classes.data import DataObject
from weaviate.classes.query import Filter, QueryReference
from weaviate.exceptions import WeaviateBaseError
from weaviate_server import REAL_SERVER, Ports, weaviate_server, weaviate_settings

from callslip.config.settings import Settings, WeaviateSettings
from callslip.errors import (
    BatchInterrupted,
    Conflict,
    InvalidFilter,
    InvalidRequest,
    SettingsError,
    StoreDown,
    StoreReadOnly,
)
from callslip.stores.contract import Store
from callslip.stores.properties.filters import matches, parse
from callslip.stores.records import CollectionSchema, DocumentRecord, VectorSpec
from callslip.stores.registry import make_store
from callslip.stores.weaviate import connection, reading, writing
from callslip.stores.weaviate.connection import At
from callslip.stores.weaviate.names import CHUNKS, DOCUMENTS, class_of, uuid_of
from callslip.stores.weaviate.store import WeaviateStore

pytest_plugins = ["store_fixtures"]


SERVERS = ["weaviate_at", *(["weaviate_server_at"] if REAL_SERVER in os.environ else [])]


@pytest.fixture(scope="module", params=SERVERS)
def scope(request: pytest.FixtureRequest) -> tuple[Settings, str]:
    """The suite's own server and, where one is named, a real one."""
    return request.getfixturevalue(request.param), "weaviate"


@pytest.fixture(scope="module")
def store(scope: tuple[Settings, str]) -> Iterator[Store]:
    """The store at each in turn."""
    with closing(make_store(*scope)) as made:
        yield made


def test_the_suite_runs_against_a_real_server_too(request: pytest.FixtureRequest) -> None:
    if REAL_SERVER not in os.environ:
        pytest.skip(f"{REAL_SERVER} names no real Weaviate server; only the suite's own was tested")
    settings = request.getfixturevalue("weaviate_server_at")
    version = httpx.get(f"{settings.weaviate.url}/v1/meta").json()["version"]
    assert tuple(map(int, version.split(".")[:2])) >= (1, 33)


def class_at(store: Store, prefix: str, collection: str) -> At:
    """The client's handle of a class."""
    assert isinstance(store, WeaviateStore)
    return store._connection.at(class_of(prefix, collection))


PROPERTIES = {
    "doc_type": "law",
    "jurisdiction": "KR",
    "lang": "ko",
    "valid_from": "2024-03-01",
    "valid_to": "2025-03-01T00:00:00+09:00",
    "created_at": "2024-01-02T03:04:05.000006Z",
    "updated_at": "yesterday",
    "entities": ["출산장려금", "출산 장려금"],
}


@pytest.fixture
def filled(store: Store, collection_name: str) -> str:
    """A document and two chunks with the properties that the specification names."""
    document = DocumentRecord("d1", "조례", "a.pdf", PROPERTIES)
    store.batch_upsert_documents(collection_name, [document])
    child = chunk("child", document_id="d1", parent_id="parent", section="eligibility", body="둘")
    parent = chunk("parent", document_id="d1", section="definitions", properties=PROPERTIES)
    store.batch_upsert_chunks(collection_name, [child, parent])
    return collection_name


@pytest.mark.parametrize(
    ("prefix", "expected"),
    [
        (
            CHUNKS,
            {
                **dict.fromkeys(("chunk_id", "doc_id", "section"), "text"),
                **dict.fromkeys(("valid_from", "valid_to", "created_at", "updated_at"), "date"),
                "entities": "text[]",
            },
        ),
        (
            DOCUMENTS,
            {
                **dict.fromkeys(("doc_id", "title", "doc_type", "jurisdiction", "lang"), "text"),
                **dict.fromkeys(("valid_from", "valid_to"), "date"),
                "entities": "text[]",
            },
        ),
    ],
)
def test_the_classes_have_the_specified_filterable_properties(
    store: Store, collection_name: str, prefix: str, expected: dict[str, str]
) -> None:
    made = {
        each.name: each
        for each in class_at(store, prefix, collection_name).config.get(simple=True).properties
    }
    assert {name: made[name].data_type.value for name in expected} == expected
    assert all(made[name].index_filterable for name in expected)


def test_the_body_is_not_searched_and_the_terms_are_split_at_blanks(
    store: Store, collection_name: str
) -> None:
    config = class_at(store, CHUNKS, collection_name).config.get(simple=True)
    made = {each.name: each for each in config.properties}
    assert [name for name, each in made.items() if each.index_searchable] == ["terms"]
    assert made["terms"].tokenization == "whitespace"
    assert {each.name for each in config.references} == {"parent_id", "of_doc"}


def test_what_the_specification_filters_on_is_filtered_and_counted_by_weaviate(
    store: Store, filled: str
) -> None:
    chunks = class_at(store, CHUNKS, filled)
    documents = class_at(store, DOCUMENTS, filled)
    day = datetime(2024, 3, 1, tzinfo=UTC)
    for at, where, expected in (
        (chunks, Filter.by_property("chunk_id").equal("child"), 1),
        (chunks, Filter.by_property("doc_id").equal("d1"), 2),
        (chunks, Filter.by_property("section").equal("definitions"), 1),
        (chunks, Filter.by_property("entities").contains_any(["출산장려금"]), 1),
        (chunks, Filter.by_property("valid_from").less_or_equal(day), 1),
        (chunks, Filter.by_property("valid_from").greater_than(day), 0),
        (chunks, Filter.by_property("valid_to").greater_than(day), 1),
        (chunks, Filter.by_property("created_at").less_than(day), 1),
        (chunks, Filter.by_property("updated_at").less_than(day), 0),
        (documents, Filter.by_property("jurisdiction").equal("KR"), 1),
        (documents, Filter.by_property("doc_type").equal("faq"), 0),
        (documents, Filter.by_property("lang").equal("ko"), 1),
        (documents, Filter.by_property("valid_to").greater_than(day), 1),
    ):
        assert reading.count(at, where) == expected
    groups = chunks.aggregate.over_all(group_by=GroupByAggregate(prop="section")).groups
    assert {group.grouped_by.value for group in groups} == {"definitions", "eligibility"}


def test_a_chunk_refers_to_its_parent_and_its_document(store: Store, filled: str) -> None:
    links = [QueryReference(link_on=name, return_properties=[]) for name in ("parent_id", "of_doc")]
    found = class_at(store, CHUNKS, filled).query.fetch_objects_by_ids(
        [uuid_of("child")], limit=1, return_references=links
    )
    references = found.objects[0].references
    assert [o.uuid for o in references["parent_id"].objects] == [uuid_of("parent")]
    assert [o.uuid for o in references["of_doc"].objects] == [uuid_of("d1")]


def test_parents_may_come_in_any_order_and_in_circles(store: Store, collection_name: str) -> None:
    chain = [chunk(f"c{i}", parent_id=f"c{i + 1}") for i in range(9)]
    circle = [chunk("x", parent_id="y"), chunk("y", parent_id="x"), chunk("z", parent_id="z")]
    outcome = store.batch_upsert_chunks(collection_name, [*chain, *circle])
    assert outcome.stored == tuple(each.chunk_id for each in [*chain, *circle])
    assert [c.parent_id for c in store.get_chunks(collection_name, ["c0", "c8", "x"])] == [
        "c1",
        "c9",
        "y",
    ]


def test_a_date_beyond_weaviates_is_left_out_of_its_own_property_only(
    store: Store, collection_name: str
) -> None:
    outcome = store.batch_upsert_chunks(
        collection_name, [chunk("a", properties={"valid_to": "9999-12-31"})]
    )
    assert outcome.stored == ("a",)
    where = Filter.by_property("valid_to").greater_than(datetime(1700, 1, 1, tzinfo=UTC))
    assert reading.count(class_at(store, CHUNKS, collection_name), where) == 0
    for filter_, expected in (({"valid_to >": "9999-12-30"}, {"a"}), ({"valid_to <": "1"}, None)):
        if expected is None:
            with pytest.raises(InvalidFilter):
                parse(filter_, None)
            continue
        where_ = parse(filter_, None)
        assert where_ is not None
        agrees(store, collection_name, where_, expected)


@pytest.mark.parametrize(
    "name", ["id", "_id", "vector", "_additional", "terms", "record", "P", "p"]
)
def test_names_that_weaviate_reserves_are_properties_like_others(
    store: Store, collection_name: str, name: str
) -> None:
    properties = {name: "x", name.swapcase(): 2, "긴 " * 200: True}
    outcome = store.batch_upsert_chunks(
        collection_name, [chunk("a", properties=properties), chunk("b")]
    )
    assert not outcome.failed
    for filter_ in ({name: "x"}, {"긴 " * 200: True}):
        where = parse(filter_, None)
        assert where is not None
        agrees(store, collection_name, where, {"a"} if matches(where, properties) else set())


TEXTS = [
    *("a?b", "axb", "a\nb", "a\n?b", "?", "??", "\n", " a ", "a", "", "=", "==", "a*b", "\\?"),
    *("\ufdd0", "\ufdd1\ufdd2", "\ufdd0\ufdd1\ufdd1\ufdd1", "a\u3000", "가?나", "\ufdd2?\ufdd0\n"),
]


@pytest.mark.parametrize(
    "pattern",
    [*TEXTS, "*?*", "*\n*", "*\ufdd1*", "*\ufdd2", "a*", "* ", "=*", "*=", "*\ufdd1\ufdd1*"],
)
def test_patterns_are_exact_where_weaviates_are_not(
    store: Store, library: str, pattern: str
) -> None:
    for filter_ in ({"p ~": pattern}, {"p": pattern}, {"p !=": pattern}):
        where = parse(filter_, None)
        assert where is not None
        expected = {f"{i}" for i, text in enumerate(TEXTS) if matches(where, {"p": text})}
        assert set(store.find_ids(library, where)) == expected


@pytest.fixture(scope="module")
def library(store: Store) -> Iterator[str]:
    """A collection with a chunk for each text."""
    store.drop_collection("library")
    store.ensure_schema(CollectionSchema("library", VectorSpec(2)))
    rows = [chunk(f"{i}", properties={"p": text}) for i, text in enumerate(TEXTS)]
    assert not store.batch_upsert_chunks("library", rows).failed
    yield "library"
    store.drop_collection("library")


def test_values_are_grouped_as_they_were_written(store: Store, library: str) -> None:
    assert sorted(store.aggregate_group_by(library, "p")) == sorted((text, 1) for text in TEXTS)


@pytest.mark.long
def test_more_than_a_query_may_give_is_given(
    store: Store, collection_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "MOST_RESULTS", 100)
    monkeypatch.setattr(reading, "PAGE", 50)
    rows = [chunk(f"{i:05}", level=i % 2, vector=unit(1, i / 1000)) for i in range(450)]
    assert len(store.batch_upsert_chunks(collection_name, rows).stored) == 450
    everyone = [row.chunk_id for row in rows]
    where = parse({"document_id": "doc"}, None)
    assert store.find_ids(collection_name) == store.find_ids(collection_name, where) == everyone
    assert store.find_ids(collection_name, parse({"level": 1}, None)) == everyone[1::2]
    assert store.chunk_ids(collection_name, "doc")["vector"] == set(everyone)
    for filter_ in (None, where):
        assert ids(store.vector_query(collection_name, EAST, 400, filter_)) == everyone[:400]
        assert ids(store.keyword_query(collection_name, "every", 400, filter_)) == everyone[:400]
    store.delete_chunks(collection_name, everyone[:-3])
    assert store.find_ids(collection_name) == everyone[-3:]


def test_native_fusion_is_weaviates_relative_scores(store: Store, collection_name: str) -> None:
    rng = np.random.default_rng(7)
    store.batch_upsert_chunks(
        collection_name,
        [
            chunk(f"c{i:02}", vector=unit(*rng.normal(size=2)), terms="x " * (i % 4) + "y")
            for i in range(40)
        ],
    )
    vectors = store.vector_query(collection_name, EAST, 99)
    keywords = store.keyword_query(collection_name, "x", 99)
    total = {hit.chunk_id: 0.0 for hit in vectors}
    for weight, retriever in ((0.3, vectors), (0.7, keywords)):
        low, high = retriever[-1].score, retriever[0].score
        for hit in retriever:
            total[hit.chunk_id] += weight * (hit.score - low) / (high - low)
    found = store.hybrid_query(collection_name, EAST, "x", 40, fusion="native", alpha=0.3)
    assert {c.chunk_id: c.score for c in found} == pytest.approx(total, abs=1e-4)
    ranks = {c.chunk_id: c.vector.rank for c in found if c.vector}
    assert ranks == {hit.chunk_id: rank for rank, hit in enumerate(vectors, 1)}
    output = {c.chunk_id: c.keyword.score for c in found if c.keyword}
    assert output == pytest.approx({hit.chunk_id: hit.score for hit in keywords}, abs=1e-4)
    first = store.hybrid_query(collection_name, EAST, "x", 5, fusion="native", alpha=0.3)
    assert [c.chunk_id for c in first] == [c.chunk_id for c in found][:5]


def test_native_fusion_keeps_to_the_filter_and_the_horizon(
    store: Store, collection_name: str
) -> None:
    turns = {"near": 0.1, "middle": 0.8, "far": 2.5}
    store.batch_upsert_chunks(
        collection_name,
        [chunk(i, vector=unit(np.cos(t), np.sin(t)), terms="x") for i, t in turns.items()],
    )
    near = store.hybrid_query(collection_name, EAST, "x", 9, fusion="native", horizon=0.5)
    assert {c.chunk_id for c in near} == {"near", "middle"}
    for filter_ in ({"level >": 0}, {"nobody": 1}):
        assert (
            store.hybrid_query(collection_name, EAST, "x", 9, parse(filter_, None), fusion="native")
            == []
        )


def write_types(settings: Settings, collection: str, writer: int) -> None:
    """Write properties that nobody had before, some of them another writer's too."""
    with closing(make_store(settings, "weaviate")) as store:
        for i in range(12):
            properties: dict[str, Any] = {f"p{i}": "x", f"q{i}": writer, f"w{writer}-{i}": True}
            row = chunk(f"{writer} {i}", properties=properties)
            assert store.batch_upsert_chunks(collection, [row]).stored == (f"{writer} {i}",)


@pytest.mark.long
def test_two_processes_may_add_the_same_properties_at_once(
    store: Store, scope: tuple[Settings, str], collection_name: str
) -> None:
    spawn = multiprocessing.get_context("spawn")
    writers = [
        spawn.Process(target=write_types, args=(scope[0], collection_name, i)) for i in (1, 2)
    ]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(120)
    assert [writer.exitcode for writer in writers] == [0, 0]
    for i in range(12):
        where = parse({f"p{i}": "x", f"q{i} >": 0}, None)
        assert store.find_ids(collection_name, where) == [f"1 {i}", f"2 {i}"]
        assert store.find_ids(collection_name, parse({f"w2-{i}": True}, None)) == [f"2 {i}"]


def test_a_read_only_shard_takes_nothing_and_says_so(
    store: Store, scope: tuple[Settings, str], collection_name: str
) -> None:
    store.batch_upsert_chunks(collection_name, [chunk("a")])
    class_ = class_of(CHUNKS, collection_name)
    (shard,) = class_at(store, CHUNKS, collection_name).config.get_shards()

    def becomes(status: str) -> None:
        url = f"{scope[0].weaviate.url}/v1/schema/{class_}/shards/{shard.name}"
        httpx.put(url, json={"status": status}).raise_for_status()

    becomes("READONLY")
    for call in (
        lambda: store.batch_upsert_chunks(collection_name, [chunk("b")]),
        lambda: store.batch_upsert_chunks(collection_name, [chunk(f"b{i}") for i in range(9)]),
        lambda: store.delete_chunks(collection_name, ["a"]),
        lambda: store.delete_documents(collection_name, ["doc"]),
    ):
        with pytest.raises((StoreReadOnly, BatchInterrupted), match="takes nothing"):
            call()
    assert store.find_ids(collection_name) == ["a"]
    becomes("READY")
    assert store.batch_upsert_chunks(collection_name, [chunk("b")]).stored == ("b",)


def test_a_class_that_callslip_did_not_make_is_left_alone(
    store: Store, scope: tuple[Settings, str]
) -> None:
    url = f"{scope[0].weaviate.url}/v1/schema"
    httpx.delete(f"{url}/Chunk_theirs")
    vectors = {"v": {"vectorizer": {"none": {}}, "vectorIndexType": "hnsw"}}
    httpx.post(url, json={"class": "Chunk_theirs", "vectorConfig": vectors}).raise_for_status()
    try:
        assert "theirs" not in store.collections()
        with pytest.raises(Conflict, match="did not make"):
            store.ensure_schema(CollectionSchema("theirs", VectorSpec(2)))
        assert httpx.get(f"{url}/Chunk_theirs").status_code == 200
    finally:
        for name in ("Chunk_theirs", "Document_theirs"):
            httpx.delete(f"{url}/{name}")


def test_names_too_long_for_weaviate_are_refused_by_length(store: Store, names: Any) -> None:
    with pytest.raises(InvalidRequest, match="22 Korean"):
        store.ensure_schema(CollectionSchema("가" * 23, VectorSpec(2)))
    name = names()
    store.ensure_schema(CollectionSchema(name, VectorSpec(2), tenants=True))
    tenants = ["가" * 15, "A" * 64, "서울 강남구"]
    for tenant in tenants:
        store.ensure_tenant(name, tenant)
    assert store.tenants(name) == sorted(tenants)
    with pytest.raises(InvalidRequest, match="15 Korean"):
        store.ensure_tenant(name, "가" * 16)


REFUSALS: dict[str, Callable[[At], object]] = {
    "no such prop": lambda at: reading.count(at, Filter.by_property("nobody").equal("x")),
    "expected value to be": lambda at: reading.count(at, Filter.by_property("section").equal(1.0)),
    "requires": lambda at: reading.count(at, Filter.by_property("body").equal("x")),
    "Searching by property": lambda at: at.query.bm25("x", query_properties=["section"], limit=1),
    "maximum results exceeded": lambda at: at.query.fetch_objects(limit=10_001),
    "where cannot be set with after": lambda at: at.query.fetch_objects(
        limit=1, after=uuid_of("a"), filters=Filter.by_property("section").equal("x")
    ),
    "vector lengths don't match": lambda at: at.query.near_vector(
        [1.0, 2.0, 3.0], target_vector="default", limit=1
    ),
    "does not have named vector": lambda at: at.query.near_vector(
        [1.0, 2.0], target_vector="nobody", limit=1
    ),
    "request was with tenant": lambda at: at.with_tenant("x").query.fetch_objects(limit=1),
    "could not find class": lambda at: at.query.fetch_objects(limit=1),
    "Existing nodes have vectors": lambda at: _insert(at, {}, [1.0, 2.0, 3.0]),
    "property 'section'": lambda at: _insert(at, {"section": 1}, [1.0, 2.0]),
    "configuration for vector": lambda at: at.data.insert_many(
        [DataObject(properties={}, vector={"nobody": [1.0, 2.0]})]
    ),
    "not a valid property name": lambda at: at.config.add_property(_text("a-b")),
    "reserved property name": lambda at: at.config.add_property(_text("id")),
    "already in use": lambda at: at.config.add_property(_text("Section")),
    "no object with id": lambda at: at.data.insert_many(
        [DataObject(properties={}, references={"of_doc": uuid_of("?")}, vector=[1.0, 2.0])]
    ),
}


def _text(name: str) -> Property:
    return Property(name=name, data_type=DataType.TEXT)


def _insert(at: At, properties: Any, vector: list[float]) -> object:
    return at.data.insert_many([DataObject(properties=properties, vector={"default": vector})])


@pytest.mark.parametrize("reply", REFUSALS)
def test_what_weaviate_refuses_the_suites_own_server_refuses_too(
    store: Store, collection_name: str, reply: str
) -> None:
    store.batch_upsert_chunks(collection_name, [chunk("a")])
    at = class_at(store, CHUNKS, collection_name if reply != "could not find class" else "nobody")
    with pytest.raises(WeaviateBaseError, match=reply):
        REFUSALS[reply](at)


@pytest.fixture
def own(tmp_path: Path) -> Iterator[tuple[Store, Ports, Any]]:
    """A store at a server of its own, with a collection `c`."""
    with weaviate_server(tmp_path) as (ports, server):
        settings = weaviate_settings(ports, timeout_seconds=1)
        with closing(make_store(settings, "weaviate")) as store:
            store.ensure_schema(CollectionSchema("c", VectorSpec(2)))
            store.batch_upsert_chunks("c", [chunk("a")])
            yield store, ports, server


@pytest.mark.long
def test_a_server_that_died_is_down_until_it_is_back(
    own: tuple[Store, Ports, Any], tmp_path: Path
) -> None:
    store, ports, server = own
    server.kill()
    server.wait()
    start = time.monotonic()
    for call in (
        store.ping,
        lambda: store.ensure_schema(CollectionSchema("c", VectorSpec(2))),
        lambda: store.batch_upsert_chunks("c", [chunk("b")]),
        lambda: store.vector_query("c", EAST, 5),
        lambda: store.keyword_query("c", "every", 5),
        lambda: store.get_chunks("c", ["a"]),
        lambda: store.chunk_ids("c", "doc"),
        lambda: store.count("c"),
        lambda: store.delete_documents("c", ["doc"]),
        lambda: store.drop_collection("c"),
    ):
        with pytest.raises(StoreDown):
            call()
    assert time.monotonic() - start < 5
    with weaviate_server(tmp_path, ports):
        assert answers_again(lambda: ids(store.vector_query("c", EAST, 5))) == ["a"]
        assert store.batch_upsert_chunks("c", [chunk("b")]).stored == ("b",)
        assert store.find_ids("c") == ["a", "b"]


def test_nothing_is_absent_before_the_server_is_ready(
    own: tuple[Store, Ports, Any], tmp_path: Path
) -> None:
    store, _, _ = own
    assert store.chunk_ids("c", "doc")["vector"] == {"a"}
    starting = tmp_path / "starting"
    starting.touch()
    for call in (
        lambda: store.collections(),
        lambda: store.chunk_ids("c", "doc"),
        lambda: store.delete_documents("c", ["doc"]),
        lambda: store.delete_chunks("c", ["a"]),
        lambda: store.batch_upsert_chunks("c", [chunk("b")]),
        lambda: store.count("c"),
        lambda: store.drop_collection("c"),
        lambda: store.ensure_schema(CollectionSchema("c", VectorSpec(2))),
    ):
        with pytest.raises(StoreDown):
            call()
    starting.unlink()
    assert store.chunk_ids("c", "doc")["vector"] == {"a"}
    assert store.collections() == ["c"]


@pytest.mark.long
def test_a_batch_that_loses_its_server_tells_what_is_stored_and_is_finished_by_a_retry(
    own: tuple[Store, Ports, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, ports, server = own
    put, calls = writing.put, []

    def put_and_lose(at: At, items: Sequence[Any]) -> Any:
        calls.append(len(items))
        if len(calls) == 3:
            server.kill()
            server.wait()
        return put(at, items)

    monkeypatch.setattr(writing, "OBJECTS_PER_CALL", 10)
    monkeypatch.setattr(writing, "put", put_and_lose)
    batch = [chunk(f"{i:02}") for i in range(40)]
    with pytest.raises(BatchInterrupted, match="20 objects of the batch were acknowledged") as lost:
        store.batch_upsert_chunks("c", batch)
    assert lost.value.stored == tuple(f"{i:02}" for i in range(20))
    assert lost.value.unstored == tuple(f"{i:02}" for i in range(20, 40))
    with weaviate_server(tmp_path, ports):
        assert answers_again(lambda: store.find_ids("c")) == [*lost.value.stored, "a"]
        assert len(store.batch_upsert_chunks("c", batch).stored) == 40
        assert store.count("c") == 41


def test_a_server_that_hangs_is_down_after_the_timeout(own: tuple[Store, Ports, Any]) -> None:
    store, _, server = own
    server.send_signal(signal.SIGSTOP)
    try:
        for call in (
            lambda: store.vector_query("c", EAST, 5),
            lambda: store.batch_upsert_chunks("c", [chunk("b")]),
        ):
            start = time.monotonic()
            with pytest.raises(StoreDown, match="not answer"):
                call()
            assert time.monotonic() - start < 5
    finally:
        server.send_signal(signal.SIGCONT)
    assert answers_again(lambda: ids(store.vector_query("c", EAST, 5))) == ["a"]


def answers_again(call: Callable[[], Any]) -> Any:
    """What a call gives once the connection is made anew."""
    deadline = time.monotonic() + 20
    while True:
        try:
            return call()
        except StoreDown:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def test_a_server_that_never_answers_is_down(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "PING_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        with closing(make_store(weaviate_settings((port, port)), "weaviate")) as store:
            for call in (store.ping, lambda: store.vector_query("c", EAST, 5)):
                with pytest.raises(StoreDown, match="not answer"):
                    call()


@pytest.mark.long
def test_grpc_that_does_not_answer_is_a_server_that_is_down(
    own: tuple[Store, Ports, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, (http_port, _), _ = own
    monkeypatch.setattr(connection, "PING_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        settings = weaviate_settings((http_port, silent.getsockname()[1]), timeout_seconds=0.5)
        with closing(make_store(settings, "weaviate")) as store:
            with pytest.raises(StoreDown):
                store.ping()
            with pytest.raises(StoreDown):
                store.count("c")


@pytest.mark.long
def test_a_connection_that_is_lost_without_a_word_is_made_anew(
    own: tuple[Store, Ports, Any],
) -> None:
    _, (http_port, grpc_port), _ = own
    faults = Faults()
    with faulty_proxy(grpc_port, faults) as proxy:
        settings = weaviate_settings((http_port, proxy), timeout_seconds=0.5)
        with closing(make_store(settings, "weaviate")) as store:
            assert answers_again(lambda: ids(store.vector_query("c", EAST, 5))) == ["a"]
            faults.begin("lost")
            with pytest.raises(StoreDown, match="not answer"):
                store.vector_query("c", EAST, 5)
            assert answers_again(lambda: ids(store.vector_query("c", EAST, 5))) == ["a"]


@pytest.mark.parametrize("url", ["127.0.0.1:8080", "ftp://127.0.0.1", "http://"])
def test_an_address_that_is_none_is_a_wrong_setting(url: str) -> None:
    with pytest.raises(SettingsError, match=r"weaviate\.url"):
        make_store(Settings(weaviate=WeaviateSettings(url=url)), "weaviate")
    with pytest.raises(SettingsError, match=r"weaviate\.url is not set"):
        make_store(Settings(), "weaviate")


@pytest.mark.long
def test_an_address_is_asked_that_is_set_and_no_other(
    own: tuple[Store, Ports, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, ports, _ = own
    requests: list[Any] = []
    connect = socket.socket.connect

    def note(connection: socket.socket, to: Any) -> None:
        if threading.current_thread() is threading.main_thread():  # no ping of another store
            requests.append(to)
        connect(connection, to)

    monkeypatch.setattr(socket.socket, "connect", note)
    with closing(make_store(weaviate_settings(ports), "weaviate")) as store:
        assert store.count("c") == 1
    assert set(requests) == {("127.0.0.1", ports[0])}  # gRPC opens its own in C
