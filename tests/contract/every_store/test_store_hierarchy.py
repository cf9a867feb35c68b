"""What is ingested, in every store: levels, parents, and searches for them."""

import os
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from pipeline_parts import doing, make_context, submit

from callslip.ingestion.context import StepContext
from callslip.models.entities import Recognizer
from callslip.retrieval.candidates.resources import Resources
from callslip.retrieval.messages import Hit, SearchRequest
from callslip.retrieval.run import search
from callslip.stores.blobs import Blobs
from callslip.stores.contract import Store
from callslip.stores.ledger import Accepted, Ledger
from callslip.stores.levels import PASSAGE, PASSAGES
from callslip.stores.properties.filters import Where
from callslip.stores.records import ChunkRecord, CollectionSchema, VectorSpec

pytest_plugins = ["store_fixtures"]

NAME = "hierarchy"


@pytest.fixture
def step_context(store: Store, tmp_path: Path) -> Iterator[StepContext]:
    """A step context of this store, with a collection of its own."""
    schema = CollectionSchema(f"{NAME}-{os.urandom(4).hex()}", VectorSpec(4))
    store.ensure_schema(schema)
    with closing(Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")) as ledger:
        ledger.create()
        ledger.collections.create(schema, store=store.kind, embedder="tiny", analyzer="")
        yield make_context(ledger, Blobs(str(tmp_path / "blobs")), store)
    store.drop_collection(schema.name)


def collection(step_context: StepContext) -> str:
    return step_context.ledger.collections.all()[0][0].name


def ingest(step_context: StepContext, text: str, name: str) -> Accepted:
    item = submit(step_context, text, name, collection=collection(step_context))
    doing(step_context)(item.document_id, item.version, "extract")
    assert step_context.ledger.documents.get(item.document_id).state == "live"
    return item


def section(word: str) -> str:
    return f"# {word}\n\n" + "\n\n".join(
        " ".join(f"{word.lower()}{n}" for n in range(start, start + 30)) for start in (0, 30, 60)
    )


TEXT = f"{section('Red')}\n\n{section('Green')}\n"


def hits_of(step_context: StepContext, **more: Any) -> list[Hit]:
    class CountedEmbedder(type(step_context.embedder)):  # type: ignore[misc]
        def query(self, text: str) -> Any:
            return self.passages([text])[0]

    parts: dict[str, Any] = {
        "embedder": CountedEmbedder(),
        "analyzer": step_context.analyzer,
        "recognizer": Recognizer(),
    }
    engine = Resources(step_context.backend, **parts)
    request = {"collection": collection(step_context), "query": "green5 green35"} | more
    return search(engine, SearchRequest.model_validate(request)).hits


@pytest.mark.long
def test_levels_and_parents_of_what_is_ingested(step_context: StepContext) -> None:
    ingest(step_context, TEXT, "colours.md")
    ingest(step_context, "blue1 blue2", "short.txt")
    for level, count in ((0, 2), (1, 3), (2, 7), (-1, 7), (-3, 2), ("every", 12)):
        assert len(hits_of(step_context, operation_level=level)) == count
    hits = hits_of(step_context)
    assert {hit.level for hit in hits} == {PASSAGE}
    by_words = hits_of(step_context, alpha=0)
    assert [hit.heading for hit in by_words] == ["Green", "Green"]
    (found,) = hits_of(step_context, alpha=0, parent_strategy="replace")
    assert found.text == section("Green")
    assert found.heading == "Green"
    (document,) = hits_of(step_context, alpha=0, operation_level=1, parent_strategy="replace")
    assert document.text == TEXT.strip()
    assert document.parent_id is None
    assert document.text == hits_of(step_context, alpha=0, operation_level=0)[0].text


def test_parents_go_with_their_document(step_context: StepContext) -> None:
    item = ingest(step_context, TEXT, "colours.md")
    store = step_context.store_of("")
    assert store.count(collection(step_context)) == 9
    held = store.chunk_ids(collection(step_context), item.document_id)
    assert {half: len(ids) for half, ids in held.items()} == {"vector": 9, "keyword": 9}
    store.delete_documents(collection(step_context), [item.document_id])
    assert store.count(collection(step_context)) == 0
    assert not any(store.chunk_ids(collection(step_context)).values())


def test_a_chunk_that_changes_its_level_is_found_at_the_new_one_alone(
    step_context: StepContext,
) -> None:
    store, name = step_context.store_of(""), collection(step_context)
    item = ingest(step_context, TEXT, "colours.md")
    ids = store.find_ids(name, Where(every=(PASSAGES,)))
    (stored,) = store.get_chunks(name, ids[:1], include_vector=True, include_terms=True)
    moved = ChunkRecord(**{**stored.__dict__, "level": 0})
    for chunk, expected in ((moved, set(ids[1:])), (replace(moved, level=2), set(ids))):
        assert not store.batch_upsert_chunks(name, [chunk]).failed
        embedded = cast("Any", moved.vector)
        found = store.vector_query(name, embedded, 99, Where(every=(PASSAGES,)))
        assert {hit.chunk_id for hit in found} == expected
        assert len(store.vector_query(name, embedded, 99)) == 9
        assert len(store.chunk_ids(name, item.document_id)["vector"]) == 9
