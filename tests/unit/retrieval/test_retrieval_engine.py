"""A search over a ledger and a store in memory: tenants, levels, parents, what is cut."""

import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from backend_parts import backend_of
from ledger_moves import store_chunks
from memory_store import MemoryStore
from pydantic import ValidationError

from callslip.config.sections.ranking import SearchSettings
from callslip.config.settings import Settings
from callslip.errors import EmptyQuery, InvalidFilter, InvalidRequest, KeywordsDown, StoreDown
from callslip.messages.options import Options, Ranking
from callslip.models.entities import Recognizer
from callslip.retrieval.candidates.resources import Resources
from callslip.retrieval.messages import SearchRequest, SearchResponse
from callslip.retrieval.query.plan import check_query, check_request
from callslip.retrieval.ranking.parents import add_parents
from callslip.retrieval.run import count_not_in_force, make_plan, make_query, search, traced
from callslip.retrieval.timings import Timings
from callslip.retrieval.tracing.recording import Learning
from callslip.stores.ledger import Ledger, Submission, Unreadable
from callslip.stores.records import ChunkRecord, CollectionSchema, StoredChunk, VectorSpec


class Embedder:
    """Every question points east."""

    model, dimension, lexical_only = "tiny", 2, False

    def query(self, text: str) -> Any:
        return np.array([1, 0], np.float32)


class Lower:
    def analyze(self, text: str) -> str:
        return text.lower()


class NewEmbedder(Embedder):
    """Of another model and dimension."""

    model, dimension = "new", 3


