"""A collection with further embedders through the API."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from context_parts import app_over
from flask.testing import FlaskClient
from memory_store import MemoryStore
from pipeline_parts import Tiny

from callslip.config.settings import Settings
from callslip.stores.ledger import Ledger


class Second(Tiny):
    """Another model."""

    model, dimension = "second", 3


@pytest.fixture
def client(tmp_path: Path) -> Iterator[FlaskClient]:
    with closing(Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")) as ledger:
        ledger.create()
        settings = Settings(data_dir=tmp_path, api={"open": True})  # type: ignore[arg-type]
        parts: dict[str, Any] = {"embedder": Tiny(), "further_embedders": {"bge": Second()}}
        yield app_over(settings, MemoryStore(), ledger=ledger, **parts).test_client()


def make(client: FlaskClient, **body: Any) -> Any:
    return client.post("/v1/collections", json={"name": "laws", **body})


def test_a_collection_is_made_with_further_embedders(client: FlaskClient) -> None:
    vectors = {"meaning": {"embedder": "bge", "metric": "dot"}}
    made = make(client, vectors=vectors)
    assert made.status_code == 201, made.json
    assert made.json["embedder"] == "tiny"
    assert made.json["vector_names"] == ["meaning"]
    expected = {"meaning": {"embedder": "second", "dimension": 3, "metric": "dot"}}
    assert made.json["vectors"] == expected
    for same in ({}, {"vectors": vectors}):
        assert make(client, **same).status_code == 200
    (listed,) = client.get("/v1/collections").json["collections"]  # type: ignore[index]
    assert listed["vectors"] == expected
    other = make(client, vectors={"meaning": {"embedder": "bge"}})
    assert other.status_code == 409
    assert "by second" in other.json["detail"]


@pytest.mark.parametrize(
    ("vectors", "status", "detail"),
    [
        ({"meaning": {"embedder": "bgee"}}, 400, "no embedder 'bgee'; there are: bge"),
        ({"default": {"embedder": "bge"}}, 400, "'default' is the unnamed one"),
        ({"a b": {"embedder": "bge"}}, 400, "'a b' is no name of a vector"),
        ({"": {"embedder": "bge"}}, 400, "'' is no name of a vector"),
        ({"x": {"embedder": "bge", "base_url": "http://evil"}}, 400, "base_url"),
        ({f"v{n}": {"embedder": "bge"} for n in range(17)}, 400, "16"),
    ],
)
def test_a_vector_that_cannot_be_is_refused_by_name(
    client: FlaskClient, vectors: dict[str, Any], status: int, detail: str
) -> None:
    answer = make(client, vectors=vectors)
    assert answer.status_code == status
    assert detail in str(answer.json)
    assert client.get("/v1/collections").json == {"collections": []}
