"""The weight of the vector retriever is chosen for each question, unless somebody set it."""

import math
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from memory_store import MemoryStore
from search_parts import ask, found, ingest, made_of, make_places

from callslip.config.sections.ranking import SearchSettings
from callslip.messages.options import Ranking
from callslip.retrieval.candidates.calibration import LEAST
from callslip.retrieval.candidates.fusion_weight import BALANCE, UNKNOWN, choose
from callslip.retrieval.candidates.resources import Resources
from callslip.retrieval.messages import SearchRequest
from callslip.retrieval.run import traced
from callslip.stores.fusion import Scale
from callslip.stores.ledger import Ledger
from callslip.stores.records import RetrieverHit

CHUNKS = [f"a{n:02}" for n in range(40)]
SCALE = Scale(mean=0.8, deviation=0.01, most=22.0, information=10.0)
KEYWORDS = [RetrieverHit("words", 19.0), RetrieverHit("both", 8.0)]


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Resources]:
    """Forty passages, of which the farthest has the word `east`."""
    with closing(Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")) as ledger:
        ledger.create()
        made = made_of(ledger, MemoryStore(), SearchSettings(result_cache=0))
        make_places(made)
        ingest(made, "a", CHUNKS)
        ingest(made, "b", ["far", *(f"b{n}" for n in range(3))], words="east")
        yield made


def test_the_weight_falls_with_the_information_that_the_best_hit_matches() -> None:
    weight = choose(KEYWORDS, SCALE)
    assert weight.matched == pytest.approx(10 * 19 / 22)
    assert weight.alpha == pytest.approx(BALANCE / (BALANCE + 10 * 19 / 22))
    assert choose([], SCALE).alpha == 1
    assert choose(KEYWORDS, replace(SCALE, information=BALANCE * 22 / 19)).alpha == 0.5


def test_a_question_in_other_words_than_the_passages_is_ranked_by_meaning(
    engine: Resources,
) -> None:
    response = ask(engine, "north")
    assert response.alpha == 1
    assert response.matched is not None
    assert response.matched.bits == 0 < response.matched.of
    assert found(response) == found(ask(engine, "north", alpha=1))


def test_the_answer_and_the_trace_say_why_the_weight_was_chosen(engine: Resources) -> None:
    request = SearchRequest(collection="papers", query="east", explain=True)
    response, trace = traced(engine, request)
    assert response.matched is not None
    assert 0 < response.matched.bits <= response.matched.of
    nats = response.matched.bits * math.log(2)
    assert response.alpha == pytest.approx(BALANCE / (BALANCE + nats), abs=1e-3)
    assert (trace.alpha, trace.matched) == (response.alpha, response.matched.model_dump())
    for hit in response.hits:
        assert hit.reasons is not None
        assert sum(hit.reasons.parts.values()) == pytest.approx(hit.score)


def test_a_weight_that_somebody_set_is_used(engine: Resources) -> None:
    ways = [ask(engine, alpha=0.3), ask(engine, ranking={"alpha": 0.3})]
    options = engine.ledger.collections.get("papers").options
    changed = options.model_copy(update={"ranking": Ranking(alpha=0.3)})
    engine.ledger.collections.set_options("papers", changed)
    ways.append(ask(engine))
    settings = engine.settings.model_copy(update={"search": SearchSettings(alpha=0.3)})
    engine.ledger.collections.set_options("papers", options)
    ways.append(ask(replace(engine, backend=replace(engine.backend, settings=settings))))
    assert [(response.alpha, response.matched) for response in ways] == [(0.3, None)] * 4


def test_too_few_passages_for_a_calibration_have_a_fixed_weight(engine: Resources) -> None:
    ingest(engine, "c", [f"c{n}" for n in range(LEAST - 1)], collection="notes", tenant="ann")
    response = ask(engine, collection="notes", tenant="ann")
    assert (response.alpha, response.matched) == (UNKNOWN, None)
