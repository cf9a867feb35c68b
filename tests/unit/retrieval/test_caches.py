"""What is kept between searches: each kind has a switch, and none serves what is gone."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from memory_store import MemoryStore
from search_parts import a_store, ask, found, ingest, learn, made_of, make_places

from callslip.config.sections.ranking import SearchSettings
from callslip.retrieval.caches import Cache
from callslip.retrieval.candidates.resources import Resources
from callslip.stores.ledger import Ledger

OFF = {"query_cache": 0, "result_cache": 0, "hotset": 0}
KINDS = {"questions": "query_cache", "candidates": "result_cache", "hotset": "hotset"}
"""Kinds of caches and the settings that switch them."""


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def engine(tmp_path: Path, kind: str) -> Iterator[Resources]:
    """An engine with this cache alone."""
    with closing(Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")) as ledger:
        ledger.create()
        made = made_of(ledger, MemoryStore(), SearchSettings.model_validate(OFF | {KINDS[kind]: 9}))
        make_places(made)
        yield made


def hits(engine: Resources) -> dict[str, int]:
    return {name: cache.hits for name, cache in engine.caches.items() if cache.hits}


def counted(engine: Resources) -> int:
    return sum(cache.hits + cache.misses for cache in engine.caches.values())


def test_a_cache_answers_the_second_search_and_counts_it(engine: Resources, kind: str) -> None:
    ingest(engine, "a", ["a1", "a2"])
    learn(engine, "a1")
    before = hits(engine).get(kind, 0)
    assert found(ask(engine))[0] == found(ask(engine))[0] == "a1"
    assert hits(engine).keys() == {kind}
    assert hits(engine)[kind] > before
    assert engine.caches[kind].misses > 0 or kind == "hotset"


def test_at_0_nothing_is_kept_or_counted(engine: Resources, kind: str) -> None:
    off = made_of(engine.ledger, a_store(engine), SearchSettings.model_validate(OFF))
    ingest(off, "a", ["a1", "a2"])
    learn(off, "a1")
    assert found(ask(off)) == found(ask(off)) == ["a1", "a2"]
    assert counted(off) == 0
    assert kind in off.caches


def test_a_deleted_document_is_not_served(engine: Resources) -> None:
    document = ingest(engine, "a", ["a1", "a2"])
    ingest(engine, "b", ["b1"])
    learn(engine, "a1", "a2")
    assert {"a1", "a2"} <= set(found(ask(engine)))
    engine.ledger.documents.delete(document)
    assert found(ask(engine)) == ["b1"]


def test_a_deletion_that_the_state_of_the_collection_does_not_tell_of_yet_counts(
    engine: Resources, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine.ledger.events, "corpus_version", lambda *_: 7)
    document = ingest(engine, "a", ["a1", "a2"])
    learn(engine, "a1", "a2")
    assert set(found(ask(engine))) == {"a1", "a2"}
    engine.ledger.documents.delete(document)
    assert found(ask(engine)) == []


def test_what_is_over_at_another_moment_is_not_served(engine: Resources) -> None:
    ingest(engine, "a", ["a1"], valid_to="2019-07-01")
    ingest(engine, "b", ["b1"], valid_from="2019-07-01")
    learn(engine, "a1", "b1")
    assert found(ask(engine, as_of="2019-06-30")) == ["a1"]
    assert found(ask(engine, as_of="2019-07-01")) == ["b1"]
    assert found(ask(engine)) == ["b1"]
    ingest(engine, "b", ["b1"], valid_from="2019-07-01", valid_to="2020-01-01")
    assert found(ask(engine)) == []
    assert found(ask(engine, as_of="2019-07-01")) == ["b1"]


def test_a_new_version_is_served_whole(engine: Resources) -> None:
    ingest(engine, "a", ["a1", "a2"])
    learn(engine, "a1", "a2")
    assert set(found(ask(engine))) == {"a1", "a2"}
    ingest(engine, "a", ["a2", "a3"])
    assert "a1" not in found(ask(engine))
    assert "a2" in found(ask(engine))
    ingest(engine, "a", ["a4"])
    assert found(ask(engine)) == ["a4"]


def test_a_value_is_kept_for_its_time_and_the_one_used_last_stays() -> None:
    cache: Cache[int] = Cache(2)
    for key in "ab":
        cache.put(key, ord(key))
    assert cache.get("a") == ord("a")
    cache.put("c", ord("c"))
    assert [cache.get(key) for key in "abc"] == [ord("a"), None, ord("c")]
    assert (cache.hits, cache.misses) == (3, 1)
    brief: Cache[int] = Cache(2, seconds=0)
    brief.put("a", 1)
    assert brief.get("a") is None
