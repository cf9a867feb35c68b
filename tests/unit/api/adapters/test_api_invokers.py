"""Genie Flow's invokers over HTTP."""

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient
from genie_parts import DOCUMENTS, adapter_context_of, app_of, at, call, chunk, chunk_names, make
from long_forms import sample
from memory_store import MemoryStore

from callslip.api.adapters import invokers
from callslip.api.http.admission import MOST_JSON
from callslip.compat.context import AdapterContext
from callslip.compat.genie import INVOKERS
from callslip.compat.genie.documents import filter_names
from callslip.compat.genie.known_names import known_names
from callslip.config.settings import Settings
from callslip.errors import PermissionMissing
from callslip.ingestion.provided_chunks import ChunkScope
from callslip.problems import MOST_ERRORS
from callslip.readers import Reader
from callslip.stores.blobs import Blobs
from callslip.stores.ledger import Ledger

VECTOR = {"query_embedding": [1.0, 0.0]}

BODIES = 120
"""For each invoker."""

MALFORMED: tuple[Any, ...] = (None, True, 7, -1.5, "x", "\ud800", [], [None], {}, {"a": [{}]})


@pytest.fixture
def context(tmp_path: Path) -> Iterator[AdapterContext]:
    with closing(Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")) as ledger:
        ledger.create()
        made, _ = adapter_context_of(ledger, MemoryStore(), Blobs(str(tmp_path / "blobs")))
        make(made, "papers")
        make(made, "notes", tenants=("ann",))
        call(made, "Persist", {"collection_name": "papers", "document": DOCUMENTS})
        yield made


@pytest.fixture
def client(context: AdapterContext) -> FlaskClient:
    return app_of(context).test_client()


def post(client: FlaskClient, name: str, body: Any) -> Any:
    return client.post(
        f"/v1/invokers/Weaviate{name}Invoker",
        data=json.dumps(body),
        content_type="application/json",
    )


def test_an_invoker_answers_over_http_as_it_does_in_process(
    context: AdapterContext, client: FlaskClient
) -> None:
    request = {"collection_name": "papers", "top": 4}
    response = post(client, "VectorSimilaritySearch", {"content": VECTOR, "parameters": request})
    assert response.status_code == 200
    assert response.json == call(context, "VectorSimilaritySearch", VECTOR, **request)
    body = {"content": "20 degrees", "parameters": request}
    assert chunk_names(post(client, "SimilaritySearch", body).json)[0] == ["bible 1"]


def test_the_file_holds_where_the_request_says_nothing(
    context: AdapterContext, tmp_path: Path
) -> None:
    meta = tmp_path / "meta.yaml"
    meta.write_text("connection: {http_host: unused}\nquery: {collection_name: papers, top: 2}\n")
    settings = Settings.model_validate({"genie": {"meta": meta}})
    client = app_of(context, settings).test_client()
    reply = post(client, "VectorSimilaritySearch", {"content": at(0)}).json
    assert chunk_names(reply) == [["loose"], ["atlas 1"]]
    reply = post(client, "VectorSimilaritySearch", {"content": at(0), "parameters": {"top": 1}})
    assert chunk_names(reply.json) == [["loose"]]


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "body", "status", "slug"),
    [
        ("None", {"content": ""}, 404, "not-found"),
        ("VectorSimilaritySearch", {}, 400, "invalid-request"),
        ("VectorSimilaritySearch", [], 400, "invalid-request"),
        ("VectorSimilaritySearch", {"content": VECTOR, "connection": {}}, 400, "invalid-request"),
        ("VectorSimilaritySearch", {"content": VECTOR}, 400, "invalid-request"),
        (
            "VectorSimilaritySearch",
            {"content": VECTOR | {"collection": "none"}},
            404,
            "collection-not-found",
        ),
        (
            "VectorSimilaritySearch",
            {"content": VECTOR | {"collection": "notes", "tenant": "x"}},
            404,
            "tenant-not-found",
        ),
        (
            "SimilaritySearch",
            {"content": "?", "parameters": {"collection": "papers"}},
            400,
            "empty",
        ),
    ],
)
def test_what_cannot_be_answered_is_a_problem(
    client: FlaskClient, name: str, body: Any, status: int, slug: str
) -> None:
    response = post(client, name, body)
    assert (response.status_code, response.content_type) == (status, "application/problem+json")
    assert slug in response.json["type"]


def test_a_deletion_that_fails_answers_in_the_shape_of_the_package(client: FlaskClient) -> None:
    response = post(client, "DeleteCollection", {"content": {"collection_name": "none"}})
    assert response.status_code == 404
    assert response.json["error_code"] == "CollectionNotFoundException"


