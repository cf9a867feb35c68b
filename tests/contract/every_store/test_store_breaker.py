"""While the server of a store hangs or is dead, searches fail at once, and the local half works."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, suppress
from typing import Any

import pytest
from faulty_proxy import Faults, faulty_proxy
from processes import waits_until
from store_cases import EAST, chunk, ids

from callslip.config.settings import Settings
from callslip.errors import StoreDown
from callslip.http.deadline import until
from callslip.stores.contract import Store
from callslip.stores.records import CollectionSchema, VectorSpec
from callslip.stores.registry import make_store
from callslip.stores.servers import breaker

pytest_plugins = ["store_fixtures"]

PING_SECONDS, PING_EVERY = 0.3, 0.05

AT_ONCE = 0.1
"""Seconds in which a search must fail once the fault is known."""

SLACK = 1.0
"""Seconds that a machine with other work may take longer."""


@pytest.fixture(params=["chroma", "weaviate", "crate"])
def watched(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Store, Faults, Callable[[], None]]]:
    """A store behind proxies that has been searched, their faults, and what ends the proxies."""
    kind, faults = request.param, Faults()
    settings: Settings = request.getfixturevalue(f"{kind}_at")
    section, changed = getattr(settings, kind), {}
    monkeypatch.setattr(breaker, "PING_SECONDS", PING_SECONDS)
    monkeypatch.setattr(breaker, "PING_EVERY", PING_EVERY)
    with ExitStack() as proxies:
        for name in ("url", "grpc_url"):
            if url := getattr(section, name, None):
                proxy = faulty_proxy(int(url.rpartition(":")[2]), faults)
                changed[name] = f"http://127.0.0.1:{proxies.enter_context(proxy)}"
        section = section.model_copy(update=changed)
        with closing(make_store(settings.model_copy(update={kind: section}), kind)) as store:
            store.ensure_schema(CollectionSchema("breaker", VectorSpec(2)))
            store.batch_upsert_chunks("breaker", [chunk("a", terms="every term")])
            assert search(store) == ["a"]
            yield store, faults, proxies.close
    with closing(make_store(settings, kind)) as store:
        store.drop_collection("breaker")


def search(store: Store) -> Any:
    with until(time.time() + 10):
        return ids(store.vector_query("breaker", EAST, 5))


def fails_at_once(store: Store) -> None:
    """Searches fail with the reason; what is local answers."""
    assert waits_until(lambda: refused(store), PING_EVERY + PING_SECONDS + SLACK)
    begun = time.monotonic()
    for _ in range(10):
        with pytest.raises(StoreDown, match="has not answered for"):
            search(store)
    assert time.monotonic() - begun < 10 * AT_ONCE
    if store.local_keywords:
        assert ids(store.keyword_query("breaker", "term", 5)) == ["a"]
        assert [each.chunk_id for each in store.copies("breaker", ["a"])] == ["a"]


def refused(store: Store) -> bool:
    try:
        search(store)
    except StoreDown as error:
        return "has not answered for" in error.detail
    return False


def test_a_search_in_flight_ends_when_its_server_hangs_and_later_ones_fail_at_once(
    watched: tuple[Store, Faults, Callable[[], None]],
) -> None:
    store, faults, _ = watched
    faults.begin("half open", lasts=True)
    begun = time.monotonic()
    with pytest.raises(StoreDown, match="has not answered for"):
        search(store)
    assert time.monotonic() - begun < PING_EVERY + PING_SECONDS + SLACK
    fails_at_once(store)
    faults.begin()

    def answers() -> bool:
        with suppress(StoreDown):
            return bool(search(store) == ["a"])
        return False

    assert waits_until(answers, 10)


def test_while_a_server_is_dead_searches_fail_at_once(
    watched: tuple[Store, Faults, Callable[[], None]],
) -> None:
    store, _, end = watched
    end()
    fails_at_once(store)
