"""An edit reaches every store whole: filters, facets and passages; nothing is embedded again."""

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from pipeline_parts import Tiny, make_context, paragraphs, submit

from callslip.ingestion.context import StepContext
from callslip.ingestion.pipeline import run_step
from callslip.stores.blobs import Blobs
from callslip.stores.contract import Store
from callslip.stores.ledger import STEPS, Accepted, Edit, Ledger, Provenance
from callslip.stores.levels import PASSAGE
from callslip.stores.properties.filters import parse
from callslip.stores.records import CollectionSchema, StoredChunk, VectorSpec

pytest_plugins = ["store_fixtures"]

TEXT = f"{paragraphs('one', 'two')}\n\nThis part is effective from 1 March 2020. {'three ' * 30}"


class Library:
    """A collection of one store, with the steps of its documents."""

    def __init__(self, step_context: StepContext, store: Store, name: str) -> None:
        self.step_context, self.store, self.name = step_context, store, name

    def put(self, text: str, name: str = "a.txt", **fields: Any) -> Accepted:
        return self.run(submit(self.step_context, text, name, collection=self.name, **fields))

    def edit(self, item: Accepted, **changes: Any) -> Accepted:
        edits = self.step_context.ledger.edits
        return self.run(edits.make(item.document_id, Edit(**changes), if_match=None).accepted)

    def run(self, item: Accepted) -> Accepted:
        for step in STEPS:
            assert run_step(self.step_context, step, item.document_id, item.version) == "go on"
        return item

    @property
    def embedded(self) -> list[str]:
        return cast("Tiny", self.step_context.embedder).given

    def chunks(self, item: Accepted) -> list[StoredChunk]:
        ids = sorted(self.step_context.ledger.chunks.live_ids(item.document_id))
        return self.store.get_chunks(self.name, ids, include_vector=True)

    def found(self, **conditions: Any) -> set[str]:
        """Ids that a filter finds; every way of the store to apply it agrees."""
        where = parse(conditions, None)
        ids = set(self.store.find_ids(self.name, where))
        ones = np.ones(4, np.float32) / 2
        assert {hit.chunk_id for hit in self.store.vector_query(self.name, ones, 99, where)} == ids
        assert self.store.count(self.name, where) == len(ids)
        return ids

    def counts(self, prop: str) -> dict[Any, int]:
        return dict(self.store.aggregate_group_by(self.name, prop, None))


@pytest.fixture
def library(store: Store, names: Callable[[], str], tmp_path: Path) -> Iterator[Library]:
    """An empty collection of each store."""
    schema = CollectionSchema(names(), VectorSpec(4))
    store.ensure_schema(schema)
    with closing(Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")) as ledger:
        ledger.create()
        ledger.collections.create(schema, store=store.kind, embedder="tiny", analyzer="")
        yield Library(
            make_context(ledger, Blobs(str(tmp_path / "blobs")), store), store, schema.name
        )


@pytest.mark.long
def test_changed_properties_are_those_of_every_chunk_for_filters_and_facets(
    library: Library,
) -> None:
    other = library.put(paragraphs("other"), "b.txt", topic="leave")
    item = library.put(TEXT, topic="leave", draft=True, year=2019)
    before = {c.chunk_id: c for c in library.chunks(item)}
    embedded = list(library.embedded)
    edited = library.edit(item, properties={"topic": "travel", "draft": None, "year": 2024.5})
    assert (edited.version, edited.fresh) == (2, True)
    assert library.embedded == embedded  # nothing is embedded again
    after = {c.chunk_id: c for c in library.chunks(item)}
    assert after.keys() == before.keys()
    for chunk_id, chunk in after.items():
        was = before[chunk_id]
        assert chunk.vector is not None
        assert was.vector is not None
        np.testing.assert_allclose(chunk.vector, was.vector, atol=1e-6)
        assert chunk.properties["topic"] == "travel"
        assert "draft" not in chunk.properties
    others = {c.chunk_id for c in library.chunks(other)}
    assert library.found(topic="travel") == library.found(**{"year >": 2024}) == after.keys()
    assert library.found(topic="leave") == others
    assert library.found(draft=True) == library.found(year=2019) == set()
    assert library.counts("topic") == {"travel": len(after), "leave": len(others)}
    (record,) = library.store.get_documents(library.name, [item.document_id])
    assert (record.properties["topic"], record.properties.get("draft")) == ("travel", None)


@pytest.mark.long
def test_an_edit_is_undone_by_a_rollback(library: Library) -> None:
    item = library.put(TEXT, topic="leave")
    ids = {c.chunk_id for c in library.chunks(item)}
    embedded = list(library.embedded)
    library.edit(item, properties={"topic": "travel"}, language="ko", url="https://a.example/x")
    assert library.found(topic="travel") == library.found(lang="ko") == ids
    ledger = library.step_context.ledger
    undone = library.run(ledger.versions.restore(item.document_id, 1))
    assert library.found(topic="leave") == ids
    assert library.found(topic="travel") == library.found(lang="ko") == set()
    assert library.embedded == embedded
    restored = ledger.documents.version(item.document_id, undone.version)
    assert (restored.url, restored.language, restored.restores) == ("", "", 1)
    before = ledger.versions.provenance({item.document_id: 2})
    assert before == {item.document_id: Provenance("https://a.example/x")}


@pytest.mark.long
def test_days_set_by_hand_win_over_those_that_passages_state_until_they_are_removed(
    library: Library,
) -> None:
    item = library.put(TEXT)
    ids = {c.chunk_id for c in library.chunks(item)}
    stated = library.found(valid_from="2020-03-01")
    assert stated
    library.edit(item, properties={"valid_from": "2024", "valid_to": "2025-01-01"})
    assert library.found(valid_from="2024-01-01") == library.found(valid_to="2025-01-01") == ids
    assert library.found(valid_from="2020-03-01") == set()
    again = submit(library.step_context, TEXT, collection=library.name)
    assert again.fresh  # properties of {} are stated: those set by hand are gone
    library.run(again)
    assert library.found(valid_from="2020-03-01") == stated
    library.edit(item, properties={"valid_from": "2024-01-01"})
    library.edit(item, properties={"valid_from": None})
    assert library.found(valid_from="2020-03-01") == stated
    assert library.found(**{"valid_from >=": "2021-01-01"}) == set()


def test_a_title_is_embedded_again_with_the_passages_that_lack_it_and_searched_by_its_words(
    library: Library,
) -> None:
    item = library.put(TEXT, title="Leave")
    count = len(library.embedded)
    library.edit(item, title="Kumquat")
    passages = [c for c in library.chunks(item) if c.level == PASSAGE]
    assert {c.title for c in library.chunks(item)} == {"Kumquat"}
    assert len(library.embedded) - count == len(passages)
    assert library.found(title="Kumquat") == {c.chunk_id for c in library.chunks(item)}
    hits = library.store.keyword_query(library.name, "kumquat", 99, None)
    assert {h.chunk_id for h in hits} == {c.chunk_id for c in library.chunks(item)}
    assert not library.store.keyword_query(library.name, "leave", 99, None)
