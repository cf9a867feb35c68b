"""Genie Flow's invokers over a ledger and a store in memory."""

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from genie_parts import (
    DOCUMENTS,
    NAMES,
    adapter_context_of,
    at,
    call,
    chunk,
    chunk_id,
    chunk_names,
    make,
)
from memory_store import MemoryStore
from search_parts import ingest, made_of

from callslip.callers import Caller
from callslip.compat import genie
from callslip.compat.context import AdapterContext
from callslip.compat.genie import WeaviateVectorSimilaritySearchInvoker
from callslip.compat.genie.configuration import configured
from callslip.compat.genie.documents import filter_name
from callslip.config.sections.ranking import SearchSettings
from callslip.config.settings import WeaviateSettings
from callslip.stores.blobs import Blobs
from callslip.stores.ledger import Ledger

VECTOR = {"query_embedding": [1.0, 0.0]}


@pytest.fixture
def removed() -> list[str]:
    return []


@pytest.fixture
def context(tmp_path: Path) -> Iterator[AdapterContext]:
    with closing(Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")) as ledger:
        ledger.create()
        made, _ = adapter_context_of(ledger, MemoryStore(), Blobs(str(tmp_path / "blobs")))
        make(made, "papers")
        make(made, "notes", tenants=("ann", "bob"))
        call(made, "Persist", {"collection_name": "papers", "document": DOCUMENTS})
        yield made


def search(context: AdapterContext, **parameters: Any) -> list[list[str]]:
    body = VECTOR | {"collection": "papers"} | parameters
    return chunk_names(call(context, "VectorSimilaritySearch", body))


def test_the_public_names_are_those_that_are_exported() -> None:
    assert {*genie.INVOKERS, "INVOKERS", "Invoker"} == set(genie.__all__)


def test_documents_come_in_the_order_of_their_nearest_chunk(context: AdapterContext) -> None:
    assert search(context) == [
        ["loose"],
        ["atlas 1", "atlas 2", "atlas"],
        ["bible 1", "bible 2", "bible"],
    ]


def test_a_text_is_searched_by_its_vector_and_as_configured(context: AdapterContext) -> None:
    answer = call(context, "SimilaritySearch", "20 degrees", collection_name="papers", top=1)
    assert chunk_names(answer) == [["bible 1"]]


def test_a_bare_list_is_the_vector(context: AdapterContext) -> None:
    answer = call(context, "VectorSimilaritySearch", at(80), collection="papers", top=1)
    assert chunk_names(answer) == [["bible"]]


def test_a_document_comes_back_as_it_was_persisted_with_its_distance(
    context: AdapterContext,
) -> None:
    (answer,) = call(
        context,
        "SimilaritySearchRequest",
        VECTOR | {"filename": "", "collection_name": "papers", "include_vector": True},
        having_all={"filename": "atlas.pdf"},
    )
    given = DOCUMENTS[0]
    assert answer["filename"], answer["document_metadata"] == given["document_metadata"]
    by_id = {c["chunk_id"]: c for c in given["chunks"]}
    for each in answer["chunks"]:
        degrees = float(each["content"].split()[0])
        assert each.pop("distance") == pytest.approx(1 - at(degrees)[0], abs=1e-5)
        assert each.pop("embedding") == pytest.approx(by_id[each["chunk_id"]]["embedding"])
        assert each == {k: v for k, v in by_id[each["chunk_id"]].items() if k != "embedding"}


def test_what_a_request_says_wins_over_the_file_and_null_says_nothing(
    context: AdapterContext,
) -> None:
    body = VECTOR | {"top": 2, "collection_name": None}
    answer = call(
        context, "VectorSimilaritySearch", body, collection_name="papers", top=1, horizon=1
    )
    assert chunk_names(answer) == [["loose"], ["atlas 1"]]


@pytest.mark.long
@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({"operation_level": 0}, [["atlas"], ["bible"]]),
        ({"operation_level": -2}, [["atlas"], ["bible"]]),
        ({"operation_level": 7}, []),
        ({"horizon": 0.02}, [["loose"], ["atlas 1"]]),
        ({"vector_name": "default", "top": 1}, [["loose"]]),
        ({"named_vector": "default", "top": 1}, [["loose"]]),
        ({"method": "l2-squared", "top": 1}, [["loose"]]),
        (
            {"operation_level": -1, "parent_strategy": "replace"},
            [["atlas"], ["bible"]],
        ),
        (
            {"operation_level": 1, "parent_strategy": "include", "top": 3},
            [["loose"], ["atlas 1", "atlas"], ["bible 1", "bible"]],
        ),
    ],
)
def test_the_parameters_of_a_search(
    context: AdapterContext, parameters: dict[str, Any], expected: list[list[str]]
) -> None:
    assert search(context, **parameters) == expected


