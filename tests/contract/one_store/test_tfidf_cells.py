"""The TF-IDF store with many chunks: cells of vectors, and n-grams that a search need not read."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from unittest.mock import patch

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from store_cases import chunk, ids

from callslip.stores.metrics import Metric, scores
from callslip.stores.properties.filters import Where, parse
from callslip.stores.records import CollectionSchema, VectorSpec
from callslip.stores.tfidf import cells, grams, nearest, partition
from callslip.stores.tfidf.grams import Postings, fit
from callslip.stores.tfidf.store import TfidfStore

NUMBER, DIMENSION = 2000, 16


def clustered(number: int, seed: int) -> npt.NDArray[np.float32]:
    """Unit vectors around 30 directions."""
    rng = np.random.default_rng(seed)
    centers = np.random.default_rng(1).standard_normal((30, DIMENSION))
    drawn = centers[rng.integers(30, size=number)] + rng.standard_normal((number, DIMENSION)) * 0.4
    return np.asarray(drawn / np.linalg.norm(drawn, axis=1, keepdims=True), np.float32)


VECTORS = clustered(NUMBER, 2)


@pytest.fixture
def many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TfidfStore]:
    """A store with a snapshot in which 2,000 vectors are many; a search reads few of 89 cells."""
    monkeypatch.setattr(cells, "MANY", 100)
    monkeypatch.setattr(nearest, "PROBES", 8)
    monkeypatch.setattr(nearest, "WANTED", 4)
    monkeypatch.setattr(partition, "SMALL", 4)
    with closing(TfidfStore(tmp_path)) as store:
        store.ensure_schema(CollectionSchema("c", VectorSpec(DIMENSION, normalized=True)))
        store.batch_upsert_chunks(
            "c",
            [
                chunk(f"c{i:04}", terms="word", vector=vector, ordinal=i, properties={"n": i % 7})
                for i, vector in enumerate(VECTORS)
            ],
        )
        store.refit("c")
        yield store


def found(store: TfidfStore, query: npt.NDArray[np.float32], where: Where | None = None) -> float:
    """The share of the 20 nearest chunks that a search finds."""
    expected = ids(
        store.exact_query("c", query, 20, where, tenant="", vector_name="", metric="cosine")
    )
    assert len(expected) == 20
    return len(set(expected) & set(ids(store.vector_query("c", query, 20, where)))) / 20


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of vectors that each search has compared."""
    numbers: list[int] = []
    compare = nearest.nearest

    def counting(metric: Metric, query: object, parts: list[nearest.Part], limit: int) -> object:
        numbers.append(sum(len(part.picks) for part in parts))
        return compare(metric, query, parts, limit)  # type: ignore[arg-type]

    monkeypatch.setattr("callslip.stores.tfidf.view.nearest", counting)
    return numbers


def test_a_search_reads_few_vectors_and_finds_nearly_all_of_the_nearest(
    many: TfidfStore, reads: list[int]
) -> None:
    shares = [found(many, query) for query in clustered(40, 3)]
    assert np.mean(shares) > 0.9
    exact, near = reads[::2], reads[1::2]
    assert set(exact) == {NUMBER}
    assert np.mean(near) < NUMBER / 3


def test_the_scores_are_those_of_the_vectors(many: TfidfStore) -> None:
    query = clustered(1, 4)[0]
    for hit in many.vector_query("c", query, 20):
        [score] = scores("cosine", query, VECTORS[int(hit.chunk_id[1:])][np.newaxis])
        assert hit.score == pytest.approx(score)


def test_a_filter_reads_more_cells_and_one_that_few_pass_reads_these_alone(
    many: TfidfStore, reads: list[int]
) -> None:
    seventh, narrow = parse({"n": 3}, None), parse({"ordinal <": 60}, None)
    shares = [found(many, query, seventh) for query in clustered(40, 5)]
    assert np.mean(shares) > 0.9
    assert min(reads[1::2]) >= 80  # four for each hit
    query = clustered(1, 6)[0]
    assert found(many, query, narrow) == 1
    assert reads[-1] == 60


def test_what_came_or_went_since_the_fit_counts_at_once(many: TfidfStore, tmp_path: Path) -> None:
    query = clustered(1, 7)[0]
    best = ids(many.vector_query("c", query, 3))
    many.delete_chunks("c", best[:2])
    many.batch_upsert_chunks("c", [chunk("new", terms="word", vector=query)])
    assert ids(many.vector_query("c", query, 2)) == ["new", best[2]]
    with closing(TfidfStore(tmp_path)) as other:
        assert ids(other.vector_query("c", query, 2)) == ["new", best[2]]


