"""Retrieval is as good as promised, through the whole chain and the API, in every store."""

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from functools import cache

import pytest
from judged_parts import LONGEST, Hold, Measure, in_test_all, sets
from long_forms import SLOW
from stack import Stack
from store_fixtures import STORES

from benchmarks.stores.agreement import Question, ask, ask_copy, prepare
from callslip.config.settings import Settings
from callslip.evals import beir
from callslip.models.registry import make_analyzer, make_embedder
from callslip.stores.registry import make_store

pytestmark = pytest.mark.timeout(LONGEST)

pytest_plugins = ["store_fixtures"]

needs_time = pytest.mark.skipif(
    not SLOW, reason="embeds for hours: set CALLSLIP_TEST_SLOW=1 to run it"
)


@pytest.mark.parametrize(
    ("name", "least"),
    [
        ("own_en", {"hybrid": 0.92}),
        ("own_ko", {"hybrid": 0.97, "keyword": 0.9}),
        pytest.param("en_xquad", {"hybrid": 0.975}, marks=in_test_all),
        pytest.param("ko_autorag", {"hybrid": 0.92, "keyword": 0.92}, marks=in_test_all),
        pytest.param("en_stackfaq", {"hybrid": 0.89}, marks=needs_time),
        pytest.param("en_scifact", {"hybrid": 0.71}, marks=needs_time),
    ],
)
def test_ndcg_at_10_on_a_judged_set(measured: Measure, name: str, least: dict[str, float]) -> None:
    reached = {row.variant: row.ndcg.mean for row in measured(name).rows}
    assert {
        retriever: reached[retriever]
        for retriever in least
        if reached[retriever] < least[retriever]
    } == {}


QUERIES = 40
"""Questions of each set that every store is asked."""


@dataclass(frozen=True)
class SearchedSet:
    """Some questions of a judged set, and how well the store that ingested it answers them."""

    collection: str
    judged: beir.JudgedSet
    questions: list[Question]
    expected: dict[str, float]


@pytest.fixture(scope="session")
def searched_set(stack: Stack, held: Hold) -> Callable[[str], SearchedSet]:
    """Asks each set once, in Chroma, which the other stores are held against."""

    @cache
    def ask_once(name: str) -> SearchedSet:
        collection, judged = held(name).collection, held(name).judged.at_most(QUERIES)
        questions = prepare(judged, make_embedder(stack.settings), make_analyzer())
        with closing(make_store(stack.settings, "chroma")) as source:
            expected = ask(source, collection, judged, questions)
        return SearchedSet(collection, judged, questions, expected)

    return ask_once


@pytest.fixture(scope="session", params=STORES)
def copy_at(request: pytest.FixtureRequest) -> tuple[Settings, str]:
    """The settings and the kind of each store."""
    kind, settings = STORES[request.param]
    return request.getfixturevalue(settings), kind


@pytest.mark.long
@pytest.mark.parametrize("name", sets("own_en", "own_ko", "en_xquad", "ko_autorag"))
def test_a_collection_ranks_alike_wherever_it_lies(
    stack: Stack,
    searched_set: Callable[[str], SearchedSet],
    copy_at: tuple[Settings, str],
    name: str,
) -> None:
    here = searched_set(name)
    with (
        closing(make_store(stack.settings, "chroma")) as source,
        closing(make_store(*copy_at)) as it,
    ):
        found = ask_copy(source, here.collection, it, here.judged, here.questions)
        legs = ("vector",) if it.keyword_score == "tfidf" else ("vector", "keyword", "hybrid")
    assert {retriever: found[retriever] for retriever in legs} == pytest.approx(
        {retriever: here.expected[retriever] for retriever in legs}, abs=0.01
    )
