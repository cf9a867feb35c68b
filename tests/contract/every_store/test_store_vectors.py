"""How every store compares vectors: all methods, named vectors, horizons."""

from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from store_cases import EAST, chunk, ids, unit

from callslip.errors import Conflict, InvalidRequest, MetricNotIndexed, StoreCannot, VectorNotFound
from callslip.stores import contract
from callslip.stores.contract import Store
from callslip.stores.metrics import METRICS, Metric, distance
from callslip.stores.properties.filters import matches, parse
from callslip.stores.records import CollectionSchema, Vector, VectorSpec, visible

pytest_plugins = ["store_fixtures"]

VECTORS: dict[str, tuple[float, ...]] = {
    "same": (1, 0, 0, 0),
    "long": (3, 0, 0, 0),
    "half": (1, 1, 0, 0),
    "bits": (1, 1, 1, 0),
    "away": (-1, 0, 0, 0),
    "far": (-2, 5, 0.5, -1),
    "right": (0, 0, 2, 0),
}
QUERY = np.array([1, 0, 0, 0.25], np.float32)


def as_vector(values: Any) -> Vector:
    return np.array(values, np.float32)


def oracle(metric: Metric, query: Vector, vector: Vector) -> float:
    """The distance, written out."""
    q, v = [float(x) for x in query], [float(x) for x in vector]
    dot = sum(a * b for a, b in zip(q, v, strict=True))
    match metric:
        case "cosine":
            return 1 - dot / (sum(a * a for a in q) * sum(b * b for b in v)) ** 0.5
        case "dot":
            return -dot
        case "l2-squared":
            return sum((a - b) ** 2 for a, b in zip(q, v, strict=True))
        case "hamming":
            return sum(a != b for a, b in zip(q, v, strict=True))
        case "manhattan":
            return sum(abs(a - b) for a, b in zip(q, v, strict=True))


@pytest.fixture(scope="module", params=METRICS)
def gallery(request: pytest.FixtureRequest, store: Store) -> str:
    """A collection of each metric with the vectors above."""
    name = f"gallery-{request.param}"
    store.drop_collection(name)
    store.ensure_schema(CollectionSchema(name, VectorSpec(4, request.param)))
    written = [chunk(i, vector=as_vector(v)) for i, v in VECTORS.items()]
    assert not store.batch_upsert_chunks(name, written).failed
    return name


@pytest.mark.long
@pytest.mark.parametrize("method", METRICS)
def test_every_method_means_the_same_whatever_the_index_was_made_with(
    store: Store, gallery: str, method: Metric
) -> None:
    expected = {i: oracle(method, QUERY, as_vector(v)) for i, v in VECTORS.items()}
    hits = store.vector_query(gallery, QUERY, 99, method=method)
    assert {h.chunk_id: distance(method, h.score) for h in hits} == pytest.approx(
        expected, abs=1e-4
    )
    order = [expected[h.chunk_id] for h in hits]
    assert order == pytest.approx(sorted(order), abs=1e-4)
    assert ids(store.vector_query(gallery, QUERY, 2, method=method)) == ids(hits)[:2]


def test_without_a_method_the_collections_own_is_taken(store: Store, gallery: str) -> None:
    metric = store.schema(gallery).default.metric
    expected = store.vector_query(gallery, QUERY, 99, method=metric)
    assert ids(store.vector_query(gallery, QUERY, 99)) == ids(expected)


@pytest.mark.long
@pytest.mark.parametrize("method", METRICS)
def test_a_horizon_cuts_and_is_inclusive(store: Store, gallery: str, method: Metric) -> None:
    expected = {i: oracle(method, QUERY, as_vector(v)) for i, v in VECTORS.items()}
    for cut in sorted(expected.values()):
        near = {i for i, d in expected.items() if d <= cut + 1e-4}
        found = store.vector_query(gallery, QUERY, 99, method=method, horizon=cut + 1e-4)
        assert set(ids(found)) == near
    assert store.vector_query(gallery, QUERY, 99, method=method, horizon=-1000) == []


