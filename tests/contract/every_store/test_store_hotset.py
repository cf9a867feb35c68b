"""The hotset over each store: what it gives is what the store's own filters let pass."""

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from search_parts import ask, found, ingest, learn, made_of, make

from callslip.config.sections.ranking import SearchSettings
from callslip.stores.contract import Store
from callslip.stores.ledger import Ledger

pytest_plugins = ["store_fixtures"]

REFUSED = {"hotset": False}

SEARCH = SearchSettings(hotset=50, result_cache=0)

DOCUMENTS: dict[str, dict[str, Any]] = {
    "law": {"kind": "law", "year": 2019, "valid_from": "2019-01-01", "draft": False},
    "old law": {"kind": "law", "year": 2010, "valid_to": "2019-01-01", "tags": ["a", "b"]},
    "faq": {"kind": "faq", "tags": ["b"], "since": "2020-02-03T04:05:06.123456+09:00"},
    "section": {"kind": "faq", "year": 2019.5, "level": 1},
}

QUERIES: tuple[dict[str, Any], ...] = (
    {},
    {"as_of": "any"},
    {"as_of": "2018-12-31"},
    {"as_of": "any", "operation_level": "every"},
    {"operation_level": 1},
    {"as_of": "any", "having_all": {"kind": "law", "year >": 2010}},
    {"as_of": "any", "having_all": {"year !>": 2015, "filename ~": "*law"}},
    {"as_of": "any", "having_any": {"tags @": "b", "draft": False}},
    {"having_all": {"since <": "2020-02-02T19:05:07"}},
    {"as_of": "any", "having_all": {"kind not-in": ["law", "none"], "tags contains": ["b"]}},
)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with closing(Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")) as made:
        made.create()
        yield made


@pytest.mark.long
def test_the_hotset_passes_what_the_store_passes(
    store: Store, names: Callable[[], str], ledger: Ledger
) -> None:
    engine, at = made_of(ledger, store, SEARCH), {"collection": names()}
    make(engine, at["collection"])
    documents = {
        name: ingest(engine, name, [f"{name} 1", f"{name} 2"], **at, **properties)
        for name, properties in DOCUMENTS.items()
    }
    every = [f"{name} {n}" for name in DOCUMENTS for n in (1, 2)]
    learn(engine, *every, **at)
    for request in QUERIES:
        hot, cold = ask(engine, **at, **request), ask(engine, **at, **request, ranking=REFUSED)
        assert (hot.hotset, cold.hotset) == (True, False), request
        assert set(found(hot)) == set(found(cold)) != set(), request
    store.delete_chunks(at["collection"], ["law 1"])
    assert set(found(ask(engine, **at, having_all={"kind": "law"}))) == {"law 2"}
    ledger.documents.delete(documents["law"])
    assert "law 2" not in found(ask(engine, **at, as_of="any"))