@pytest.mark.long
def test_no_value_in_any_field_is_an_internal_error(client: FlaskClient) -> None:
    persisted = {
        "collection": "papers",
        "document": {"filename": "x", "chunks": [chunk("x", 1, 1)]},
    }
    contents: dict[str, dict[str, Any]] = {
        "SimilaritySearch": {},
        "VectorSimilaritySearch": VECTOR | {"collection": "papers", "auto_limit": None, "alpha": 1},
        "SimilaritySearchRequest": VECTOR | {"collection": "papers", "filename": ""},
        "Persist": persisted,
        "CreateTenant": {"collection": "notes", "tenant": "y"},
        "DeleteChunk": {"collection": "papers", "chunk_id": "x"},
        "DeleteByFilename": {"collection": "papers", "filename": "x"},
        "DeleteByFilter": {"collection": "papers", "having_all": {"page": 1}, "having_any": None},
        "DeleteTenant": {"collection": "notes", "tenant": "x"},
        "DeleteCollection": {"collection": "none"},
    }
    assert {f"Weaviate{name}Invoker" for name in contents} == set(INVOKERS)
    fields = (
        *("collection", "collection_name", "tenant", "tenant_name", "vector_name", "top"),
        *("include_vector", "method", "parent_strategy", "horizon", "operation_level"),
        *("having_all", "having_any", "query_embedding", "document", "batch_size", "chunk_id"),
    )
    for name, content in contents.items():
        bodies = [{"content": value, "parameters": {"collection": "papers"}} for value in MALFORMED]
        bodies += [{"content": content, "parameters": value} for value in MALFORMED]
        for field in {*content, *fields}:
            bodies += [{"content": content | {field: value}} for value in MALFORMED]
            bodies += [{"content": content, "parameters": {field: value}} for value in MALFORMED]
        for field in ("filename", "document_metadata", "chunks") if name == "Persist" else ():
            document = persisted["document"]
            bodies += [
                {"content": persisted | {"document": document | {field: value}}}
                for value in MALFORMED
            ]
        for field in chunk("x", 1, 1) if name == "Persist" else ():
            bodies += [
                {
                    "content": persisted
                    | {"document": {"filename": "x", "chunks": [chunk("x", 1, 1) | {field: value}]}}
                }
                for value in (*MALFORMED, [-1, 2], [0, 2**40], 10**30, "x" * 99)
            ]
        for body in sample(bodies, BODIES):
            response = post(client, name, body)
            assert response.status_code < 500, (name, body, response.json)


def test_half_a_character_in_a_content_that_is_a_text_is_refused(client: FlaskClient) -> None:
    document = {"filename": "\ud800", "chunks": [chunk("x", 1, 1)]}
    content = json.dumps({"collection": "papers", "document": document}, ensure_ascii=False)
    response = post(client, "Persist", {"content": content})
    assert response.status_code == 400, response.json
    assert "is not valid Unicode" in response.json["detail"]


def test_of_many_wrong_values_the_number_is_said(client: FlaskClient) -> None:
    content = {"collection": "papers", "document": [7] * (MOST_ERRORS + 1)}
    detail = post(client, "Persist", {"content": content}).json["detail"]
    assert detail == "1,002 values are wrong, or names are not known"


def test_large_json_is_refused_where_no_documents_are_written(client: FlaskClient) -> None:
    large = {"content": "x" * (MOST_JSON + 1)}
    assert post(client, "VectorSimilaritySearch", large).status_code == 413
    assert post(client, "Persist", large).status_code == 400


def test_a_permission_is_checked_before_the_json(
    client: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(permission: str) -> None:
        raise PermissionMissing(f"the key has no permission {permission!r}")

    monkeypatch.setattr(invokers, "check_permission", refuse)
    url = "/v1/invokers/WeaviateDeleteChunkInvoker"
    reply = client.post(url, data="no JSON", content_type="application/json")
    assert (reply.status_code, reply.json["detail"]) == (403, "the key has no permission 'write'")


@pytest.mark.parametrize(
    "having",
    [{"page": 2}, {"custom_property.page": 2}, {"document_metadata.author.name": "Ann"}],
)
def test_a_reader_filters_chunks_of_any_level_by_short_names(
    context: AdapterContext, having: dict[str, Any]
) -> None:
    ledger = context.ledger.for_reader(Reader("bob", frozenset({"user:bob"})))
    limited = replace(context, backend=replace(context.backend, ledger=ledger))
    where = {"collection": "papers", "having_all": having}
    known = context.ledger.collections.property_names("papers")
    names = known_names(ChunkScope(limited.backend, "memory", "papers"), known)
    assert filter_names(having, names) == filter_names(having, known) != having
    deleted = call(limited, "DeleteByFilter", where)
    assert deleted["matches"] == (1 if "page" in next(iter(having)) else 3)