def test_vectors_come_back_as_they_were_given(store: Store, gallery: str) -> None:
    for stored in store.get_chunks(gallery, list(VECTORS), include_vector=True):
        assert stored.vector is not None
        assert stored.vector.tolist() == as_vector(VECTORS[stored.chunk_id]).tolist()


def test_a_zero_vector_has_no_cosine(store: Store, gallery: str) -> None:
    nothing = np.zeros(4, np.float32)
    with pytest.raises(InvalidRequest, match="no direction"):
        store.vector_query(gallery, nothing, 5, method="cosine")
    outcome = store.batch_upsert_chunks(gallery, [chunk("zero", vector=nothing)])
    if store.schema(gallery).default.metric == "cosine":
        assert "no direction" in outcome.failed["zero"]
        return
    assert outcome.stored == ("zero",)
    (hit,) = store.vector_query(gallery, nothing, 1, method="l2-squared")
    assert (hit.chunk_id, hit.score) == ("zero", 0)
    found = {h.chunk_id: h.score for h in store.vector_query(gallery, QUERY, 99, method="cosine")}
    assert found.get("zero", 0) == 0
    store.delete_chunks(gallery, ["zero"])


def test_vectors_of_length_1_are_compared_by_index_for_dot_and_l2(
    store: Store, names: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = names()
    store.ensure_schema(CollectionSchema(name, VectorSpec(2, normalized=True)))
    vectors = {f"c{i}": unit(np.cos(i), np.sin(i)) for i in range(6)}
    store.batch_upsert_chunks(name, [chunk(i, vector=v) for i, v in vectors.items()])
    long = store.batch_upsert_chunks(name, [chunk("long", vector=as_vector([2, 0]))])
    assert "length 2" in long.failed["long"]
    monkeypatch.setattr(contract, "EXACT_LIMIT", 5)
    query = as_vector([3, 4])
    for method in ("dot", "l2-squared"):
        assert method in get_args(Metric)
        hits = store.vector_query(name, query, 9, method=method)
        expected = {i: oracle(method, query, v) for i, v in vectors.items()}
        found = {h.chunk_id: distance(method, h.score) for h in hits}
        assert found == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize("method", ["hamming", "manhattan"])
def test_vectors_of_length_1_are_compared_exactly_by_other_metrics(
    store: Store, names: Any, method: Metric
) -> None:
    name = names()
    store.ensure_schema(CollectionSchema(name, VectorSpec(2, normalized=True)))
    vectors = {f"c{i}": unit(np.cos(i), np.sin(i)) for i in range(6)}
    store.batch_upsert_chunks(name, [chunk(i, vector=v) for i, v in vectors.items()])
    query = as_vector([3, 4])
    found = {
        h.chunk_id: distance(method, h.score)
        for h in store.vector_query(name, query, 9, method=method)
    }
    assert found == pytest.approx({i: oracle(method, query, v) for i, v in vectors.items()})


def test_no_store_fuses_by_a_metric_that_is_not_its_own(store: Store, collection_name: str) -> None:
    with pytest.raises(StoreCannot):
        store.hybrid_query(collection_name, EAST, "x", 9, fusion="native", method="manhattan")


def test_a_metric_without_an_index_is_refused_over_too_many_chunks(
    store: Store, names: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = names()
    store.ensure_schema(CollectionSchema(name, VectorSpec(2)))
    store.batch_upsert_chunks(name, [chunk(f"c{i}", ordinal=i) for i in range(6)])
    monkeypatch.setattr(contract, "EXACT_LIMIT", 5)
    if "manhattan" in store.answers(store.schema(name).default):
        assert len(store.vector_query(name, EAST, 9, method="manhattan")) == 6
        return
    with pytest.raises(MetricNotIndexed, match="6 chunks match"):
        store.vector_query(name, EAST, 9, method="manhattan")
    where = parse({"ordinal <": 5}, None)
    assert len(store.vector_query(name, EAST, 9, where, method="manhattan")) == 5


@pytest.fixture
def named(store: Store, names: Any) -> str:
    """A collection with two further vectors, of other dimensions and metrics."""
    name: str = names()
    further = {"title": VectorSpec(3), "그림 1": VectorSpec(2, "l2-squared")}
    store.ensure_schema(CollectionSchema(name, VectorSpec(2), further))
    return name


def test_named_vectors_are_searched_and_come_back(store: Store, named: str) -> None:
    store.batch_upsert_chunks(
        named,
        [
            chunk("both", named={"title": unit(0, 0, 1), "그림 1": as_vector([5, 5])}),
            chunk("title only", named={"title": unit(0, 1, 1)}, level=3),
            chunk("neither"),
        ],
    )
    north = unit(0, 0, 1)
    hits = store.vector_query(named, north, 9, vector_name="title")
    assert ids(hits) == ["both", "title only"]
    assert [h.score for h in hits] == pytest.approx([1, 0.7071], abs=1e-4)
    (hit,) = store.vector_query(named, as_vector([5, 6]), 9, vector_name="그림 1")
    assert (hit.chunk_id, hit.score) == ("both", pytest.approx(-1))
    where = parse({"level": 3}, None)
    assert ids(store.vector_query(named, north, 9, where, vector_name="title")) == ["title only"]
    like = parse({"document_id ~": "d*"}, None)
    assert len(store.vector_query(named, north, 9, like, vector_name="title")) == 2
    manhattan = store.vector_query(named, north, 9, vector_name="title", method="manhattan")
    assert ids(manhattan) == ["both", "title only"]
    assert len(store.vector_query(named, EAST, 9)) == 3
    found = {
        c.chunk_id: c for c in store.get_chunks(named, ["both", "neither"], include_vector=True)
    }
    assert {n: v.tolist() for n, v in found["both"].named.items()} == {
        "title": [0, 0, 1],
        "그림 1": [5, 5],
    }
    assert found["neither"].named == {}
    assert store.get_chunks(named, ["both"])[0].named == {}


def test_a_replaced_or_deleted_chunk_takes_its_named_vectors_along(
    store: Store, named: str
) -> None:
    store.batch_upsert_chunks(
        named, [chunk(i, named={"title": unit(1, 0, 0)}) for i in ("a", "b", "c")]
    )
    store.batch_upsert_chunks(named, [chunk("a"), chunk("b", named={"title": unit(0, 1, 0)})])
    store.delete_chunks(named, ["c"])
    (hit,) = store.vector_query(named, unit(0, 1, 0), 9, vector_name="title")
    assert (hit.chunk_id, hit.score) == ("b", pytest.approx(1))
    assert store.chunk_ids(named, "doc")["vector"] == {"a", "b"}
    assert store.chunk_ids_of(named, ["doc"])["doc"]["vector:title"] == {"b"}
    store.delete_documents(named, ["doc"])
    assert store.vector_query(named, unit(0, 1, 0), 9, vector_name="title") == []


def test_hybrid_takes_the_named_vector(store: Store, named: str) -> None:
    store.batch_upsert_chunks(
        named,
        [
            chunk("a", terms="x", named={"title": unit(0, 0, 1)}),
            chunk("b", terms="y", named={"title": unit(1, 0, 0)}),
        ],
    )
    found = store.hybrid_query(named, unit(1, 0, 0), "x", 9, vector_name="title")
    legs = {c.chunk_id: (c.vector.rank if c.vector else None, bool(c.keyword)) for c in found}
    assert legs == {"a": (2, True), "b": (1, False)}


def test_a_vector_name_that_does_not_exist_is_named(store: Store, named: str) -> None:
    with pytest.raises(VectorNotFound, match=r"'abstract'.*title"):
        store.vector_query(named, EAST, 5, vector_name="abstract")
    outcome = store.batch_upsert_chunks(named, [chunk("a", named={"abstract": EAST})])
    assert "'abstract'" in outcome.failed["a"]
    outcome = store.batch_upsert_chunks(named, [chunk("a", named={"title": EAST})])
    assert "'title' has the shape (2,)" in outcome.failed["a"]
    with pytest.raises(InvalidRequest, match="3 finite numbers"):
        store.vector_query(named, EAST, 5, vector_name="title")


@pytest.mark.parametrize("size", [1e30, 1e-30])
def test_a_query_that_32_bits_cannot_square_is_refused(
    store: Store, named: str, size: float
) -> None:
    with pytest.raises(InvalidRequest, match="cannot square"):
        store.vector_query(named, np.full(2, size, np.float32), 5)


def test_another_metric_or_name_is_a_conflict(store: Store, named: str) -> None:
    assert store.schema(named).vector("그림 1") == VectorSpec(2, "l2-squared")
    for other in (
        CollectionSchema(named, VectorSpec(2)),
        CollectionSchema(named, VectorSpec(2, "dot"), store.schema(named).named),
        CollectionSchema(named, VectorSpec(2), store.schema(named).named, tenants=True),
    ):
        with pytest.raises(Conflict):
            store.ensure_schema(other)


def test_a_schema_that_cannot_be_is_refused(store: Store) -> None:
    for schema in (
        CollectionSchema("", VectorSpec(2)),
        CollectionSchema("c", VectorSpec(2, "euclid")),  # type: ignore[arg-type]
        CollectionSchema("c", VectorSpec(2), {"": VectorSpec(2)}),
        CollectionSchema("c", VectorSpec(2), {"title": VectorSpec(0)}),
    ):
        with pytest.raises(InvalidRequest):
            store.ensure_schema(schema)
    assert "c" not in store.collections()


def test_a_horizon_holds_for_the_keyword_retriever_too(store: Store, collection_name: str) -> None:
    turns = {"near": 0.1, "middle": 0.8, "far": 2.5}
    store.batch_upsert_chunks(
        collection_name,
        [chunk(i, vector=unit(np.cos(t), np.sin(t)), terms="x") for i, t in turns.items()],
    )
    everyone = store.hybrid_query(collection_name, EAST, "x", 9, horizon=0.5)
    assert {c.chunk_id for c in everyone} == {"near", "middle"}
    only_words = store.hybrid_query(collection_name, EAST, "x", 9, horizon=0.5, alpha=0)
    assert {c.chunk_id for c in only_words} == {"near", "middle"}


NUMBERS = st.sampled_from([-2.0, -1.0, -0.5, 0.0, 0.25, 1.0, 3.0])
ROWS = st.lists(
    st.tuples(st.lists(NUMBERS, min_size=4, max_size=4).filter(any), st.integers(0, 3)),
    min_size=1,
    max_size=10,
)


@pytest.mark.long
@settings(
    max_examples=15,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(ROWS, st.lists(NUMBERS, min_size=4, max_size=4).filter(any), st.integers(-1, 3))
def test_any_vectors_are_ranked_as_their_distances_say(
    store: Store, gallery: str, rows: list[tuple[list[float], int]], query: list[float], level: int
) -> None:
    written = [
        chunk(f"r{i}", document_id="random", vector=as_vector(v), level=at)
        for i, (v, at) in enumerate(rows)
    ]
    store.delete_documents(gallery, ["random"])
    store.batch_upsert_chunks(gallery, written)
    where = parse({"document_id": "random", "level >": level}, None)
    assert where is not None
    kept = [c for c in written if matches(where, visible(c))]
    for method in METRICS:
        expected = {c.chunk_id: oracle(method, as_vector(query), c.vector) for c in kept}
        hits = store.vector_query(gallery, as_vector(query), 99, where, method=method)
        found = {h.chunk_id: distance(method, h.score) for h in hits}
        assert found == pytest.approx(expected, abs=1e-4)
    store.delete_documents(gallery, ["random"])
