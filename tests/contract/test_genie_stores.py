"""Genie Flow's invokers over every store."""

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from genie_parts import DOCUMENTS, at, call, chunk_id, floor_of, found, make

from compat.genie.floor import Floor
from stores.blobs import Blobs
from stores.contract import Store
from stores.ledger import Ledger

pytest_plugins = ["store_fixtures"]


@pytest.fixture
def floor(store: Store, tmp_path: Path) -> Iterator[Floor]:
    with closing(Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")) as ledger:
        ledger.create()
        yield floor_of(ledger, store, Blobs(str(tmp_path / "blobs")))[0]


def names_of(documents: list[dict[str, Any]]) -> set[str]:
    return {name for document in found(documents) for name in document}


def test_what_is_persisted_is_found_and_deleted_again(
    floor: Floor, names: Callable[[], str]
) -> None:
    name = names()
    make(floor, name, tenants=("ann", "bob"))
    place: dict[str, Any] = {"collection_name": name, "tenant_name": "ann"}
    counts = call(floor, "Persist", {"document": DOCUMENTS, "batch_size": 2}, **place)
    assert (counts["nr_inserts"], counts["nr_replaces"]) == (7, 0)

    def search(**asked: Any) -> list[dict[str, Any]]:
        said = call(floor, "VectorSimilaritySearch", {"query_embedding": at(0), **asked}, **place)
        assert isinstance(said, list)
        return said

    assert found(search(operation_level=-1)) == [
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
    assert call(floor, "VectorSimilaritySearch", at(0), **place | {"tenant_name": "bob"}) == []

    asked = {"chunk_id": [chunk_id("loose"), chunk_id("atlas 1")]}
    assert call(floor, "DeleteChunk", asked, **place)["successful"] == 2
    assert call(floor, "DeleteByFilename", {"filename": "bible.pdf"}, **place)["successful"] == 3
    assert names_of(search()) == {"atlas", "atlas 2"}
    assert call(floor, "Persist", {"document": DOCUMENTS}, **place)["nr_replaces"] == 2
    assert len(names_of(search())) == 7
