"""How every store ranks: the vector leg, the keyword leg and both."""

import numpy as np
import pytest
from store_cases import EAST, chunk, ids, unit

from callslip.errors import InvalidRequest
from callslip.stores.contract import Store
from callslip.stores.fusion import Fusion, fuse
from callslip.stores.properties.filters import parse
from callslip.stores.records import Vector

pytest_plugins = ["store_fixtures"]


def test_the_vector_score_is_the_cosine(store: Store, collection_name: str) -> None:
    vectors = {"same": (1, 0), "half": (1, 1), "right": (0, 1), "away": (-1, 0)}
    store.batch_upsert_chunks(
        collection_name, [chunk(i, vector=unit(*v)) for i, v in vectors.items()]
    )
    hits = store.vector_query(collection_name, EAST, 9)
    assert ids(hits) == ["same", "half", "right", "away"]
    assert [hit.score for hit in hits] == pytest.approx([1, 0.7071, 0, -1], abs=1e-4)


def bm25(query: str) -> list[float]:
    """Of `x x y` and `x y z`, where the third text is `z z z`, for a query of `x` alone."""
    idf = np.log(1 + (3 - 2 + 0.5) / (2 + 0.5))
    return [query.count("x") * idf * f * 2.2 / (f + 1.2) for f in (2, 1)]


def tfidf(query: str) -> list[float]:
    """The same as a cosine: x, y, z and the pairs xx, xy, yz, zz are the dimensions."""
    both, alone = (np.log(4 / (1 + texts)) + 1 for texts in (2, 1))
    a = np.array([2 * both, both, 0, alone, both, 0, 0])
    b = np.array([both, both, both, 0, both, alone, 0])
    q = np.array([both * query.count("x"), 0, 0, alone * query.count("x x"), 0, 0, 0])
    return [float(q @ v / np.linalg.norm(q) / np.linalg.norm(v)) for v in (a, b)]


@pytest.mark.parametrize("query", ["x", "x x"])
def test_the_keyword_score_is_what_the_store_says(
    store: Store, collection_name: str, query: str
) -> None:
    store.batch_upsert_chunks(
        collection_name,
        [chunk("a", terms="x x y"), chunk("b", terms="x y z"), chunk("c", terms="z z z")],
    )
    hits = store.keyword_query(collection_name, query, 9)
    assert ids(hits) == ["a", "b"]
    expected = {"bm25": bm25, "tfidf": tfidf}[store.keyword_score](query)
    assert [hit.score for hit in hits] == pytest.approx(expected, rel=1e-4)


@pytest.mark.long
@pytest.mark.parametrize("terms", ["", "   ", "nobody", "every* OR (", '"body', "x" * 70_000])
def test_terms_are_words_and_never_syntax(store: Store, collection_name: str, terms: str) -> None:
    store.batch_upsert_chunks(collection_name, [chunk("a")])
    assert store.keyword_query(collection_name, terms, 5) == []


def test_terms_of_every_script_are_found(store: Store, collection_name: str) -> None:
    store.batch_upsert_chunks(collection_name, [chunk("a", terms="출산 장려금 c++ ñ"), chunk("b")])
    for term in ("출산", "장려금", "c++", "ñ"):
        assert ids(store.keyword_query(collection_name, term, 5)) == ["a"]


def test_a_query_of_ten_thousand_terms_is_answered(store: Store, collection_name: str) -> None:
    store.batch_upsert_chunks(collection_name, [chunk("a", terms="t7 t8"), chunk("b", terms="t7")])
    terms = " ".join(f"t{i}" for i in range(10_000))
    assert ids(store.keyword_query(collection_name, terms, 5)) == ["a", "b"]


def test_ties_are_broken_by_chunk_id_at_any_limit(store: Store, collection_name: str) -> None:
    order = [f"c{i:02}" for i in (31, 4, 15, 9, 26, 5, 35, 8, 97, 93)]
    for some in (order[:3], order[3:4], order[4:]):
        store.batch_upsert_chunks(collection_name, [chunk(one) for one in some])
    where = parse({"document_id ~": "d*"}, None)
    for limit in (0, -1, 1, 3, 5, 50, 100_000):
        expected = sorted(order)[: max(limit, 0)]
        assert ids(store.vector_query(collection_name, EAST, limit)) == expected
        assert ids(store.vector_query(collection_name, EAST, limit, where)) == expected
        assert ids(store.keyword_query(collection_name, "every", limit)) == expected


def test_an_empty_collection_answers_with_nothing(store: Store, collection_name: str) -> None:
    assert store.vector_query(collection_name, EAST, 5) == []
    assert store.keyword_query(collection_name, "every", 5) == []
    assert store.count(collection_name) == 0
    assert store.aggregate_group_by(collection_name, "p") == []
    assert store.vector_query(collection_name, EAST, 5, parse({"p ~": "*"}, None)) == []


@pytest.mark.parametrize("vector", [unit(1, 0, 0), np.array([np.nan, 1], np.float32)])
def test_a_query_vector_that_does_not_fit_is_refused(
    store: Store, collection_name: str, vector: Vector
) -> None:
    with pytest.raises(InvalidRequest, match="2 finite numbers"):
        store.vector_query(collection_name, vector, 5)


@pytest.mark.long
@pytest.mark.parametrize("fusion", ["weighted", "rrf"])
@pytest.mark.parametrize("alpha", [0.0, 0.4, 1.0])
def test_hybrid_is_the_fusion_of_both_retrievers(
    store: Store, collection_name: str, fusion: Fusion, alpha: float
) -> None:
    rng = np.random.default_rng(7)
    store.batch_upsert_chunks(
        collection_name,
        [
            chunk(f"c{i:02}", vector=unit(*rng.normal(size=2)), terms="x " * (i % 4) + "y")
            for i in range(40)
        ],
    )
    where = parse({"ordinal": 0}, None)
    legs = (
        store.vector_query(collection_name, EAST, 20, where),
        store.keyword_query(collection_name, "x", 20, where),
    )
    vectors = [(hit.chunk_id, hit.score) for hit in legs[0]] if alpha > 0 else []
    keywords = [(hit.chunk_id, hit.score) for hit in legs[1]] if alpha < 1 else []
    expected = fuse(vectors, keywords, fusion=fusion, alpha=alpha)[:15]
    found = store.hybrid_query(
        collection_name, EAST, "x", 15, where, pool=20, fusion=fusion, alpha=alpha
    )
    assert found == expected


def test_hybrid_without_a_vector_is_the_keyword_retriever(
    store: Store, collection_name: str
) -> None:
    store.batch_upsert_chunks(collection_name, [chunk("a"), chunk("b", terms="other")])
    assert [c.chunk_id for c in store.hybrid_query(collection_name, None, "every", 5, alpha=1)] == [
        "a"
    ]
