"""Exploration over a ledger and a store in memory: who asks for it, and which ranks it changes."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from memory_store import MemoryStore
from search_parts import a_store, ask, found, ingest, learn, made_of, make_places

from callslip.config.sections.ranking import MemorySettings, SearchSettings
from callslip.messages.options import Ranking
from callslip.retrieval.candidates.resources import Resources
from callslip.retrieval.messages import SearchRequest
from callslip.retrieval.run import traced
from callslip.stores.ledger import Ledger
from callslip.vocabulary import WITHOUT_EXPLORATION

CHUNKS = [f"a{n:02}" for n in range(40)]
TRIES = 20


@pytest.fixture(params=["epsilon", "thompson"])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Resources]:
    """A collection in which some chunks have helped."""
    search = SearchSettings(result_cache=0)
    with closing(Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")) as ledger:
        ledger.create()
        memory = MemorySettings(exploration=request.param)
        made = made_of(ledger, MemoryStore(), search, memory=memory)
        make_places(made)
        ingest(made, "a", CHUNKS)
        learn(made, *CHUNKS[4:12], wins=1)
        yield made


def explore(engine: Resources, ratio: float) -> None:
    """Set the collection's share."""
    options = engine.ledger.collections.get("papers").options
    ranking = Ranking(exploration_ratio=ratio)
    changed = options.model_copy(update={"ranking": ranking})
    engine.ledger.collections.set_options("papers", changed)


def test_nothing_is_explored_unless_the_collection_asks_for_it(engine: Resources) -> None:
    best = found(ask(engine, top=10))
    assert all(found(ask(engine, top=10)) == best for _ in range(TRIES))


def test_the_first_three_ranks_are_never_changed(engine: Resources) -> None:
    best = found(ask(engine, top=10))
    explore(engine, 1.0)
    seen = [found(ask(engine, top=10)) for _ in range(TRIES)]
    assert {tuple(hits[:3]) for hits in seen} == {tuple(best[:3])}
    assert any(hits != best for hits in seen), "below them it explores"


@pytest.mark.parametrize("top", [1, 4])
def test_a_search_of_fewer_than_five_hits_is_as_without(engine: Resources, top: int) -> None:
    best = found(ask(engine, top=top))
    explore(engine, 1.0)
    assert all(found(ask(engine, top=top)) == best for _ in range(TRIES))


def test_a_caller_refuses_it_whatever_the_collection_asks_for(engine: Resources) -> None:
    best = found(ask(engine, top=10))
    explore(engine, 1.0)
    for _ in range(TRIES):
        assert found(ask(engine, top=10, ranking=WITHOUT_EXPLORATION)) == best


@pytest.mark.parametrize("more", [{"ranking": {"mmr_lambda": 0.5}}, {"parent_strategy": "replace"}])
def test_a_search_whose_hits_are_reordered_afterwards_does_not_explore(
    engine: Resources, more: dict[str, Any]
) -> None:
    best = found(ask(engine, top=10, **more))
    explore(engine, 1.0)
    assert all(found(ask(engine, top=10, **more)) == best for _ in range(TRIES))


def test_scores_fall_from_rank_to_rank_where_bonuses_are_sampled(engine: Resources) -> None:
    explore(engine, 1.0)
    request = SearchRequest.model_validate({"collection": "papers", "query": "east", "top": 10})
    for _ in range(TRIES):
        response, trace = traced(engine, request)
        scores = [hit.score for hit in response.hits]
        if trace.explored:
            scores.pop(trace.explored.position - 1)
        assert scores == sorted(scores, reverse=True)
    assert a_store(engine).count("papers") == len(CHUNKS)
