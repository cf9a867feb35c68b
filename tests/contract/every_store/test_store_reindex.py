"""A collection of every kind of store is built anew while searches go on, also after a kill."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from moving import COLLECTION, Site, run_out, silent
from reindexing import NewAnalyzer, NewEmbedder, Words, plain_chunks

from callslip.errors import CallslipError
from callslip.ingestion.maintenance.reindex import Remaker, reindex
from callslip.stores.contract import Store
from callslip.stores.records import CollectionSchema, VectorSpec
from callslip.stores.transfer import migration

pytest_plugins = ["store_fixtures"]

DOCUMENTS = 6


@pytest.fixture
def site(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """An installation on this store, with some documents."""
    if store.kind == "memory":
        pytest.skip("tests/unit/stores/test_reindex.py uses it")
    monkeypatch.setattr(migration, "SETTLE_SECONDS", 0.5)
    monkeypatch.setattr("moving.chunks_of", plain_chunks)
    made = Site(tmp_path, {store.kind: store})
    schema = CollectionSchema(COLLECTION, VectorSpec(8))
    made.ledger.collections.create(schema, store=store.kind, embedder="tiny", analyzer="1")
    store.ensure_schema(schema)
    for number in range(DOCUMENTS):
        made.publish(f"d{number}", f"whole alpha beta{number}")
    yield made
    for side in (store.kind, f"{store.kind}:2"):
        made.backend.store_of(side).drop_collection(COLLECTION)
    made.ledger.close()


class Searches(threading.Thread):
    """Searches with both retrievers, at the side that the ledger names, until `end`."""

    def __init__(self, site: Site) -> None:
        super().__init__(daemon=True)
        self._site, self._ended = site, threading.Event()
        self.bad: list[str] = []
        self.sides: set[str] = set()

    def run(self) -> None:
        while not self._ended.wait(0.01):
            record = self._site.ledger.collections.get(COLLECTION)
            store = self._site.backend.store_of(record.store)
            vector = np.ones(record.schema.default.dimension, np.float32)
            term = "new-alpha" if record.embedder == "new" else "alpha"
            self.sides.add(record.store)
            try:
                for hits in (
                    store.keyword_query(COLLECTION, term, 99),
                    store.vector_query(COLLECTION, vector / np.linalg.norm(vector), 99),
                ):
                    if len(hits) < DOCUMENTS:
                        self.bad.append(f"{record.store}: {len(hits)} hits")
            except CallslipError as error:
                self.bad.append(f"{record.store}: {error.detail}")

    def end(self) -> None:
        self._ended.set()
        self.join(10)


def anew(site: Site, progress: migration.Progress = silent) -> None:
    remaker = Remaker(NewEmbedder(), Words(), NewAnalyzer())  # type: ignore[arg-type]
    reindex(site.backend, COLLECTION, remaker, grace=0.3, progress=progress)


@pytest.mark.long
def test_a_collection_is_built_anew_while_it_is_searched_and_after_a_kill(
    site: Site, store: Store
) -> None:
    searches, copied = Searches(site), []

    def killed(_total: int, _chunks: int) -> None:
        copied.append(1)
        if len(copied) == DOCUMENTS // 2:
            raise KeyboardInterrupt

    searches.start()
    with pytest.raises(KeyboardInterrupt):
        anew(site, killed)
    run_out(site)
    site.publish("late", "whole alpha late")
    anew(site)
    time.sleep(0.1)
    searches.end()
    assert searches.bad == []
    assert searches.sides == {store.kind, f"{store.kind}:2"}
    record = site.ledger.collections.get(COLLECTION)
    assert (record.embedder, record.schema.default.dimension) == ("new", 3)
    side = site.backend.store_of(record.store)
    ids = side.chunk_ids(COLLECTION)
    assert ids["vector"] == ids["keyword"]
    terms = side.terms(COLLECTION, sorted(ids["keyword"]))
    assert len(terms) == 3 * (DOCUMENTS + 1)
    assert all(term.startswith("new-") for each in terms.values() for term in each.split())
    assert COLLECTION not in site.backend.store_of(store.kind).collections()