@pytest.mark.parametrize("metric", ["manhattan", "hamming"])
def test_another_metric_compares_every_vector(
    many: TfidfStore, reads: list[int], metric: Metric
) -> None:
    many.vector_query("c", VECTORS[0], 20, method=metric)
    assert reads == [NUMBER]


def test_lengths_that_differ_need_every_vector_for_products() -> None:
    rows = VECTORS * np.linspace(1, 2, NUMBER, dtype=np.float32)[:, np.newaxis]
    uneven, _ = cells.grouped(rows, nearest.lengths(rows))
    even, _ = cells.grouped(VECTORS, nearest.lengths(VECTORS))
    assert [m for m in ("cosine", "dot", "l2-squared") if uneven.support(m)] == ["cosine"]
    assert [m for m in ("cosine", "dot", "l2-squared") if even.support(m)] == [
        "cosine",
        "dot",
        "l2-squared",
    ]
    assert not even.support("manhattan")


@pytest.mark.parametrize(
    "rows",
    [np.ones((300, 4), np.float32), np.zeros((300, 4), np.float32), np.eye(300, dtype=np.float32)],
    ids=["all equal", "all zero", "all orthogonal"],
)
def test_any_vectors_have_cells(rows: npt.NDArray[np.float32]) -> None:
    made, order = cells.grouped(rows, nearest.lengths(rows))
    assert sorted(order.tolist()) == list(range(300))
    pieces = list(made.near(rows[0]))
    assert sorted(i for piece in pieces for i in range(300)[piece]) == list(range(300))


def every(postings: Postings, query: npt.NDArray[np.float64], limit: int, ok: object) -> set[int]:
    """The rows of the best texts by the product of the whole matrix, with ties."""
    sums = postings.matrix @ query
    rows = [i for i in np.flatnonzero(sums > 0).tolist() if ok[i]]  # type: ignore[index]
    if len(rows) <= limit:
        return set(rows)
    least = sorted((sums[i] for i in rows), reverse=True)[limit - 1]
    return {i for i in rows if sums[i] >= least * (1 - 1e-12)}


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.integers(0, 10_000), st.integers(1, 30), st.sampled_from([0, 1000]))
def test_n_grams_that_are_not_read_change_no_hit_and_no_score(
    seed: int, limit: int, many: int
) -> None:
    rng = np.random.default_rng(seed)
    shares = 1 / np.arange(1, 200)
    shares /= shares.sum()
    texts = [
        " ".join(f"w{word}" for word in rng.choice(199, size=rng.integers(1, 12), p=shares))
        for _ in range(400)
    ]
    _, postings = fit(texts)
    passing = rng.random(400) < rng.choice([0.1, 0.6, 1.0])
    chosen = rng.choice(len(postings.grams), 6, replace=False)
    chosen = np.sort(np.unique(np.concatenate([chosen, rng.choice(30, 3)])))
    weights = rng.choice([0.05, 0.3, 1.0, 4.0], size=len(chosen))
    query = np.zeros(len(postings.grams))
    query[chosen] = weights
    with patch.object(grams, "_MANY", many), patch.object(grams, "_FEW", seed % 2 * 100):
        rows, found_scores = postings.best(postings.grams[chosen], weights, limit, passing)
    assert set(rows.tolist()) == every(postings, query, limit, passing)
    heaviest_first = np.argsort(-weights, kind="stable")
    sums = np.zeros(len(texts))
    for column, weight in zip(chosen[heaviest_first], weights[heaviest_first], strict=True):
        sums += postings.matrix[:, [column]].toarray()[:, 0] * weight
    assert found_scores.tolist() == sums[rows].tolist()


def test_frequent_n_grams_are_looked_up_for_few_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(8)
    texts = [f"the {'rare' if i % 50 == 0 else 'x'} own{i} {rng.integers(9)}" for i in range(2000)]
    model, postings = fit(texts)
    numbers = [model.words[word] for word in ("the", "rare")]
    wanted = np.array(sorted(numbers))
    weights = np.array([0.05 if gram == model.words["the"] else 1.0 for gram in wanted])
    looked: list[int] = []
    search = np.searchsorted

    def counting(rows: npt.NDArray[np.int64], values: npt.NDArray[np.int64]) -> object:
        looked.append(len(values))
        return search(rows, values)

    monkeypatch.setattr(grams, "_MANY", 100)
    monkeypatch.setattr(grams, "_FEW", 100)
    monkeypatch.setattr(np, "searchsorted", counting)
    rows, _ = postings.best(wanted, weights, 10, np.ones(2000, np.bool_))
    assert set(rows.tolist()) <= {i for i in range(2000) if i % 50 == 0}
    assert looked[-1] <= 40
