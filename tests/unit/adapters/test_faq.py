"""`VectorSearch` and the rows of an FAQ over a ledger and a store in memory."""

import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from context_parts import context_of
from faq_parts import ROWS, ingest, row
from genie_parts import Angles, adapter_context_of, make
from memory_store import MemoryStore
from page_parts import answer

from callslip.compat import context as standing
from callslip.compat.context import AdapterContext
from callslip.compat.faq import VectorSearch, entries, vector_search
from callslip.compat.faq.collections import made, sibling, siblings
from callslip.compat.faq.compare import ComparedHit, merged
from callslip.config import get_settings
from callslip.config.settings import Settings
from callslip.errors import (
    CollectionExists,
    CollectionNotFound,
    EmbedderDown,
    InvalidRequest,
    SettingsError,
)
from callslip.messages.options import Options, Ranking
from callslip.models.embedders.contract import Vectors
from callslip.retrieval.messages import STRANGERS, SearchRequest, SearchResponse, Span
from callslip.stores.blobs import Blobs
from callslip.stores.ledger import Ledger
from callslip.tasks.search import ask


@pytest.fixture
def context(tmp_path: Path) -> Iterator[AdapterContext]:
    with closing(Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")) as ledger:
        ledger.create()
        yield adapter_context_of(ledger, MemoryStore(), Blobs(str(tmp_path / "blobs")))[0]


def output(hits: list[dict[str, Any]]) -> list[tuple[str, float]]:
    return [(hit["id"], hit["similarity"]) for hit in hits]


def found(entry: object, similarity: float, name: str) -> ComparedHit:
    return ComparedHit(
        id=f"faq_{entry}",
        text="",
        metadata={"id": entry},
        distance=1 - similarity,
        similarity=similarity,
        collection_name=name,
        document_id="d1",
        title="faq",
        heading="",
        span=Span(start=0, end=0),
    )


def test_the_threshold_is_inclusive_and_top_k_cuts(context: AdapterContext) -> None:
    ingest(context, "faq")
    search = VectorSearch("faq__question", context=context)
    (all_,) = search.search("0 what").values()
    assert output(all_) == [("faq_1", 1.0), ("faq_2", 0.707107), ("faq_3", 0.0)]  # usual: 0
    (hits,) = search.search("0 what", threshold=0.5**0.5).values()
    assert output(hits) == [("faq_1", 1.0), ("faq_2", 0.707107)]
    (hits,) = search.search("0 what", 9, 1.0).values()
    assert output(hits) == [("faq_1", 1.0)]
    (hits,) = search.search("0 what", 1, -1).values()
    assert output(hits) == [("faq_1", 1.0)]


def test_each_entry_is_merged_once_with_its_highest_similarity(context: AdapterContext) -> None:
    ingest(context, "faq")
    names = [sibling("faq", s) for s in ("question", "answer")]
    search = VectorSearch(names, context=context)
    assert [
        (h["id"], h["similarity"], h["collection_name"])
        for h in search.search_merged("0 what", 4, -1)
    ] == [
        ("faq_1", 1.0, "faq__question"),
        ("faq_2", 1.0, "faq__answer"),
        ("faq_four", 0.707107, "faq__answer"),
        ("faq_3", 0.0, "faq__question"),
    ]
    assert [h["id"] for h in search.search_merged("0 what", 1)] == ["faq_1"]
    assert [h["id"] for h in search.search_merged("0 what", 9, 0.99)] == ["faq_1", "faq_2"]


def test_the_first_collection_wins_a_tie_and_ids_meet_whatever_their_type() -> None:
    hits = {
        "b": [found(7, 0.5, "b"), found("x", 0.4, "b")],
        "a": [found("7", 0.5, "a"), found("x", 0.6, "a"), found("y", 0.5, "a")],
    }
    assert [(h.id, h.collection_name) for h in merged(hits, 9)] == [
        ("faq_x", "a"),
        ("faq_7", "b"),
        ("faq_y", "a"),
    ]
    assert [h.id for h in merged(hits, 1)] == ["faq_x"]
    assert merged({}, 5) == []


def test_documents_of_every_collection_are_listed(context: AdapterContext) -> None:
    ingest(context, "faq", ROWS[:2])
    listed = VectorSearch(["faq__answer", "faq__question"], context=context).get_all_documents()
    assert listed[0] == {
        "id": "faq_1",
        "text": "90 across",
        "metadata": {"question": "0 same", "answer": "90 across", "id": 1},
        "collection_name": "faq__answer",
    }
    assert [(d["id"], d["collection_name"]) for d in listed[1:]] == [
        ("faq_2", "faq__answer"),
        ("faq_1", "faq__question"),
        ("faq_2", "faq__question"),
    ]


def test_without_a_name_the_collection_of_the_settings_is_searched(
    context: AdapterContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vector_search, "local", lambda: context)
    search = VectorSearch()
    assert search.collection_names == (get_settings().faq.collection,)
    assert search.search("0 what") == {"faq__question_answer": []}
    assert VectorSearch(["a", "b", "a"]).collection_names == ("a", "b")


@pytest.mark.parametrize("names", [[], (), "", [""], 7, {"a": 1}, ["a", None], "a b", "\ud800"])
def test_what_is_no_name_is_a_value_error(context: AdapterContext, names: Any) -> None:
    with pytest.raises(ValueError, match=r"collection|name"):
        VectorSearch(names, context=context)


@pytest.mark.parametrize(
    ("sent_request", "field"),
    [
        ({"query": None}, "query"),
        ({"query": 7}, "query"),
        ({"query": "\ud800"}, "query"),
        ({"query": " "}, "query"),
        ({"query": "x" * 5000}, "query"),
        ({"top_k": 0}, "top_k"),
        ({"top_k": "5"}, "top_k"),
        ({"top_k": 2.5}, "top_k"),
        ({"top_k": True}, "top_k"),
        ({"top_k": 100_000}, "top_k"),
        ({"threshold": "1"}, "threshold"),
        ({"threshold": float("nan")}, "threshold"),
        ({"threshold": 1.01}, "threshold"),
        ({"threshold": [0.5]}, "threshold"),
    ],
)
def test_what_cannot_be_asked_is_a_value_error_that_names_it(
    context: AdapterContext, sent_request: dict[str, Any], field: str
) -> None:
    search = VectorSearch("faq", context=context)
    for method in (search.search, search.search_merged):
        with pytest.raises(ValueError, match=field):
            method(**{"query": "0 what", **sent_request})


def test_a_collection_that_was_deleted_is_a_key_error(context: AdapterContext) -> None:
    search = VectorSearch("faq", context=context)
    context.ledger.collections.delete("faq")
    with pytest.raises(KeyError, match="faq"):
        search.search("0 what")
    with pytest.raises(KeyError, match="faq"):
        search.get_all_documents()


def test_tenants_and_another_store_are_refused(context: AdapterContext) -> None:
    make(context, "notes", tenants=("ann",))
    make(context, "papers")
    with pytest.raises(ValueError, match="tenants"):
        VectorSearch("notes", context=context)
    with pytest.raises(CollectionExists):
        made(context, ["papers"], "weaviate")


def test_other_collections_are_searched_too_by_cosine_and_nothing_else(
    context: AdapterContext,
) -> None:
    make(context, "papers", metric="l2-squared")
    options = Options(ranking=Ranking(alpha=0.0, mmr_lambda=0.1))
    context.ledger.collections.set_options("papers", options)
    record = context.ledger.collections.get("papers")
    chunk = entries._chunk(context, record, "c1", ROWS[1], "question", Angles().query("45"))
    chunk = replace(chunk, properties={"page": 3})
    scope = entries.provided_chunks.ChunkScope(context.backend, context.store_of("").kind, "papers")
    entries.provided_chunks.put(scope, "atlas.pdf", [chunk], 10)
    (hits,) = VectorSearch("papers", context=context).search("0 what").values()
    assert hits == [
        {
            "id": "c1",
            "text": "45 half",
            "metadata": {"page": 3},
            "distance": 0.292893,
            "similarity": 0.707107,
            "collection_name": "papers",
        }
    ]


def test_threads_share_a_search(context: AdapterContext) -> None:
    ingest(context, "faq")
    search = VectorSearch(["faq__question", "faq__answer"], context=context)
    expected = search.search_merged("0 what", 4, -1)
    with ThreadPoolExecutor(8) as pool:
        answers = pool.map(lambda _: search.search_merged("0 what", 4, -1), range(40))
        assert all(answer == expected for answer in answers)


def test_without_vectors_nothing_is_searched_and_nothing_written(context: AdapterContext) -> None:
    ingest(context, "faq", ROWS[:1])
    embedder: Any = context.embedder()
    record = siblings(context, "faq")["question"]
    search = VectorSearch("faq__question", context=context)
    embedder.lexical_only = True
    try:
        with pytest.raises(ValueError, match="no embedder"):
            search.search("0 what")
        with pytest.raises(InvalidRequest, match="no embedder"):
            entries.put(context, record, "question", ROWS)
        embedder.lexical_only, embedder.model = False, "another"
        with pytest.raises(InvalidRequest, match="embedded with"):
            entries.put(context, record, "question", ROWS)
    finally:
        del embedder.lexical_only, embedder.model
    assert entries.ids(context, record) == [1]


def test_an_embedder_that_is_down_is_no_empty_answer(
    context: AdapterContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ingest(context, "faq")

    def down(_: object, text: str) -> Vectors:
        raise EmbedderDown("it does not answer")

    monkeypatch.setattr(Angles, "query", down)
    with pytest.raises(EmbedderDown):
        VectorSearch("faq__question", context=context).search("0 what")


def test_a_row_whose_text_stayed_keeps_its_vector(context: AdapterContext) -> None:
    ingest(context, "faq", ROWS[:2])
    embedded: list[str] = []

    class Watched(Angles):
        def passages(self, texts: Any) -> Vectors:
            embedded.extend(texts)
            return super().passages(texts)

    watched: Any = Watched()
    other = replace(context, embedder=lambda: watched)
    changed = [row(1, "0 same", "120 otherwise"), ROWS[1]]
    assert ingest(other, "faq", changed)["question"].changed == 1
    assert embedded == ["120 otherwise", "0 same\n\n120 otherwise"]
    ((hit, *_),) = VectorSearch("faq__question", context=context).search("0 what").values()
    assert hit["metadata"]["answer"] == "120 otherwise"


def test_an_id_that_changed_its_type_is_a_change(context: AdapterContext) -> None:
    ingest(context, "faq", [row(7, "0 a", "1 b")])
    assert ingest(context, "faq", [row("7", "0 a", "1 b")])["answer"].changed == 1
    assert entries.ids(context, siblings(context, "faq")["answer"]) == ["7"]


@pytest.mark.parametrize("name", ["", "a b", "-a", "a" * 48, "../x", "한글"])
def test_a_name_that_no_sibling_could_have_is_refused(name: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        sibling(name, "question_answer")
    assert "at most 47" in caught.value.advice


def test_in_a_process_of_its_own_the_settings_say_what_searches(
    context: AdapterContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = {"ledger": context.ledger, "blobs": context.blobs, "embedder": context.embedder()}
    made = context_of(Settings(), context.store_of(""), **parts)
    monkeypatch.setattr(standing, "local_context", lambda: made)
    ingest(context, "faq")
    assert [h["id"] for h in VectorSearch("faq__answer").search_merged("0 what")] == [
        "faq_2",
        "faq_four",
        "faq_1",
    ]


def test_an_attached_table_without_vectors_is_named_with_what_to_do(
    context: AdapterContext,
) -> None:
    make(context, "films")

    def strangers(request: SearchRequest) -> SearchResponse:
        return answer(request.query or "", left_out={"vector": STRANGERS})

    with pytest.raises(ValueError, match="'films' cannot be searched by meaning") as raised:
        VectorSearch("films", context=replace(context, search=strangers)).search("0 what")
    assert "--vectors ours" in raised.value.__cause__.advice


def test_a_folder_without_data_is_named_and_stays_empty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CALLSLIP_DATA_DIR", str(tmp_path))
    with pytest.raises(SettingsError, match=str(tmp_path)):
        VectorSearch("faq__answer")
    assert list(tmp_path.iterdir()) == []


def test_whoever_finds_the_document_made_meanwhile_adds_to_it(
    context: AdapterContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    (record,) = made(context, [sibling("faq", "answer")], context.store_of("").kind)
    entries.put(context, record, "answer", ROWS[:1])
    known = iter([None])
    find = entries.provided_chunks._known

    def late(scope: entries.provided_chunks.ChunkScope, name: str) -> str | None:
        return next(known, find(scope, name))

    monkeypatch.setattr(entries.provided_chunks, "_known", late)
    assert entries.put(context, record, "answer", ROWS[1:2]).new == 1
    assert entries.ids(context, record) == [1, 2]


def test_each_search_of_a_program_is_logged_without_its_text(
    context: AdapterContext, caplog: pytest.LogCaptureFixture
) -> None:
    ingest(context, "faq")
    local: Any = SimpleNamespace(local=True, search=context.search)
    search = VectorSearch("faq__question", context=replace(context, search=partial(ask, local)))
    with caplog.at_level(logging.INFO, "callslip.tasks.search"):
        search.search("0 what")
        with pytest.raises(CollectionNotFound):
            ask(local, SearchRequest(collection="nowhere", query="0 what"))
    first, second = (record["callslip_fields"] for record in map(vars, caplog.records))
    assert first["ms"] > 0
    assert (first["collection"], first["outcome"]) == ("faq__question", "answered")
    assert first["hits"] == len(ROWS)
    assert first["trace_id"]
    assert (second["outcome"], second["reason"]) == ("refused", "collection-not-found")
    assert "what" not in f"{first} {second}"
