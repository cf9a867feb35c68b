"""The hotset over a ledger and a store in memory: when it answers, and what it never serves."""

import random
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from memory_store import MemoryStore
from search_parts import (
    QUERIES,
    a_store,
    ask,
    found,
    ingest,
    learn,
    made_of,
    make,
    make_places,
)

from callslip.config.sections.ranking import MemorySettings, SearchSettings
from callslip.errors import CollectionNotFound
from callslip.messages.options import Ranking
from callslip.retrieval.candidates.calibration import ScoreCalibrations
from callslip.retrieval.candidates.hotset import Hot, Hotset
from callslip.retrieval.candidates.resources import Resources
from callslip.retrieval.messages import SearchRequest
from callslip.retrieval.run import traced
from callslip.retrieval.tracing.recording import Learning
from callslip.stores.ledger import Ledger

HOT = SearchSettings(hotset=50, result_cache=0)


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Resources]:
    """An engine with a hotset."""
    with closing(Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")) as ledger:
        ledger.create()
        made = made_of(ledger, MemoryStore(), HOT)
        make_places(made)
        yield made


def test_what_helped_with_nearly_the_question_is_all_that_is_found(engine: Resources) -> None:
    ingest(engine, "a", ["a1", "a2", "a3"])
    assert found(ask(engine)) == ["a1", "a2", "a3"]
    learn(engine, "a2", "a3")
    response, trace = traced(
        engine,
        SearchRequest.model_validate({"collection": "papers", "query": "east", "explain": True}),
    )
    assert sorted(found(response)) == ["a2", "a3"]
    assert response.hotset is trace.hotset is trace.as_json(with_question=False)["hotset"] is True
    assert response.cut is True
    assert response.hits[0].legs.vector is response.hits[0].legs.keyword is None
    reasons = response.hits[0].reasons
    assert reasons
    assert reasons.parts["hotset"] == pytest.approx(1)
    assert sum(reasons.parts.values()) == pytest.approx(response.hits[0].score, abs=1e-5)
    assert reasons.basis["vector"] is reasons.basis["keyword"] is None
    assert trace.basis() == []
    assert not {"legs", "narrow", "background"} & set(response.timings)
    assert "hotset" in response.timings
    assert sorted(found(ask(engine, "nearly east"))) == ["a2", "a3"]
    assert len(found(ask(engine, "north"))) == 3
    assert (engine.hotset.hits, engine.hotset.misses) == (2, 2)


def test_no_retriever_of_the_store_is_run_and_no_sample_is_read(
    engine: Resources, monkeypatch: pytest.MonkeyPatch
) -> None:
    ingest(engine, "a", ["a1", "a2"])
    learn(engine, "a2")

    def never(*_: Any, **__: Any) -> None:
        raise AssertionError("the store was searched")

    for name in ("retrieve", "count", "find_ids"):
        monkeypatch.setattr(MemoryStore, name, never)
    monkeypatch.setattr(ScoreCalibrations, "of", never)
    assert found(ask(engine)) == ["a2"]


@pytest.mark.parametrize(
    "given",
    [
        {"ranking": {"hotset": False}},
        {"ranking": {"memory_weight": 0}},
        {"alpha": 0},
        {"method": "dot"},
        {"horizon": 2.0},
        {"query_embedding": [1.0, 0.0]},
        {"parent_strategy": "replace"},
        {"operation_level": -9},
    ],
)
def test_a_request_goes_past_it(engine: Resources, given: dict[str, Any]) -> None:
    ingest(engine, "a", ["a1", "a2"])
    learn(engine, "a2")
    assert ask(engine).hotset is True
    assert ask(engine, **given).hotset is False
    assert (engine.hotset.hits, engine.hotset.misses) == (1, 0)


def test_a_collection_goes_past_it_and_at_0_there_is_none(engine: Resources) -> None:
    ingest(engine, "a", ["a1", "a2"])
    learn(engine, "a2")
    options = engine.ledger.collections.get("papers").options
    refusing = Ranking.model_validate({"hotset": False})
    changed = options.model_copy(update={"ranking": refusing})
    engine.ledger.collections.set_options("papers", changed)
    assert ask(engine).hotset is False
    assert ask(engine, ranking={"hotset": True}).hotset is True
    off = made_of(engine.ledger, a_store(engine), SearchSettings())
    assert ask(off, ranking={"hotset": True}).hotset is False
    assert (off.hotset.hits, off.hotset.misses) == (0, 0)


def test_a_share_of_searches_goes_past_it_the_same_ones_each_time(engine: Resources) -> None:
    ingest(engine, "a", ["a1", "a2"])
    learn(engine, "a2")
    exploring = made_of(engine.ledger, a_store(engine), HOT, memory=MemorySettings())
    responses = [ask(exploring) for _ in range(120)]
    assert 7 < sum(not response.hotset for response in responses) < 33
    for response in responses[:9]:
        assert ask(exploring, replay=response.trace_id).hotset is response.hotset


def test_one_win_makes_nothing_hot_and_losses_take_it_out(engine: Resources) -> None:
    ingest(engine, "a", ["a1", "a2"])
    learn(engine, "a1", wins=1)
    assert ask(engine).hotset is False
    learn(engine, "a2", wins=2)
    assert ask(engine).hotset is True
    trace = traced(engine, SearchRequest(collection="papers", query="east"))[1]
    learning = Learning(engine.ledger, engine.settings.memory, engine.settings.traces)
    learning.record([trace])
    learning.outcome(trace.trace_id, ["a2"], "unhelpful", user="user 9")
    assert ask(engine).hotset is False


def test_what_is_hot_is_read_again_when_the_place_learned_something(engine: Resources) -> None:
    ingest(engine, "a", ["a1", "a2"])
    learn(engine, "a1")
    assert found(ask(engine)) == ["a1"]
    learn(engine, "a2")
    assert sorted(found(ask(engine))) == ["a1", "a2"]
    engine.ledger.memory.reset("papers")
    assert ask(engine).hotset is False
    engine.hotset = Hotset(engine.ledger, engine.settings, check_seconds=3600)
    assert ask(engine).hotset is False
    learn(engine, "a2")
    assert ask(engine).hotset is False


def test_only_so_many_are_kept_the_most_useful_ones(engine: Resources) -> None:
    ingest(engine, "a", ["a1", "a2", "a3"])
    learn(engine, "a1", "a2", "a3", wins=2)
    learn(engine, "a3", wins=3, as_of="2020-01-01")
    few = made_of(engine.ledger, a_store(engine), SearchSettings(hotset=1))
    assert found(ask(few)) == ["a3"]


def test_a_deleted_document_is_served_no_more(engine: Resources) -> None:
    document = ingest(engine, "a", ["a1", "a2"])
    learn(engine, "a2")
    engine.hotset = Hotset(engine.ledger, engine.settings, check_seconds=3600)
    assert found(ask(engine)) == ["a2"]
    engine.ledger.documents.delete(document)
    assert found(ask(engine)) == []


def test_a_passage_that_the_new_version_does_not_have_is_served_no_more(engine: Resources) -> None:
    ingest(engine, "a", ["a1", "a2"])
    learn(engine, "a2")
    assert found(ask(engine)) == ["a2"]
    ingest(engine, "a", ["a1", "a3"])
    response = ask(engine)
    assert (found(response), response.hotset) == (["a1", "a3"], False)


def test_what_is_not_in_force_is_not_served(engine: Resources) -> None:
    ingest(engine, "old", ["o1"], valid_to="2019-07-01")
    ingest(engine, "new", ["n1"], valid_from="2019-07-01")
    learn(engine, "o1", "n1")
    assert found(ask(engine)) == ["n1"]
    assert found(ask(engine, as_of="2018-01-01")) == ["o1"]
    assert sorted(found(ask(engine, as_of="any"))) == ["n1", "o1"]
    ingest(engine, "new", ["n1"], valid_from="2019-07-01", valid_to="2020-01-01")
    assert found(ask(engine)) == []


def test_what_the_filter_leaves_out_is_not_served(engine: Resources) -> None:
    ingest(engine, "a", ["a1"], kind="x")
    ingest(engine, "b", ["b1"], kind="y")
    learn(engine, "a1", "b1")
    assert found(ask(engine, having_all={"kind": "x"})) == ["a1"]
    response = ask(engine, having_any={"kind": "z"})
    assert (found(response), response.hotset) == ([], False)
    ingest(engine, "c", ["c1"], level=1)
    learn(engine, "c1")
    assert "c1" not in found(ask(engine))
    assert found(ask(engine, operation_level=1)) == ["c1"]


def test_a_number_of_the_question_must_be_in_the_passage(engine: Resources) -> None:
    ingest(engine, "a", ["a1"], words="70 east")
    ingest(engine, "b", ["b1"], words="71 east")
    learn(engine, "a1", "b1")
    assert sorted(found(ask(engine))) == ["a1", "b1"]
    assert found(ask(engine, "east 70")) == ["a1"]


def test_a_tenant_is_served_nothing_of_another(engine: Resources) -> None:
    ingest(engine, "a", ["a1"], collection="notes", tenant="ann")
    ingest(engine, "b", ["b1"], collection="notes", tenant="bob")
    learn(engine, "a1", collection="notes", tenant="ann")
    assert ask(engine, collection="notes", tenant="ann").hotset is True
    response = ask(engine, collection="notes", tenant="bob")
    assert (found(response), response.hotset) == (["b1"], False)
    assert ask(engine).hits == []


def test_a_collection_that_was_made_anew_knows_nothing_of_the_old_one(engine: Resources) -> None:
    ingest(engine, "a", ["a1", "a2"])
    learn(engine, "a2")
    assert ask(engine).hotset is True
    engine.ledger.collections.delete("papers")
    with pytest.raises(CollectionNotFound):
        ask(engine)
    for document_id in engine.ledger.collections.document_ids("papers"):
        engine.ledger.chunks.forget(document_id)
    engine.ledger.collections.forget("papers")
    a_store(engine).drop_collection("papers")
    make(engine, "papers")
    ingest(engine, "a", ["a2", "a4"])
    response = ask(engine)
    assert (found(response), response.hotset) == (["a2", "a4"], False)


def test_questions_of_another_dimension_are_near_to_nothing() -> None:
    hot = Hot(("a",), np.array([[1, 0]], np.float32))
    assert hot.near(np.array([1, 0, 0], np.float32), 0.5) == []
    assert hot.near(np.array([0, 0], np.float32), 0.5) == []
    assert [c.chunk_id for c in hot.near(np.array([9, 0], np.float32), 1)] == ["a"]
    assert Hot((), np.array([], np.float32)).near(np.array([1, 0], np.float32), 0) == []


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3))
def test_whatever_happens_it_serves_what_a_search_could_find(engine: Resources, seed: int) -> None:
    """Documents come, change, go and are learned of; every search is asked with and without it."""
    chance = random.Random(seed)
    scopes = [("papers", ""), ("notes", "ann"), ("notes", "bob")]
    live: dict[tuple[str, str, str], list[str]] = {}
    served = 0
    for step in range(60):
        collection, tenant = chance.choice(scopes)
        at = {"collection": collection, "tenant": tenant}
        mine = [key for key in live if key[:2] == (collection, tenant)]
        name = chance.choice(["a", "b", "c"])
        did = chance.choice(["ingest", "ingest", "learn", "learn", "learn", "delete", "reset"])
        if did == "ingest":
            kept = live.get((collection, tenant, name), [])
            ids = [i for i in kept if chance.random() < 0.6] + [f"{collection}{tenant}{step}"]
            dates: dict[str, Any] = chance.choice(
                [{}, {"valid_to": "2019-01-01"}, {"valid_from": "2021-01-01"}]
            )
            kind = chance.choice(["x", "y"])
            ingest(engine, name, ids, level=chance.choice([1, 2]), kind=kind, **at, **dates)
            live[collection, tenant, name] = ids
        elif did == "learn" and mine:
            chunks = [i for key in mine for i in live[key]]
            some = chance.sample(chunks, min(len(chunks), 3))
            learn(engine, *some, query=chance.choice(["east", "north"]), **at)
        elif did == "delete" and (collection, tenant, name) in live:
            document = engine.ledger.documents.id_of(collection, name, tenant=tenant)
            assert document
            engine.ledger.documents.delete(document)
            del live[collection, tenant, name]
        elif did == "reset" and step % 3 == 0:
            engine.ledger.memory.reset(collection, tenant=tenant)
        given: dict[str, Any] = {
            **at,
            "query": chance.choice(list(QUERIES)[:3]),
            "as_of": chance.choice(["now", "any", "2018-06-01", "2022-06-01"]),
            "operation_level": chance.choice([None, "every", 1, 2]),
            "having_all": chance.choice([None, {"kind": "x"}, {"kind !=": "x"}]),
        }
        hot = ask(engine, **given)
        cold = ask(engine, **given, ranking={"hotset": False})
        assert set(found(hot)) <= set(found(cold))
        assert bool(found(hot)) == bool(found(cold))
        served += hot.hotset
    assert served
