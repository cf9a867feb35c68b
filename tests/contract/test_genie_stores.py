"""Genie Flow's invokers over every store."""

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from genie_parts import DOCUMENTS, adapter_context_of, at, call, chunk_id, chunk_names, make

from callslip.compat.context import AdapterContext
from callslip.stores.blobs import Blobs
from callslip.stores.contract import Store
from callslip.stores.ledger import Ledger

pytest_plugins = ["store_fixtures"]


@pytest.fixture
def context(store: Store, tmp_path: Path) -> Iterator[AdapterContext]:
    with closing(Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")) as ledger:
        ledger.create()
        yield adapter_context_of(ledger, store, Blobs(str(tmp_path / "blobs")))[0]


def names_of(documents: list[dict[str, Any]]) -> set[str]:
    return {name for document in chunk_names(documents) for name in document}


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