@pytest.mark.long
@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ({"document_metadata.author.name": "Ann"}, {"atlas", "atlas 1", "atlas 2"}),
        ({"author.born >": 1975}, {"bible", "bible 1", "bible 2"}),
        ({"custom_properties.page  <=": 1}, {"atlas 1", "bible 1"}),
        ({"page >=": 2}, {"atlas 2", "bible 2"}),
        ({"custom_property.page >=": 2}, {"atlas 2", "bible 2"}),
        ({"page <": 2}, {"atlas 1", "bible 1"}),
        ({"tags @": "sea"}, {"atlas 1", "bible 1"}),
        ({"tags contains": ["map", "word"]}, {"atlas 1", "bible 2"}),
        ({"nested.a.b ~": "x*"}, {"atlas 1"}),
        ({"year in": [1999, 2024]}, {"loose", "bible", "bible 1", "bible 2"}),
        ({"year not-in": [1999, 2024]}, {"atlas", "atlas 1", "atlas 2"}),
        ({"year !=": 2024}, {"loose", "atlas", "atlas 1", "atlas 2"}),
        ({"draft ==": True}, {"bible 1"}),
        ({"hierarchy_level": 0}, {"atlas", "bible"}),
        ({"filename": "loose.txt"}, {"loose"}),
    ],
)
def test_every_operator_and_every_name_of_a_property(
    context: AdapterContext, condition: dict[str, Any], expected: set[str]
) -> None:
    for group in ("having_all", "having_any"):
        assert {n for d in search(context, **{group: condition}) for n in d} == expected


def test_entities_are_filtered_by_the_name_under_which_they_are_given_back() -> None:
    assert filter_name("custom_properties.entities", {"entities"}) == "entities"


def test_persisting_again_replaces_and_keeps_the_other_chunks(context: AdapterContext) -> None:
    document = {
        "filename": "loose.txt",
        "chunks": [chunk("loose", 60, 1), chunk("loose 2", 70, 1) | {"embedding": None}],
    }
    NAMES[chunk_id("loose 2")] = "loose 2"
    body = {"collection": "papers", "document": document, "batch_size": 1}
    assert call(context, "Persist", body) == {
        "collection_name": "papers",
        "tenant_name": None,
        "nr_inserts": 1,
        "nr_replaces": 1,
    }
    assert search(context, having_all={"filename": "loose.txt"}) == [["loose", "loose 2"]]


def test_vectors_are_kept_at_length_one_where_the_collection_wants_it(
    context: AdapterContext,
) -> None:
    make(context, "unit", normalized=True)
    far = chunk("far", 5, 1) | {"embedding": [3.0, 4.0], "chunk_id": None}
    document = {"filename": "far.txt", "chunks": [far]}
    call(context, "Persist", {"collection": "unit", "document": document})
    (answer,) = call(
        context, "VectorSimilaritySearch", VECTOR | {"include_vector": True}, collection="unit"
    )
    assert answer["chunks"][0]["embedding"] == pytest.approx([0.6, 0.8])


