"""A collection is analyzed, searched and built anew by the kind of analyzer that it chose."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from memory_store import MemoryStore
from pipeline_parts import doing, make_context, submit

from callslip.ingestion.context import StepContext
from callslip.ingestion.maintenance.reindex import Remaker, reindex
from callslip.messages.options import Options
from callslip.models.text.analyzer import Analyzer
from callslip.models.text.kinds import analyzer_of
from callslip.stores.blobs import Blobs
from callslip.stores.ledger import Ledger
from callslip.stores.records import CollectionSchema, VectorSpec
from callslip.stores.transfer import migration

TEXT = "The leaves of many trees fall."


@pytest.fixture
def step_context(tmp_path: Path) -> Iterator[StepContext]:
    """A step context with the default analyzer and a collection of each of two kinds."""
    store = MemoryStore()
    with closing(Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")) as ledger:
        ledger.create()
        for name, analyzer in (("papers", "2"), ("parts", "2:words")):
            schema = CollectionSchema(name, VectorSpec(4))
            store.ensure_schema(schema)
            ledger.collections.create(schema, store="memory", embedder="tiny", analyzer=analyzer)
        made = make_context(ledger, Blobs(str(tmp_path / "blobs")), store)
        yield replace(made, analyzer=Analyzer())


def ingest(context: StepContext, collection: str) -> None:
    item = submit(context, TEXT, collection=collection)
    doing(context)(item.document_id, item.version)


def matches(context: StepContext, collection: str, words: str) -> bool:
    """Whether a keyword search finds the text by these words."""
    record = context.ledger.collections.get(collection)
    terms = analyzer_of(record.analyzer, context.analyzer).analyze(words)
    return bool(context.store_of(record.store).keyword_query(collection, terms, 5))


def test_each_collection_has_the_terms_of_its_own_kind(step_context: StepContext) -> None:
    ingest(step_context, "papers")
    ingest(step_context, "parts")
    assert matches(step_context, "papers", "leave")
    assert not matches(step_context, "parts", "leave")
    assert matches(step_context, "parts", "LEAVES")


def test_a_reindex_moves_a_collection_to_the_kind_of_its_options(
    step_context: StepContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migration, "SETTLE_SECONDS", 0.5)
    ingest(step_context, "papers")
    collections = step_context.ledger.collections
    collections.set_options("papers", Options.model_validate({"analyzer": "bigrams"}))
    assert matches(step_context, "papers", "leave"), "until the reindex as before"
    assert not matches(step_context, "papers", "eav")
    remaker = Remaker(step_context.embedder, step_context.tokenizer, step_context.analyzer)
    reindex(step_context.backend, "papers", remaker, grace=0.0, progress=lambda *_: None)
    assert collections.get("papers").analyzer == "2:bigrams"
    assert matches(step_context, "papers", "eav")
    ingest(step_context, "papers")
    collections.set_options("papers", Options.model_validate({}))
    reindex(step_context.backend, "papers", remaker, grace=0.0, progress=lambda *_: None)
    assert collections.get("papers").analyzer == "2"
    assert not matches(step_context, "papers", "eav")


def test_a_reindex_dates_what_states_no_first_day_if_the_collection_says_so(
    step_context: StepContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migration, "SETTLE_SECONDS", 0.5)
    ingest(step_context, "papers")
    collections = step_context.ledger.collections
    options = Options.model_validate({"valid_from_default": "created_at"})
    collections.set_options("papers", options)
    remaker = Remaker(step_context.embedder, step_context.tokenizer, step_context.analyzer)
    reindex(step_context.backend, "papers", remaker, grace=0.0, progress=lambda *_: None)
    store = step_context.store_of(collections.get("papers").store)
    chunks = store.get_chunks("papers", store.find_ids("papers"))
    assert chunks
    assert all(c.properties["valid_from"] == c.created_at[:10] for c in chunks)
    assert "valid_from" in collections.property_names("papers")
