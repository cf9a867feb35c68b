"""FAQ over HTTP and on the page."""

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from unittest.mock import ANY
from urllib.parse import quote

import pytest
from faq_parts import ROWS, ingest, row
from flask.testing import FlaskClient
from genie_parts import adapter_context_of, app_of, make
from ledger_moves import publish
from memory_store import MemoryStore
from page_parts import HOSTILE, assert_harmless, make_collection

from callslip.api.adapters import compare_page as compare
from callslip.compat.context import AdapterContext
from callslip.compat.faq import collections, entries
from callslip.compat.faq.compare import ComparedHit, Comparison
from callslip.config import get_settings
from callslip.errors import SearchTimeout, StoreDown
from callslip.retrieval.messages import Span
from callslip.stores.blobs import Blobs
from callslip.stores.ledger import Ledger

MALFORMED: tuple[Any, ...] = (None, True, 7.5, -3, "x", "\ud800", [], [None], {}, {"a": [{}]})

ROW = {"id": 1, "question": "0 a", "answer": "1 b"}


@pytest.fixture
def context(tmp_path: Path) -> Iterator[AdapterContext]:
    with closing(Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")) as ledger:
        ledger.create()
        yield adapter_context_of(ledger, MemoryStore(), Blobs(str(tmp_path / "blobs")))[0]


@pytest.fixture
def client(context: AdapterContext) -> FlaskClient:
    return app_of(context).test_client()


def post(client: FlaskClient, path: str, body: Any) -> Any:
    return client.post(path, data=json.dumps(body), content_type="application/json")


def test_rows_are_written_listed_and_removed(client: FlaskClient) -> None:
    rows = [row.model_dump() for row in ROWS]
    written = post(client, "/v1/faq/help", {"rows": rows})
    assert written.status_code == 200
    assert written.json["collections"] == {
        f"help__{strategy}": {"new": 4, "changed": 0, "unchanged": 0}
        for strategy in ("question", "answer", "question_answer")
    }
    rows[0]["answer"] = "90 otherwise"
    body = {"rows": rows, "strategies": ["answer", "answer"]}
    assert post(client, "/v1/faq/help", body).json["collections"] == {
        "help__answer": {"new": 0, "changed": 1, "unchanged": 3}
    }
    assert client.get("/v1/faq/help").json["collections"]["help__answer"] == [1, 2, 3, "four"]
    going = {"ids": [1, "2", "nobody"], "strategies": ["answer"]}
    removed = post(client, "/v1/faq/help/remove", going)
    assert removed.json == {"collections": {"help__answer": 2}}
    assert client.get("/v1/faq/help").json["collections"] == {
        "help__question": [1, 2, 3, "four"],
        "help__answer": [3, "four"],
        "help__question_answer": [1, 2, 3, "four"],
    }
    removed = post(client, "/v1/faq/help/remove", {"ids": [3]})
    assert set(removed.json["collections"].values()) == {1}


def test_collections_are_compared_with_the_hits_of_all(
    context: AdapterContext, client: FlaskClient
) -> None:
    ingest(context, "help")
    request = {
        "query": "0 what",
        "collections": ["help__question", "help__answer"],
        "top_k": 2,
        "threshold": 0.5,
    }
    found = post(client, "/v1/compare", request).json
    assert (found["query"], found["top_k"], found["threshold"]) == ("0 what", 2, 0.5)
    ids = {name: [h["id"] for h in hits] for name, hits in found["collections"].items()}
    assert ids == {"help__question": ["faq_1", "faq_2"], "help__answer": ["faq_2", "faq_four"]}
    assert [h["id"] for h in found["merged"]] == ["faq_1", "faq_2"]
    passage = {key: found["merged"][1].pop(key) for key in ("document_id", "title", "heading")}
    assert passage == {"document_id": ANY, "title": "faq", "heading": "45 half"}
    assert found["merged"][1].pop("span") == {"start": 0, "end": 6}
    assert found["merged"][1] == {
        "id": "faq_2",
        "text": "0 same",
        "metadata": {"question": "45 half", "answer": "0 same", "id": 2},
        "distance": 0.0,
        "similarity": 1.0,
        "collection_name": "help__answer",
    }
    missing = post(client, "/v1/compare", {"query": "0 what"})
    assert missing.status_code == 404
    assert get_settings().faq.collection in missing.json["detail"]


@pytest.mark.parametrize("length", [48, 54, 55])
def test_a_name_that_is_too_long_for_one_strategy_is_so_for_all(
    client: FlaskClient, length: int
) -> None:
    sound, path = "a" * 47, f"/v1/faq/{'a' * length}"
    only = {"strategies": ["answer"]}
    assert post(client, f"/v1/faq/{sound}", {"rows": [ROW]} | only).status_code == 200
    for output in (
        post(client, path, {"rows": [ROW]} | only),
        post(client, f"{path}/remove", {"ids": [1]} | only),
        client.get(path),
    ):
        assert output.status_code == 400
        assert "at most 47" in output.json["advice"]


def test_what_is_refused_leaves_no_collection(
    context: AdapterContext, client: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(context, "help__question_answer", tenants=("ann",))
    assert post(client, "/v1/faq/help", {"rows": [ROW]}).status_code == 400
    make(context, "notes__answer")
    assert post(client, "/v1/faq/notes", {"rows": [ROW], "store": "tfidf"}).status_code == 409
    with monkeypatch.context() as patch:
        patch.setattr(MemoryStore, "ping", _down)
        assert post(client, "/v1/faq/new", {"rows": [ROW]}).status_code == 503
    with monkeypatch.context() as patch:
        patch.setattr(type(context.embedder()), "lexical_only", True)
        assert post(client, "/v1/faq/new", {"rows": [ROW]}).status_code == 400
    make(context, "gone__answer")
    context.ledger.collections.delete("gone__answer")
    assert post(client, "/v1/faq/gone", {"rows": [ROW]}).status_code == 409
    names = {record.name for record, _ in context.ledger.collections.all()}
    assert names == {"help__question_answer", "notes__answer"}


def _down(_: MemoryStore) -> None:
    raise StoreDown("the store does not answer")


@pytest.mark.long
@pytest.mark.parametrize(
    ("path", "sound", "field"),
    [
        *(
            ("/v1/compare", {"query": "0 a", "collections": ["help__answer"]}, field)
            for field in ("query", "collections", "top_k", "threshold", "other")
        ),
        *(
            ("/v1/faq/help", {"rows": [ROW]}, field)
            for field in ("rows", "strategies", "store", "other")
        ),
        *(("/v1/faq/help/remove", {"ids": [1]}, field) for field in ("ids", "strategies", "other")),
    ],
)
@pytest.mark.parametrize("value", MALFORMED, ids=repr)
def test_a_wrong_type_is_a_problem_that_names_the_field(
    context: AdapterContext, client: FlaskClient, path: str, sound: Any, field: str, value: Any
) -> None:
    ingest(context, "help", ROWS[:1])
    response = post(client, path, sound | {field: value})
    if response.status_code == 200:
        fits = {
            "query": ("x",),
            "ids": (["x"],),
            "top_k": (None,),
            "threshold": (None,),
            "collections": (None,),
            "strategies": (None,),
            "store": (None,),
        }
        assert value in fits[field]
        return
    assert response.status_code in (400, 404)
    assert response.content_type == "application/problem+json"
    assert response.json["detail"]
    if response.status_code == 400:
        assert field in response.json["detail"]


@pytest.mark.parametrize("field", ["question", "answer"])
@pytest.mark.parametrize("unseen", ["\u200b", "\u0001", "\ufeff"])
def test_rows_are_checked_for_texts_that_nobody_sees_before_any_is_written(
    client: FlaskClient, field: str, unseen: str
) -> None:
    rows = [ROW, ROW | {"id": 2, field: unseen}]
    response = post(client, "/v1/faq/help", {"rows": rows})
    assert response.status_code == 400
    assert f"rows.1.{field}: " in response.json["detail"]
    assert client.get("/v1/faq/help").status_code == 404


@pytest.mark.long
@pytest.mark.parametrize("field", ["id", "question", "answer", "other"])
@pytest.mark.parametrize("value", MALFORMED, ids=repr)
def test_a_wrong_value_of_a_row_is_a_problem_that_names_row_and_field(
    client: FlaskClient, field: str, value: Any
) -> None:
    rows = [row("sound", "0 a", "1 b").model_dump(), ROW | {field: value}]
    response = post(client, "/v1/faq/help", {"rows": rows})
    if response.status_code == 200:
        assert (field, value) in [
            *(("id", each) for each in (None, -3, "x")),
            *((each, "x") for each in ("question", "answer")),
        ]
        return
    assert response.status_code == 400
    assert f"rows.1.{field}: " in response.json["detail"]


@pytest.mark.long
@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("post", "/v1/faq/a b", {"rows": [ROW]}, 400),
        ("post", f"/v1/faq/{'a' * 60}", {"rows": [ROW]}, 400),
        ("post", "/v1/faq/help", {"rows": [ROW, ROW | {"id": "1"}]}, 400),
        ("post", "/v1/faq/help", {"rows": [ROW | {"id": n} for n in range(501)]}, 400),
        ("post", "/v1/faq/help", {"rows": [ROW | {"answer": "a" * 32_001}]}, 400),
        ("post", "/v1/faq/none/remove", {"ids": [1]}, 404),
        ("get", "/v1/faq/none", None, 404),
        ("post", "/v1/compare", {"query": "0", "collections": ["a"] * 17}, 400),
        ("post", "/v1/compare", {"query": "0", "collections": ["none"]}, 404),
        ("post", "/v1/compare", {"query": "?!"}, 400),
        ("post", "/v1/compare", {"query": "0", "top_k": 10**6}, 400),
        ("post", "/v1/compare", {"query": "0", "threshold": -1.5}, 400),
        ("post", "/v1/compare", [], 400),
    ],
)
def test_what_cannot_be_answered_is_a_problem(
    client: FlaskClient, method: str, path: str, body: Any, status: int
) -> None:
    sent = {} if body is None else {"json": body}
    response = getattr(client, method)(path, **sent)
    assert response.status_code == status
    assert response.content_type == "application/problem+json"
    assert response.json["advice"]