def test_a_chunk_of_another_document_is_not_taken_from_it(context: AdapterContext) -> None:
    stolen = {"filename": "thief.txt", "chunks": [chunk("loose", 90, 1)]}
    with pytest.raises(ValueError, match="another document's"):
        call(context, "Persist", {"collection": "papers", "document": stolen})
    assert search(context, top=1) == [["loose"]]


def test_nothing_is_persisted_where_one_chunk_cannot_be(context: AdapterContext) -> None:
    bad = chunk("bad", 5, 1) | {"embedding": [1.0, 2.0, 3.0]}
    document = {"filename": "bad.txt", "chunks": [chunk("fine", 5, 1), bad]}
    with pytest.raises(ValueError, match="cannot be stored"):
        call(context, "Persist", {"collection": "papers", "document": document})
    assert search(context, having_all={"filename": "bad.txt"}) == []


@pytest.mark.parametrize(
    "fault",
    [
        {"filename": "bad.txt", "chunks": [chunk("bad", 5, 1) | {"embedding": [1.0, 2.0, 3.0]}]},
        {"filename": "bad.txt", "chunks": [chunk("loose", 5, 1)]},
        {"filename": "bad.txt", "chunks": [chunk("fine", 5, 1)]},
        {"filename": "bad.txt", "chunks": [chunk("bad", 5, 1, price=[{}])]},
    ],
)
def test_of_several_documents_none_is_persisted_where_one_cannot_be(
    context: AdapterContext, fault: dict[str, Any]
) -> None:
    fine = {"filename": "fine.txt", "chunks": [chunk("fine", 5, 1)]}
    body = {"collection": "papers", "document": [fine, fault]}
    with pytest.raises(ValueError, match=r"document 'bad\.txt': "):
        call(context, "Persist", body)
    names = {document.name for document in context.ledger.documents.find("papers")}
    assert names == {"atlas.pdf", "bible.pdf", "loose.txt"}


def test_tenants_are_made_and_hold_their_own(context: AdapterContext) -> None:
    made = call(context, "CreateTenant", {"collection_name": "notes", "tenant_name": "cy"})
    assert made["multi_tenancy"]["enabled"] is True
    context.ledger.collections.has_properties("notes", {"merger"})
    request = {"collection_name": "notes", "tenant_name": "cy"}
    assert call(context, "CreateTenant", request)["properties"] == {"merger": "any"}
    cy = Caller("cy", "key", frozenset({"write"}), tenants=frozenset({"cy"}))
    limited = replace(context, caller=cy)  # the names are of other tenants, too
    assert call(limited, "CreateTenant", request)["properties"] == {}
    scope = {"collection_name": "notes", "tenant_name": "cy"}
    document = {"filename": "cy.txt", "chunks": [chunk("cy", 5, 1)]}
    assert call(context, "Persist", {"document": document}, **scope)["tenant_name"] == "cy"
    assert len(call(context, "VectorSimilaritySearch", VECTOR, **scope)) == 1
    assert call(context, "VectorSimilaritySearch", VECTOR, **scope | {"tenant_name": "ann"}) == []


def test_chunks_are_deleted_by_id(context: AdapterContext) -> None:
    body = {"chunk_id": [chunk_id("atlas 1"), chunk_id("nobody")], "collection_name": "papers"}
    gone = {"matches": 1, "failed": 0, "successful": 1}
    assert call(context, "DeleteChunk", body) == gone
    assert search(context, having_all={"filename": "atlas.pdf"}) == [["atlas 2", "atlas"]]
    assert call(context, "DeleteChunk", body)["matches"] == 0
    again = DOCUMENTS[0]
    counts = call(context, "Persist", {"document": again}, collection="papers")
    assert (counts["nr_inserts"], counts["nr_replaces"]) == (1, 2)