LEVELS = {
    "book": ("", 0),
    "part 1": ("book", 1),
    "part 2": ("book", 1),
    "page 1": ("part 1", 2),
    "page 2": ("part 1", 2),
    "page 3": ("part 2", 2),
    "loose": ("", 2),
    "stray": ("torn out", 2),
}
"""Chunk to its parent and level; the later, the farther from the question."""


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Resources]:
    """An engine over a collection with a hierarchy, live in the ledger."""
    store = MemoryStore()
    schema = CollectionSchema("papers", VectorSpec(2))
    store.ensure_schema(schema)
    with closing(Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")) as ledger:
        ledger.create()
        ledger.collections.create(schema, store="memory", embedder="tiny", analyzer="1")
        item = ledger.documents.submit(
            "papers", Submission("a.txt", "a.txt", "", "0" * 64, 1, {"kind": "x"}), "d" * 32
        )
        claim = store_chunks(ledger, item, LEVELS)
        chunks = [
            ChunkRecord(
                chunk_id,
                item.document_id,
                f"text of {chunk_id}",
                "word",
                np.array([np.cos(n / 9), np.sin(n / 9)], np.float32),
                parent_id=parent,
                level=level,
                properties={"kind": "x"},
            )
            for n, (chunk_id, (parent, level)) in enumerate(LEVELS.items())
        ]
        assert not store.batch_upsert_chunks("papers", chunks).failed
        ledger.collections.has_properties("papers", ["kind"])
        ledger.leases.go_live(claim, list(LEVELS), {})
        embedder: Any = Embedder()
        yield Resources(backend_of(ledger, store), embedder, Lower(), Recognizer())


def ask(engine: Resources, **more: Any) -> SearchResponse:
    request = {"collection": "papers", "query": "word", "alpha": 1} | more
    return search(engine, SearchRequest.model_validate(request))


def found(engine: Resources, **more: Any) -> list[str]:
    return [hit.chunk_id for hit in ask(engine, **more).hits]


def with_settings(engine: Resources, settings: Settings) -> Resources:
    """The same, with other settings."""
    return replace(engine, backend=replace(engine.backend, settings=settings))


def test_hits_come_nearest_first_with_their_place(engine: Resources) -> None:
    response = ask(engine, operation_level="every")
    assert [hit.chunk_id for hit in response.hits] == list(LEVELS)
    assert [hit.rank for hit in response.hits] == list(range(1, 9))
    assert {h.chunk_id: (h.parent_id or "", h.level) for h in response.hits} == LEVELS
    assert response.cut is False
    assert all(hit.parent_of is None and hit.vector is None for hit in response.hits)


def halve(engine: Resources, monkeypatch: pytest.MonkeyPatch, *, local: bool) -> None:
    """Make the store's server not answer; `local` says whether its keyword half needs none."""
    store = engine.store_of("")
    read = store.get_chunks

    def down(*_: object, **__: object) -> None:
        raise StoreDown("the server hangs")

    monkeypatch.setattr(store, "local_keywords", local, raising=False)
    monkeypatch.setattr(store, "copies", read)
    for method in ("nearest", "exact_query", "get_chunks"):
        monkeypatch.setattr(store, method, down)


@pytest.mark.parametrize("more", [{"alpha": 1}, {"alpha": None}, {"parent_strategy": "include"}])
def test_while_the_server_is_down_the_local_keyword_half_answers(
    engine: Resources, monkeypatch: pytest.MonkeyPatch, more: dict[str, Any]
) -> None:
    halve(engine, monkeypatch, local=True)
    response = ask(engine, **more)
    assert {hit.chunk_id for hit in response.hits} >= {"page 1", "stray"}
    assert all(hit.text == f"text of {hit.chunk_id}" for hit in response.hits)
    assert response.partial
    assert response.left_out == {"vector": "the server hangs"}


def test_texts_are_read_from_copies_and_only_the_rest_from_the_server(
    engine: Resources, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, calls = engine.store_of(""), list[list[str]]()
    read = store.get_chunks

    def copies(collection: str, chunk_ids: Sequence[str], **more: Any) -> list[StoredChunk]:
        chunks = read(collection, chunk_ids, **more)
        return [replace(c, body=f"copy of {c.chunk_id}") for c in chunks if c.chunk_id != "stray"]

    def get_chunks(collection: str, chunk_ids: Sequence[str], **more: Any) -> list[StoredChunk]:
        calls.append(list(chunk_ids))
        return read(collection, chunk_ids, **more)

    monkeypatch.setattr(store, "local_keywords", True, raising=False)
    monkeypatch.setattr(store, "copies", copies)
    monkeypatch.setattr(store, "get_chunks", get_chunks)
    texts = {hit.chunk_id: hit.text for hit in ask(engine).hits}
    assert texts.pop("stray") == "text of stray"
    assert texts == {i: f"copy of {i}" for i in texts}
    assert calls[-1] == ["stray"]  # the first one is of the calibration
    with_vectors = ask(engine, include_vector=True).hits
    assert all(hit.text == f"text of {hit.chunk_id}" for hit in with_vectors)

    def down(*_: object, **__: object) -> None:
        raise KeywordsDown("the service is away")

    monkeypatch.setattr(store, "copies", down)
    assert all(hit.text == f"text of {hit.chunk_id}" for hit in ask(engine).hits)


def test_a_store_without_a_local_half_or_a_question_without_words_is_down(
    engine: Resources, monkeypatch: pytest.MonkeyPatch
) -> None:
    halve(engine, monkeypatch, local=True)
    with pytest.raises(StoreDown, match="the server hangs"):
        ask(engine, query="", query_embedding=[1.0, 0.0])
    halve(engine, monkeypatch, local=False)
    with pytest.raises(StoreDown, match="the server hangs"):
        ask(engine)


@pytest.mark.parametrize("alpha", [0.5, None])
def test_while_the_keyword_index_is_down_the_vector_half_answers(
    engine: Resources, monkeypatch: pytest.MonkeyPatch, alpha: float | None
) -> None:
    store, whole = engine.store_of(""), ask(engine, alpha=1)

    def down(*_: object, **__: object) -> None:
        raise KeywordsDown("the service is away")

    for method in ("keyword_query", "terms", "count", "find_ids"):
        monkeypatch.setattr(store, method, down)
    response = ask(engine, alpha=alpha)
    assert [hit.chunk_id for hit in response.hits] == [hit.chunk_id for hit in whole.hits]
    assert response.partial
    assert response.left_out == {"keyword": "the service is away"}
    with pytest.raises(KeywordsDown):
        ask(engine, alpha=0)


def test_what_a_store_has_of_another_tenant_or_collection_is_not_seen(engine: Resources) -> None:
    store, schema = engine.store_of(""), CollectionSchema("notes", VectorSpec(2), tenants=True)
    engine.ledger.collections.create(schema, store="memory", embedder="tiny", analyzer="1")
    store.ensure_schema(schema)
    chunks = store.get_chunks("papers", list(LEVELS), include_vector=True, include_terms=True)
    records = [ChunkRecord(**chunk.__dict__) for chunk in chunks]
    for tenant in ("ann", "bob"):
        engine.ledger.tenants.create("notes", tenant)
        store.ensure_tenant("notes", tenant)
    item = engine.ledger.documents.submit(
        "notes", Submission("a.txt", "a.txt", "", "1" * 64, 1, {}), "e" * 32, tenant="ann"
    )
    claim = store_chunks(engine.ledger, item, ["mine"])
    engine.ledger.leases.go_live(claim, ["mine"], {})
    mine = replace(records[-1], chunk_id="mine", document_id="e" * 32, parent_id="book")
    store.batch_upsert_chunks("notes", [*records, mine], tenant="ann")
    store.batch_upsert_chunks("notes", [*records, mine], tenant="bob")
    assert found(engine, collection="notes", tenant="ann", parent_strategy="include") == ["mine"]
    assert found(engine, collection="notes", tenant="bob") == []


PAGES = ["page 1", "page 2", "page 3", "loose", "stray"]


def test_passages_are_searched_where_no_level_is_named(engine: Resources) -> None:
    assert found(engine) == PAGES
    assert found(engine, having_all={"kind": "x"}) == PAGES
    assert found(engine, having_all={"level <": 2}) == ["book", "part 1", "part 2"]
    assert found(engine, having_any={"parent_id": "book"}) == ["part 1", "part 2"]
    search_all = Settings(search=SearchSettings(level="every"))
    assert found(with_settings(engine, search_all)) == list(LEVELS)


@pytest.mark.parametrize(
    ("level", "expected"),
    [
        (0, ["book"]),
        (1, ["part 1", "part 2"]),
        (-1, PAGES),
        ("every", list(LEVELS)),
        (-2, ["part 1", "part 2"]),
        (-3, ["book"]),
        (-4, []),
        (3, []),
    ],
)
def test_a_search_works_on_one_level(
    engine: Resources, level: int | str, expected: list[str]
) -> None:
    assert found(engine, operation_level=level) == expected


def test_parents_are_added_once_after_their_first_child(engine: Resources) -> None:
    response = ask(engine, operation_level=2, parent_strategy="include")
    assert [(hit.chunk_id, hit.parent_of) for hit in response.hits] == [
        ("page 1", None),
        ("part 1", "page 1"),
        ("page 2", None),
        ("page 3", None),
        ("part 2", "page 3"),
        ("loose", None),
        ("stray", None),
    ]
    assert response.hits[1].score == response.hits[0].score
    assert response.hits[1].text == "text of part 1"


def test_parents_stand_in_for_their_children(engine: Resources) -> None:
    response = ask(engine, operation_level=2, parent_strategy="replace")
    assert [(hit.chunk_id, hit.parent_of) for hit in response.hits] == [
        ("part 1", "page 1"),
        ("part 2", "page 3"),
    ]
    assert [hit.rank for hit in response.hits] == [1, 2]
    assert found(engine, operation_level=2, parent_strategy="replace", top=2) == ["part 1"]


def test_no_chunk_is_given_twice() -> None:
    parents = {"a": "p", "b": "p", "p": "root"}
    assert add_parents(["p", "a", "b"], parents, "include") == [
        ("p", ""),
        ("root", "p"),
        ("a", ""),
        ("b", ""),
    ]
    assert add_parents(["a", "p", "b"], parents, "replace") == [("p", "a"), ("root", "p")]
    assert add_parents(["x"], {}, "replace") == []


def test_a_parent_that_is_not_live_is_not_shown(engine: Resources) -> None:
    engine.ledger.documents.delete("d" * 32)
    assert found(engine, parent_strategy="include") == []


def test_the_answer_says_that_the_ceiling_cut_it(engine: Resources) -> None:
    small = Settings(search=SearchSettings(top=None, max_top=3, pool=100))
    engine = with_settings(engine, small)
    response = ask(engine)
    assert (len(response.hits), response.cut) == (3, True)
    assert ask(engine, top=3).cut is False
    exact = ask(engine, operation_level=1)
    assert (len(exact.hits), exact.cut) == (2, False)


def test_a_vector_takes_the_place_of_the_question(engine: Resources) -> None:
    response = search(engine, SearchRequest(collection="papers", query_embedding=[0.0, 1.0], top=1))
    assert [hit.chunk_id for hit in response.hits] == ["stray"]
    assert response.alpha == 1
    both = ask(engine, query_embedding=[0.0, 1.0], alpha=0.5)
    assert both.hits[0].chunk_id == "stray"
    assert both.hits[0].legs.keyword is not None


def test_what_is_unknown_is_named(engine: Resources) -> None:
    with pytest.raises(InvalidFilter, match="'knid'") as error:
        ask(engine, having_any={"knid": "x"})
    assert "'kind'" in error.value.advice
    assert len(found(engine, having_all={"kind !=": "y", "level >": 1})) == 5
    with pytest.raises(InvalidRequest, match="no tenants"):
        ask(engine, tenant="city")


def test_a_question_in_decomposed_letters_is_that_in_composed_ones() -> None:
    composed, apart = (
        "출산장려금은 얼마인가요?",
        unicodedata.normalize("NFD", "출산장려금은 얼마인가요?"),
    )
    assert apart != composed
    assert SearchRequest(collection="c", query=apart).query == composed
    assert check_query(f" {apart} ", len(composed)) == composed


def test_the_dot_of_korean_laws_parts_words_of_a_question(engine: Resources) -> None:
    request = SearchRequest(collection="papers", query="신고ㆍ납부 기한")
    plan = make_plan(engine, request, Timings())
    query = make_query(engine, plan, Timings())
    assert query.terms == query.keywords == "신고 납부 기한"
    assert plan.topic == "신고ㆍ납부 기한"


def test_a_request_is_checked_before_it_is_queued() -> None:
    settings = SearchSettings()
    with pytest.raises(EmptyQuery):
        check_request(SearchRequest(collection="c", query="  "), settings)
    with pytest.raises(InvalidRequest, match="at most 200"):
        check_request(SearchRequest(collection="c", query="x", top=201), settings)
    for number in (float("nan"), float("inf"), 1e300, -1e39):
        with pytest.raises(InvalidRequest, match="query_embedding has a number"):
            check_request(SearchRequest(collection="c", query_embedding=[0.5, number]), settings)
    assert check_request(SearchRequest(collection="c", query="x"), settings) == 200
    with pytest.raises(ValueError, match="query is missing"):
        SearchRequest(collection="c")


def test_reasons_are_given_where_they_are_asked_for(engine: Resources) -> None:
    hits = ask(engine, explain=True).hits
    assert [hit.reasons.rank_of_legs for hit in hits if hit.reasons] == [1, 2, 3, 4, 5]
    assert all(hit.reasons and sum(hit.reasons.parts.values()) == hit.score for hit in hits)
    parents = ask(engine, explain=True, parent_strategy="replace").hits
    assert [hit.reasons.rank_of_content for hit in parents if hit.reasons] == [1, 3]
    assert all(hit.reasons is None for hit in ask(engine).hits)


def test_a_request_wins_over_its_collection_and_that_over_the_settings(engine: Resources) -> None:
    options = Options.model_validate({"ranking": {"alpha": 0.3, "fusion": "rrf"}})
    engine.ledger.collections.set_options("papers", options)
    sent_request = SearchRequest.model_validate({"collection": "papers", "query": "word"})
    assert (search(engine, sent_request).alpha, search(engine, sent_request).fusion) == (0.3, "rrf")
    sent_request.ranking = Ranking.model_validate({"alpha": 0.7})
    assert (search(engine, sent_request).alpha, search(engine, sent_request).fusion) == (0.7, "rrf")
    assert ask(engine, alpha=0.9, ranking={"alpha": 0.7}).alpha == 0.9
    assert ask(replace(engine, backend=engine.backend), alpha=None).alpha == 0.3


def test_a_question_that_was_asked_before_is_not_embedded_again(engine: Resources) -> None:
    ask(engine)
    ask(engine, query=" word ")
    assert (engine.questions.hits, engine.questions.misses) == (1, 1)


@pytest.mark.parametrize("vector", [[1.0], [0.0, 1.0, 0.0], [0.0, 0.0], [1e30, 1e30], [1e-30, 0.0]])
def test_a_vector_that_does_not_fit_is_refused(engine: Resources, vector: list[float]) -> None:
    for sent_request in ("", "word"):
        with pytest.raises(InvalidRequest, match=r"query_embedding|vector"):
            ask(engine, query=sent_request, query_embedding=vector)


def test_hits_are_in_force_at_the_moment_asked_for(engine: Resources) -> None:
    store = engine.store_of("")
    dates = {"page 1": {"valid_to": "2019-07-01"}, "page 2": {"valid_from": "2019-07-01"}}
    for chunk in store.get_chunks("papers", list(dates), include_vector=True, include_terms=True):
        properties = {**chunk.properties, **dates[chunk.chunk_id]}
        record = ChunkRecord(**chunk.__dict__ | {"properties": properties})
        assert not store.batch_upsert_chunks("papers", [record]).failed
    both = ["page 1", "page 2"]
    assert [i for i in found(engine, as_of="2018-01-01") if i in both] == both  # not yet known of
    engine.ledger.collections.has_properties("papers", ["valid_from", "valid_to"])
    assert [i for i in found(engine) if i in both] == ["page 2"]
    assert [i for i in found(engine, as_of="any") if i in both] == both
    assert [i for i in found(engine, as_of="2018-01-01") if i in both] == ["page 1"]
    assert [i for i in found(engine, as_of="now") if i in both] == ["page 2"]
    sent_request = {"query": "word as of 2018"}
    assert [i for i in found(engine, **sent_request, as_of="any") if i in both] == both
    response = ask(engine, **sent_request)
    assert response.as_of.source == "understood"
    assert response.as_of.words == "as of 2018"
    assert [h.chunk_id for h in response.hits if h.chunk_id in both] == ["page 1"]
    assert "page 3" in [hit.chunk_id for hit in response.hits]


def test_documents_that_are_not_in_force_are_counted_if_asked_or_if_nothing_is_found(
    engine: Resources, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = engine.store_of("")

    def left_out(**more: Any) -> int | None:
        return ask(engine, **more).not_in_force

    assert (left_out(), left_out(count_not_in_force=True)) == (None, 0)
    for chunk in store.get_chunks("papers", PAGES, include_vector=True, include_terms=True):
        later = {"valid_from": "2999-11-12"}
        record = ChunkRecord(**chunk.__dict__ | {"properties": later})
        assert not store.batch_upsert_chunks("papers", [record]).failed
    engine.ledger.collections.has_properties("papers", ["valid_from"])
    hidden = left_out()
    assert not found(engine)
    assert hidden == left_out(as_of="2018-01-01") == len(documents_of(engine, as_of="any"))
    assert left_out(as_of="any", count_not_in_force=True) == 0
    assert left_out(having_all={"document_id": "none"}) == 0
    plan = replace(make_plan(engine, asking(), Timings()), unreadable=Unreadable(complete=False))
    unused: Any = None
    assert count_not_in_force(engine, plan, unused, unused) is None

    def down(*_: Any, **__: Any) -> Any:
        raise StoreDown("it is away")

    monkeypatch.setattr(store, "properties", down)
    assert left_out() is None


def documents_of(engine: Resources, **more: Any) -> set[str]:
    return {hit.document_id for hit in ask(engine, **more).hits}


@pytest.mark.parametrize("as_of", ["yesterday", "2019", "2019-02-30", "as of 2019"])
def test_a_moment_that_is_none_is_refused(as_of: str) -> None:
    with pytest.raises(ValidationError, match="as_of"):
        SearchRequest(collection="papers", query="word", as_of=as_of)


def test_a_search_leaves_a_trace_that_says_what_its_scores_are_made_of(engine: Resources) -> None:
    request = SearchRequest.model_validate({"collection": "papers", "query": "word", "alpha": 1})
    response, trace = traced(engine, request)
    assert trace.trace_id == response.trace_id
    assert [hit.chunk_id for hit in trace.hits] == [hit.chunk_id for hit in response.hits]
    assert [hit.rank_before for hit in trace.hits] == [1, 2, 3, 4, 5]
    assert all(hit.vector and hit.keyword is None for hit in trace.hits)
    assert trace.timings == response.timings
    assert trace.removed == {"visible": 0}
    assert trace.question.text == "word"
    assert "word" not in str(trace.as_json(with_question=False)["question"])


def test_what_helped_before_rises_and_the_same_trace_has_the_same_chances(
    engine: Resources,
) -> None:
    traces = [traced(engine, asking())[1] for _ in range(3)]
    learning = Learning(engine.ledger, engine.settings.memory, engine.settings.traces)
    learning.record(traces)
    assert found(engine) == PAGES
    for n, trace in enumerate(traces):
        learning.outcome(trace.trace_id, ["stray"], "helpful", user=f"user {n}")
    response, trace = traced(engine, asking(explain=True, ranking={"memory_weight": 1}))
    lifted = next(hit for hit in response.hits if hit.chunk_id == "stray")
    assert lifted.reasons
    assert 0 < lifted.reasons.parts["memory"] <= 1
    assert lifted.rank < lifted.reasons.rank_of_content == 5
    replay = asking(replay=trace.trace_id, ranking={"memory_weight": 1})
    assert [h.chunk_id for h in search(engine, replay).hits] == [h.chunk_id for h in response.hits]
    without = search(engine, asking(ranking={"memory_weight": 0}))
    assert [hit.chunk_id for hit in without.hits] == PAGES


def asking(**more: Any) -> SearchRequest:
    sent_request = {"collection": "papers", "query": "word", "alpha": 1} | more
    return SearchRequest.model_validate(sent_request)


def test_candidates_are_kept_and_a_deleted_document_is_not_served_of_them(
    engine: Resources, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert found(engine) == found(engine) == PAGES
    assert engine.candidates.hits == 1
    assert found(engine, alpha=0.9) == PAGES
    assert engine.candidates.hits == 1
    monkeypatch.setattr(engine.ledger.events, "corpus_version", lambda *_: 0)
    assert found(engine) == PAGES
    engine.ledger.documents.delete("d" * 32)
    assert found(engine) == []
    assert engine.candidates.hits == 2


def test_candidates_of_another_state_of_the_collection_are_not_taken(engine: Resources) -> None:
    found(engine)
    engine.ledger.documents.delete("d" * 32)
    assert found(engine) == []
    assert engine.candidates.hits == 0
    off = with_settings(engine, Settings(search=SearchSettings(result_cache=0)))
    assert (found(off), off.candidates.misses) == ([], 0)


def test_candidates_of_a_number_are_not_those_of_a_flag(engine: Resources) -> None:
    engine.ledger.collections.has_properties("papers", ["level"])
    assert found(engine, operation_level="every", having_all={"level": 1}) != []
    assert found(engine, operation_level="every", having_all={"level": True}) == []
    assert engine.candidates.hits == 0


@pytest.mark.parametrize("kept", [True, False])
def test_a_version_that_goes_live_during_a_search_is_seen_whole(
    engine: Resources, monkeypatch: pytest.MonkeyPatch, kept: bool
) -> None:
    if kept:
        assert found(engine) == PAGES
    ledger, store = engine.ledger, engine.store_of("")
    seen = ledger.chunks.seen
    switched = []

    def switch_first(*ids: Any, **scope: Any) -> Any:
        if not switched:
            switched.append(True)
            item = ledger.documents.submit(
                "papers", Submission("a.txt", "a.txt", "", "2" * 64, 1, {}), "f" * 32
            )
            claim = store_chunks(ledger, item, ["new"])
            vector = np.array([1, 0], np.float32)
            chunk = ChunkRecord("new", item.document_id, "new text", "word", vector, level=2)
            assert not store.batch_upsert_chunks("papers", [chunk]).failed
            ledger.leases.go_live(claim, ["new"], {})
        return seen(*ids, **scope)

    monkeypatch.setattr(ledger.chunks, "seen", switch_first)
    assert found(engine) == ["new"]


class Backwards:
    """A reranker that prefers the passages in the reverse order of the alphabet."""

    name = "backwards"

    def scores(self, query: str, passages: Sequence[str], deadline_seconds: float) -> list[float]:
        return [float(sorted(passages).index(passage)) for passage in passages]


def test_of_passages_with_equal_scores_the_one_that_the_reranker_prefers_is_first(
    engine: Resources,
) -> None:
    before = found(engine, alpha=0)
    assert before == sorted(before)
    rerank = engine.settings.rerank.model_copy(update={"provider": "maxsim"})
    engine = with_settings(engine, engine.settings.model_copy(update={"rerank": rerank}))
    reranked = found(replace(engine, reranker=Backwards()), alpha=0)
    assert reranked == sorted(before, reverse=True)


def test_explain_and_the_record_say_what_the_weights_were_multiplied_with(
    engine: Resources,
) -> None:
    sent_request = SearchRequest.model_validate(
        {"collection": "papers", "query": "word", "alpha": 0.5, "top": 2, "explain": True}
    )
    response, trace = traced(engine, sent_request)
    shown = [hit.reasons.basis for hit in response.hits if hit.reasons]
    assert shown == [each._asdict() for each in trace.basis()[:2]]
    assert [basis["rest"] for basis in shown] == [hit.score for hit in response.hits]
    everything = ask(engine, alpha=0.5, explain=True)
    assert len(trace.basis()) == len(everything.hits) > 2
    Learning(engine.ledger, engine.settings.memory, engine.settings.traces).record([trace])
    kept = engine.ledger.searches.get(trace.trace_id)
    assert kept.basis == [list(each) for each in trace.basis()]


def test_a_collection_that_is_not_embedded_anew_yet_is_searched_with_the_previous_embedder(
    engine: Resources,
) -> None:
    request = SearchRequest(collection="papers", query="page")
    before = search(engine, request)
    previous, engine.embedder = engine.embedder, NewEmbedder()  # type: ignore[assignment]
    with pytest.raises(InvalidRequest, match="callslip reindex papers"):
        search(engine, request)
    engine.previous = previous
    after = search(engine, request)
    assert [hit.chunk_id for hit in after.hits] == [hit.chunk_id for hit in before.hits]
    assert not after.partial
