"""The parts that stores are made of: checks, atoms, names, ties, registry, Chroma's filters."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from callslip.config.settings import ChromaSettings, Settings
from callslip.errors import InvalidRequest, SettingsError, StoreDown, StoreTooOld
from callslip.stores.chroma.connection import Connection
from callslip.stores.chroma.names import chunks_of, slug, tenant_of
from callslip.stores.properties.checks import MAX_TEXT_BYTES, chunk_fault, document_fault
from callslip.stores.properties.terms import property_terms
from callslip.stores.records import (
    ChunkRecord,
    CollectionSchema,
    DocumentRecord,
    RetrieverHit,
    VectorSpec,
)
from callslip.stores.registry import make_store
from callslip.stores.setup import check_version
from callslip.stores.ties import best
from callslip.stores.weaviate.connection import _REFUSED_VERSION

SCHEMA = CollectionSchema("c", VectorSpec(2))
CHUNK = ChunkRecord("c", "d", "body", "term", np.array([1, 0], np.float32))


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"chunk_id": ""}, "chunk_id is empty"),
        ({"document_id": ""}, "document_id is empty"),
        ({"chunk_id": "x" * (MAX_TEXT_BYTES + 1)}, "chunk_id is longer"),
        ({"vector": np.array([1, 0, 0])}, "shape (3,)"),
        ({"vector": np.array([1, np.nan])}, "not a finite number"),
        ({"vector": np.zeros(2)}, "length 0"),
        ({"body": "half \ud800"}, "body is not valid Unicode"),
        ({"title": "x" * (MAX_TEXT_BYTES + 1)}, "'title' is longer"),
        ({"properties": {"p": None}}, "'p' is neither"),
        ({"properties": {"p": {"q": 1}}}, "'p' is neither"),
        ({"properties": {"p": [["x"]]}}, "'p' is neither"),
        ({"properties": {"p": float("nan")}}, "'p' is not a finite"),
        ({"properties": {"p": 10**400}}, "'p' is a number too large"),
        ({"properties": {"p": ["x", 1]}}, "'p' mixes types"),
        ({"properties": {"p": [True, 1]}}, "'p' mixes types"),
        ({"properties": {"p": "한" * MAX_TEXT_BYTES}}, "'p' is longer"),
        ({"properties": {" ": 1}}, "has no name"),
    ],
)
def test_a_chunk_that_cannot_be_stored_is_told_why(change: dict[str, object], fault: str) -> None:
    output = chunk_fault(replace(CHUNK, **change), SCHEMA)  # type: ignore[arg-type]
    assert output is not None
    assert fault in output


def test_a_chunk_may_hold_every_kind_of_property() -> None:
    properties = {"t": "x", "n": 1, "f": 2.5, "b": True, "l": [1, 2.5], "e": [], "d": "2024-01-01"}
    assert chunk_fault(replace(CHUNK, properties=properties), SCHEMA) is None


def test_a_document_needs_an_id() -> None:
    assert document_fault(DocumentRecord("d", "", "")) is None
    assert document_fault(DocumentRecord("", "", "")) == "its document_id is empty"


def test_a_date_is_two_atoms_and_a_list_is_marked() -> None:
    assert set(property_terms({"d": "1970-01-02", "l": ["x"], "b": True, "n": 1})) == {
        ("d", "d", 86_400_000_000),
        ("t", "d", "1970-01-02"),
        ("T", "l", "x"),
        ("b", "b", True),
        ("n", "n", 1.0),
    }


def test_names_of_collections_stay_apart_and_inside_their_folder() -> None:
    names = ["a", "A", "a b", "a_20b", "../a", ".", "법령", "a.chunks"]
    slugs = [slug(name) for name in names]
    assert len(set(slugs)) == len(names)
    assert slug("../A b") == "_2e_2e_2f_41_20b"
    assert chunks_of("faq-1") == "callslip.faq-1.chunks"
    for name in ("", "x" * 201, "법" * 100):
        with pytest.raises(InvalidRequest):
            slug(name)


def test_only_the_chunks_of_a_tenant_name_it_whatever_a_vector_is_called() -> None:
    assert tenant_of("faq", chunks_of("faq", "Ann.b")) == "Ann.b"
    others = [("",), ("", "chunks"), ("", "tenant-a"), ("ann", "chunks")]
    assert {tenant_of("faq", chunks_of("faq", *names)) for names in others} == {None}


def test_a_tie_at_the_limit_is_asked_for_as_a_whole() -> None:
    everything = [RetrieverHit(f"c{i:03}", 1.0) for i in reversed(range(300))]
    requests: list[int] = []

    def fetch(count: int) -> list[RetrieverHit]:
        requests.append(count)
        return everything[:count]

    assert [hit.chunk_id for hit in best(fetch, 3)] == ["c000", "c001", "c002"]
    assert len(requests) > 1
    assert best(fetch, 0) == []


def test_versions_of_servers_are_compared_as_numbers() -> None:
    for server, version in (
        ("CrateDB", "6.10.0"),
        ("CrateDB", "7.0.0-SNAPSHOT-e3af1b2"),
        ("Weaviate", "v1.33.0-rc.0"),
        ("Weaviate", "1.100"),
    ):
        check_version(server, version)
    for server, version in (("CrateDB", "6.3.4"), ("Weaviate", "1.9.99"), ("Chroma", "0.6.3")):
        with pytest.raises(StoreTooOld, match=version):
            check_version(server, version)
    refused = (
        "Weaviate version 1.26.1 is not supported. Please use Weaviate version 1.27.0 or higher."
    )
    found = _REFUSED_VERSION.search(refused)
    assert found is not None
    assert found[1] == "1.26.1"
    for text in ("", "new", "6"):
        with pytest.raises(ValueError, match="no version"):
            check_version("CrateDB", text)


def test_a_store_that_was_not_started_says_how_to_start_it() -> None:
    for kind in ("chroma", "weaviate", "crate"):
        with pytest.raises(SettingsError, match=rf"{kind}\.url is not set") as caught:
            make_store(Settings(), kind)
        assert "callslip up" in caught.value.advice
        assert f"CALLSLIP_{kind.upper()}__URL" in caught.value.advice


def test_the_registry_names_what_is_wrong(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"chroma\.url is not set"):
        make_store(Settings(), "chroma")
    with pytest.raises(SettingsError, match="no store 'paper'"):
        make_store(Settings(), "paper")
    with pytest.raises(SettingsError, match="no address"):
        Connection("localhost:8000")
    settings = Settings(data_dir=tmp_path, chroma=ChromaSettings(url="http://127.0.0.1:1"))
    store = make_store(settings, "chroma")
    with pytest.raises(StoreDown, match="does not answer"):
        store.ping()
    store.close()