def test_a_file_is_deleted_and_may_come_back_at_once(context: AdapterContext) -> None:
    body = {"filename": "atlas.pdf"}
    assert call(context, "DeleteByFilename", body, collection="papers")["successful"] == 3
    assert search(context, having_all={"filename": "atlas.pdf"}) == []
    assert context.ledger.documents.id_of("papers", "atlas.pdf") is None
    counts = call(context, "Persist", {"document": DOCUMENTS[0]}, collection="papers")
    assert counts["nr_inserts"] == 3


def test_chunks_are_deleted_by_filter(context: AdapterContext) -> None:
    body = {"having_all": {"year >": 2000}, "having_any": {"page": 1, "tags @": "word"}}
    assert call(context, "DeleteByFilter", body, collection="papers")["successful"] == 3
    assert search(context, operation_level=1) == [["loose"], ["atlas 2"]]


@pytest.mark.parametrize("body", [{}, {"having_all": {}}, {"having_any": {"nobody's": 1}}])
def test_a_filter_that_says_nothing_deletes_nothing(
    context: AdapterContext, body: dict[str, Any]
) -> None:
    answer = call(context, "DeleteByFilter", body, collection="papers")
    assert (answer["error_code"], answer["collection_name"]) == ("InvalidFilterException", "papers")
    assert len(search(context)) == 3


def test_of_a_document_made_from_a_file_all_or_nothing_is_deleted(context: AdapterContext) -> None:
    engine = made_of(context.ledger, context.store_of(""), SearchSettings())
    ingest(engine, "file.txt", ["f1", "f2"])
    some = call(context, "DeleteChunk", {"chunk_id": "f1"}, collection="papers")
    assert some == {"matches": 1, "failed": 1, "successful": 0}
    whole = call(context, "DeleteByFilename", {"filename": "file.txt"}, collection="papers")
    assert whole == {"matches": 2, "failed": 0, "successful": 2}
    assert context.ledger.documents.id_of("papers", "file.txt") is None


def test_nothing_is_persisted_into_a_document_made_from_a_file(context: AdapterContext) -> None:
    engine = made_of(context.ledger, context.store_of(""), SearchSettings())
    ingest(engine, "file.txt", ["f1", "f2"])
    document = {"filename": "file.txt", "chunks": [chunk("more", 5, 1)]}
    with pytest.raises(ValueError, match="made from a file"):
        call(context, "Persist", {"collection": "papers", "document": document})


def test_tenants_and_collections_are_deleted_or_it_is_said_why_not(context: AdapterContext) -> None:
    scope = {"collection_name": "notes", "tenant_name": "ann"}
    assert call(context, "DeleteTenant", scope) == scope
    for body, code in (
        (scope, "TenantNotFoundException"),
        ({"collection_name": "notes"}, "NoTenantProvided"),
        ({"collection_name": "papers", "tenant_name": "x"}, "NoMultiTenancySupportException"),
        ({"collection_name": "none", "tenant_name": "x"}, "CollectionNotFoundException"),
    ):
        assert call(context, "DeleteTenant", body)["error_code"] == code
    gone = call(context, "DeleteCollection", {"collection_name": "papers"})
    assert gone == {"collection_name": "papers"}
    answer = call(context, "DeleteCollection", {"collection_name": "papers"})
    assert answer["error_code"] == "CollectionNotFoundException"