def test_a_document_that_has_the_name_of_the_rows_is_left_alone(
    context: AdapterContext, client: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    ingest(context, "help", ROWS[:1])
    monkeypatch.setattr(entries.provided_chunks, "has_provided_chunks", lambda *_: False)
    response = post(client, "/v1/faq/help", {"rows": [ROW | {"answer": "5 other"}]})
    assert response.status_code == 409


def test_the_page_shows_the_collections_side_by_side(
    context: AdapterContext, client: FlaskClient
) -> None:
    ingest(context, "help")
    request = "q=0+what&collection=help__question&collection=help__answer&top_k=2&threshold=-1"
    page = client.get(f"/page/compare?{request}")
    assert page.status_code == 200
    tags = assert_harmless(page.text)
    headings = ["help__question", "help__answer", "All together"]
    scopes = [page.text.index(f">{name} <span") for name in headings]
    assert scopes == sorted(scopes)
    assert page.text.count("similarity 1.0000") == 4
    checked = [a["value"] for tag, a in tags.tags if tag == "input" and "checked" in a]
    assert checked == ["help__question", "help__answer"]


def test_the_page_shows_the_title_of_a_passage_that_is_no_row(
    context: AdapterContext, client: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    document_id = publish(make_collection(context.ledger), "leave", ["c1"]).document_id

    def hits(of: str) -> list[ComparedHit]:
        one = ComparedHit(
            id="c" * 32,
            text="Parents\n\nLeave lasts 90 days.",
            metadata={"year": 2026},
            distance=0.1,
            similarity=0.9,
            collection_name="papers",
            document_id=of,
            title="Leave policy",
            heading="Parents",
            span=Span(start=3, end=30),
        )
        return [one]

    compared = Comparison(
        query="leave",
        top_k=2,
        threshold=0,
        collections={"papers": hits(document_id), "elsewhere": hits("d2")},
        merged=[],
    )
    monkeypatch.setattr(compare, "compare", lambda *_: compared)
    page = client.get("/page/compare?q=leave&collection=papers").text
    assert "c" * 32 not in page
    assert page.count('<h3 lang="en">Parents</h3>') == page.count(">Leave policy<") == 2
    assert page.count('<p class="running excerpt" lang="en"><mark>Leave</mark> lasts 90 days.') == 2
    links = [at for at in assert_harmless(page).addresses() if at.startswith("/page/passage")]
    assert links == [f"/page/passage?document={document_id}&start=3&end=30&q=leave"]


def test_the_page_begins_with_the_collections_of_an_faq_and_offers_all(
    context: AdapterContext, client: FlaskClient
) -> None:
    assert "There is none yet" in client.get("/page/compare").text
    for name in ("aaa", "bbb"):
        collections.made(context, [name], context.store_of("").kind)
    ingest(context, "help", ROWS[:1])
    tags = assert_harmless(client.get("/page/compare").text)
    boxes = [a for tag, a in tags.tags if tag == "input" and a.get("type") == "checkbox"]
    assert {a["value"] for a in boxes if "checked" in a} == {
        "help__question",
        "help__answer",
        "help__question_answer",
    }
    assert len(boxes) == 5
    response = client.get("/page/compare?q=0+what&collection=aaa")
    assert "Nothing is as similar as that" in response.text
    assert "All together" not in response.text


@pytest.mark.long
@pytest.mark.parametrize(
    ("fields", "status", "output"),
    [
        ("top_k=x", 400, "hits of each: &#39;x&#39; is no number"),
        ("threshold=nan", 400, "threshold: "),
        ("threshold=2", 400, "threshold: "),
        ("top_k=0", 400, "top_k: "),
        ("collection=none", 404, "&#39;none&#39; does not exist"),
        ("collection=", 400, "is no text, or an empty one"),
    ],
)
def test_the_page_says_which_field_is_wrong(
    context: AdapterContext, client: FlaskClient, fields: str, status: int, output: str
) -> None:
    ingest(context, "help", ROWS[:1])
    response = client.get(f"/page/compare?q=0+what&{fields}")
    assert response.status_code == status
    assert output in response.text
    assert 'value="0 what"' in response.text


def test_the_page_shows_hostile_and_korean_text_as_text(
    context: AdapterContext, client: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    ingest(
        context,
        "help",
        [row(HOSTILE, f"0 {HOSTILE}", f"1 {HOSTILE}"), row("k", "2 여권", "여권은 구청")],
    )
    response = client.get(f"/page/compare?q={quote('0 ' + HOSTILE)}&top_k=5")
    assert response.status_code == 200
    assert_harmless(response.text)
    assert 'lang="ko"' in response.text

    def late(_: object, __: object) -> None:
        raise SearchTimeout("no answer within 10 s")

    monkeypatch.setattr(compare, "compare", lambda *_: late(*_[:2]))
    response = client.get("/page/compare?q=0+what")
    assert response.status_code == 504
    assert "no answer within 10 s" in response.text
