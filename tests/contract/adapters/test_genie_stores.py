"""Genie Flow's invokers over every store."""

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from genie_parts import (
    DOCUMENTS,
    Angles,
    adapter_context_of,
    at,
    call,
    chunk,
    chunk_id,
    chunk_names,
    make,
)
from search_parts import made_of

from callslip.compat.context import AdapterContext
from callslip.config.sections.ranking import SearchSettings
from callslip.retrieval.run import search
from callslip.stores.blobs import Blobs
from callslip.stores.contract import Store
from callslip.stores.ledger import Ledger
from callslip.stores.records import CollectionSchema, VectorSpec

pytest_plugins = ["store_fixtures"]


@pytest.fixture
def context(store: Store, tmp_path: Path) -> Iterator[AdapterContext]:
    with closing(Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")) as ledger:
        ledger.create()
        yield adapter_context_of(ledger, store, Blobs(str(tmp_path / "blobs")))[0]


def names_of(documents: list[dict[str, Any]]) -> set[str]:
    return {name for document in chunk_names(documents) for name in document}


@pytest.mark.long
def test_what_is_persisted_is_found_and_deleted_again(
    context: AdapterContext, names: Callable[[], str]
) -> None:
    name = names()
    make(context, name, tenants=("ann", "bob"))
    scope: dict[str, Any] = {"collection_name": name, "tenant_name": "ann"}
    counts = call(context, "Persist", {"document": DOCUMENTS, "batch_size": 2}, **scope)
    assert (counts["nr_inserts"], counts["nr_replaces"]) == (7, 0)

    def search(**request: Any) -> list[dict[str, Any]]:
        reply = call(
            context, "VectorSimilaritySearch", {"query_embedding": at(0), **request}, **scope
        )
        assert isinstance(reply, list)
        return reply

    assert chunk_names(search(operation_level=-1)) == [
        ["loose"],
        ["atlas 1", "atlas 2"],
        ["bible 1", "bible 2"],
    ]
    for condition, expected in (
        ({"custom_properties.tags @": "sea"}, {"atlas 1", "bible 1"}),
        ({"tags contains": ["map", "word"]}, {"atlas 1", "bible 2"}),
        ({"nested.a.b ~": "x*"}, {"atlas 1"}),
        ({"author.born >=": 1980}, {"bible", "bible 1", "bible 2"}),
        ({"year not-in": [2020, 2024]}, {"loose"}),
    ):
        assert names_of(search(having_all=condition)) == expected
    (with_parents,) = search(parent_strategy="replace", top=3, operation_level=1)[:1]
    assert with_parents["document_metadata"] == DOCUMENTS[0]["document_metadata"]
    for method in ("dot", "l2-squared", "manhattan", "hamming"):
        assert names_of(search(method=method)) == names_of(search())
    assert call(context, "VectorSimilaritySearch", at(0), **scope | {"tenant_name": "bob"}) == []

    request = {"chunk_id": [chunk_id("loose"), chunk_id("atlas 1")]}
    assert call(context, "DeleteChunk", request, **scope)["successful"] == 2
    assert call(context, "DeleteByFilename", {"filename": "bible.pdf"}, **scope)["successful"] == 3
    assert names_of(search()) == {"atlas", "atlas 2"}
    assert call(context, "Persist", {"document": DOCUMENTS}, **scope)["nr_replaces"] == 2
    assert len(names_of(search())) == 7


class Opposite(Angles):
    """An embedder whose vectors point the other way round: 90 degrees minus those of the text."""

    model = "opposite"

    def query(self, text: str) -> Any:
        return super().query(text)[::-1].copy()


def test_named_vectors_are_persisted_embedded_and_searched(
    context: AdapterContext, names: Callable[[], str]
) -> None:
    name, store, ledger = names(), context.store_of(""), context.ledger
    spec = VectorSpec(2, normalized=True)
    schema = CollectionSchema(name, spec, {"other": replace(spec, embedder="opposite")})
    store.ensure_schema(schema)
    ledger.collections.create(schema, store=store.kind, embedder="tiny", analyzer="1")
    further: Any = {"turned": Opposite()}
    engine = made_of(ledger, store, SearchSettings())
    engine.embedder, engine.further = context.embedder(), further
    it = replace(context, search=partial(search, engine), further=lambda: further)

    embedded, provided = chunk("10", 10, 1), chunk("80", 80, 1)
    del embedded["embedding"], provided["embedding"]
    provided["embeddings"] = {"default": [0.0, 7.0], "other": at(45)}
    document = {"filename": "a.txt", "chunks": [embedded, provided]}
    counts = call(it, "Persist", {"document": document}, collection_name=name)
    assert counts["nr_inserts"] == 2
    ids = store.chunk_ids(name)
    assert ids["vector"] == ids["vector:other"]

    def first(content: Any, invoker: str = "SimilaritySearch", **more: Any) -> dict[str, Any]:
        (found,) = call(it, invoker, content, collection=name, include_vector=True, **more)
        nearest: dict[str, Any] = found["chunks"][0]
        return nearest

    assert first("10 degrees")["chunk_id"] == chunk_id("10")
    nearest = first("10 degrees", vector_name="other")
    assert (nearest["chunk_id"], nearest["distance"]) == (chunk_id("10"), pytest.approx(0))
    assert nearest["embedding"] == pytest.approx(at(80), abs=1e-5)
    assert nearest["embeddings"]["default"] == pytest.approx(at(10), abs=1e-5)
    assert nearest["embeddings"]["other"] == nearest["embedding"]
    nearest = first(at(40), "VectorSimilaritySearch", named_vector="other")
    assert nearest["chunk_id"] == chunk_id("80")
    assert nearest["embeddings"]["default"] == pytest.approx([0, 1])
    with pytest.raises(KeyError, match="no vector 'third'; named ones: other"):
        first("10 degrees", vector_name="third")
    provided["embeddings"] = {"third": at(45)}
    with pytest.raises(KeyError, match="no vector 'third'"):
        call(it, "Persist", {"document": document}, collection_name=name)