@pytest.mark.long
@pytest.mark.parametrize(
    ("content", "parameters", "error", "message"),
    [
        ([1, 0], {}, ValueError, "collection is missing"),
        ([1, 0], {"collection": "none"}, KeyError, "Collection none does not exist"),
        (
            [1, 0],
            {"collection": "notes", "tenant": "x"},
            KeyError,
            "Tenant x does not exist in collection notes",
        ),
        ([1, 0], {"collection": "notes"}, ValueError, "tenant"),
        ([1, 0], {"collection": "papers", "tenant": "ann"}, ValueError, "tenant"),
        ([1, 0], {"collection": 5}, ValueError, "collection is no text"),
        ([1, 0], {"collection": "\ud800"}, ValueError, "collection is no text"),
        ([1, 0], {"collection": "papers", "tenant": 5}, ValueError, "tenant is no text"),
        ([1, 0], {"collection": "papers", "topp": 5}, ValueError, "topp"),
        (VECTOR | {"collection": "a", "collection_name": "b"}, {}, ValueError, "twice"),
        ([1, 0, 0], {"collection": "papers"}, ValueError, "3 numbers"),
        ([], {"collection": "papers"}, ValueError, "query_embedding"),
        (["a"], {"collection": "papers"}, ValueError, "query_embedding"),
        ({}, {"collection": "papers"}, ValueError, "query_embedding is missing"),
        ("[1,", {"collection": "papers"}, ValueError, "not JSON"),
        ("7", {"collection": "papers"}, ValueError, "not a JSON object"),
        (VECTOR | {"auto_limit": 1}, {"collection": "papers"}, ValueError, "auto_limit"),
        (VECTOR | {"vector_name": "x"}, {"collection": "papers"}, KeyError, "no vector 'x'"),
        *(
            (VECTOR | {name: value}, {"collection": "papers"}, ValueError, name)
            for name, value in (
                ("top", 0),
                ("top", "many"),
                ("horizon", []),
                ("method", "euclidian"),
                ("parent_strategy", "both"),
                ("operation_level", "deep"),
                ("include_vector", {}),
                ("having_all", []),
                ("having_all", {"year ?": 1}),
                ("having_any", {"nobody's": 1}),
                ("vector_name", 7),
            )
        ),
    ],
)
def test_what_cannot_be_answered_says_why(
    context: AdapterContext,
    content: Any,
    parameters: dict[str, Any],
    error: type[Exception],
    message: str,
) -> None:
    with pytest.raises(error) as raised:
        call(context, "VectorSimilaritySearch", content, **parameters)
    assert message in str(raised.value) or message.startswith("having")


def test_one_property_by_two_names_is_refused(context: AdapterContext) -> None:
    with pytest.raises(ValueError, match="twice"):
        search(context, having_all={"year >": 1, "document_metadata.year >": 2})


def test_the_environment_wins_over_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    meta = tmp_path / "meta.yaml"
    meta.write_text(
        "connection: {http_host: there, http_port: 1, http_secure: true, grpc_host: http://grpc,"
        " grpc_port: 2, grpc_secure: false}\nquery: {collection_name: papers, top: 3}\n"
    )
    monkeypatch.setenv("WEAVIATE_HTTP_HOST", "elsewhere")
    monkeypatch.setenv("WEAVIATE_GRPC_SECURE", "true")
    monkeypatch.setenv("WEAVIATE_API_KEY", "secret")
    read = configured(meta)
    made = read.connection.settings(WeaviateSettings())
    assert (made.url, made.grpc_url) == ("https://elsewhere:1", "https://grpc:2")
    assert made.api_key is not None
    assert made.api_key.get_secret_value() == "secret"
    assert read.parameters == {"collection": "papers", "top": 3}


@pytest.mark.parametrize("text", ["[1]", "{", "connection: 5", "connection: {http_port: no}"])
def test_a_file_that_is_no_configuration_is_refused(tmp_path: Path, text: str) -> None:
    meta = tmp_path / "meta.yaml"
    meta.write_text(text)
    with pytest.raises(ValueError, match=r"."):
        WeaviateVectorSimilaritySearchInvoker.from_config(meta)


def test_the_answer_is_json_without_anything_but_the_shape(context: AdapterContext) -> None:
    invoker = WeaviateVectorSimilaritySearchInvoker.over(
        context, {"query": {"collection": "papers"}}
    )
    (first, *_) = json.loads(invoker.invoke(json.dumps(VECTOR)))
    assert set(first) == {"filename", "document_metadata", "chunks"}
    assert set(first["chunks"][0]) == {
        *("chunk_id", "content", "original_span", "hierarchy_level", "custom_properties"),
        *("parent_id", "embedding", "distance"),
    }
