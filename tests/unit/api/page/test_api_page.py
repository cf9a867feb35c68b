"""The page at /, rendered over a real ledger; the search's way through the queue is replaced."""

import hashlib
import re
import time
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import pytest
from context_parts import app_over
from flask.testing import FlaskClient
from ledger_moves import publish, store_chunks, submission, submit, taken, work
from page_parts import (
    HOSTILE,
    Tags,
    answer,
    answers,
    assert_harmless,
    blobs_in,
    extracted,
    hit,
    make_collection,
    shelved,
)

from callslip.api.identity import guard
from callslip.api.page import pages
from callslip.api.page.passages import SURROUNDINGS
from callslip.callers import Caller, Permission
from callslip.errors import NeedsPassword, Overloaded
from callslip.retrieval.messages import STRANGERS, Hit, Pages, SearchRequest, SearchResponse
from callslip.stores.ledger import ATTACHED, Attachment, Ledger
from callslip.stores.records import CollectionSchema, VectorSpec


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with shelved(tmp_path) as made:
        yield made


@pytest.fixture
def filled(ledger: Ledger) -> Ledger:
    return make_collection(ledger)


@pytest.fixture
def client(ledger: Ledger, tmp_path: Path) -> FlaskClient:
    return app_over(ledger=ledger, blobs=blobs_in(tmp_path)).test_client()


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> list[SearchRequest]:
    return answers(monkeypatch)


def test_a_first_visit_is_told_what_to_do(client: FlaskClient) -> None:
    page = client.get("/")
    assert page.status_code == 200
    assert "Nothing is stored yet" in page.text
    assert "Create a collection" in page.text
    assert 'data-url="/v1/collections"' in page.text


def test_an_empty_collection_is_told_what_to_do(client: FlaskClient, filled: Ledger) -> None:
    page = client.get("/").text
    assert "This collection is empty" in page
    assert "No documents yet" in page


def test_each_state_and_step_of_a_document_is_named(client: FlaskClient, filled: Ledger) -> None:
    submit(filled, "waits", "waits.txt")
    stalled = submit(filled, "stalled", "stalled.txt")
    taken(filled, stalled, lease=-1.0)
    working = submit(filled, "works", "works.txt")
    work(filled, working, "enrich")
    taken(filled, working, "embed")
    locked = submit(filled, "locked", "locked.txt")
    failed = NeedsPassword("locked.txt is encrypted", hint="Run `unlock <it>`.")
    filled.leases.fail(taken(filled, locked), failed)
    publish(filled, "live", ["c1", "c2"])
    page = client.get("/").text
    slips = dict(re.findall(r'<li class="slip (\w+)" id="document-(\w+)">', page))
    assert set(slips) == {"waiting", "stalled", "working", "failed", "live"}
    text = Tags(page).text
    assert "1 live, 3 on the way, 1 failed" in text
    assert "2 passages" in text
    assert "<b>Needs password:</b> locked.txt is encrypted." in page
    assert "Run <code>unlock &lt;it&gt;</code>." in page
    for step in ("extract", "sectionize", "chunk", "enrich", "embed", "upsert"):
        assert text.count(f"\n{step}\n") == 5
    assert 'data-unfinished="true"' in page


def test_a_batch_is_told_with_its_rate_and_time_left(
    client: FlaskClient, filled: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("callslip.stores.ledger.documents.batches.ENOUGH_SECONDS", 0.0)
    filled.batches.create("nightly", expected=1200)
    for n in range(7):
        given = replace(submission(str(n), f"{n}.txt"), batch="nightly")
        item = filled.documents.submit("papers", given, uuid.uuid4().hex)
        if n < 5:
            ids = [f"c{n}"]
            filled.leases.go_live(store_chunks(filled, item, ids), ids, {"chunks": 1})
    filled.leases.fail(taken(filled, item), NeedsPassword("'6.txt' is encrypted"))
    page = client.get("/page/documents?collection=papers").text
    text = " ".join(Tags(page).text.split())
    output = re.search(
        r"6 of 1,200 done 1 failed · [\d,]+ documents and [\d,]+ passages a minute · about .* left",
        text,
    )
    assert output, text
    assert '<progress max="1200" value="6">' in page  # as the words beside it
    later = time.time() + 400
    monkeypatch.setattr(pages.time, "time", lambda: later)
    page = client.get("/page/documents?collection=papers").text
    assert "nothing was done in the last minutes" in page, "and so nobody knows when it ends"
    assert " left" not in page
    one = replace(submission("x", "x.txt"), batch="single")
    filled.documents.submit("papers", one, uuid.uuid4().hex)
    assert client.get("/").text.count('class="batch"') == 1, "one document is no batch to tell of"


def test_the_list_alone_says_when_nothing_is_left_to_watch(
    client: FlaskClient, filled: Ledger
) -> None:
    publish(filled, "live", ["c1"])
    page = client.get("/page/documents?collection=papers").text
    assert page.lstrip().startswith('<div id="document-list"')
    assert 'data-unfinished="false"' in page


def test_a_long_list_comes_in_pages(
    client: FlaskClient, filled: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "SHOWN", 2)
    for n in range(3):
        submit(filled, str(n), f"{n}.txt")
    page = client.get("/").text
    older = re.search(r'href="([^"]*before=[^"]*)#documents">Older', page)
    assert older, page
    assert "2.txt" in page
    assert "0.txt" not in page
    second = client.get(older[1].replace("&amp;", "&")).text
    assert "0.txt" in second
    assert "Newest" in second


def test_hits_are_rendered_without_javascript(
    client: FlaskClient, filled: Ledger, requests: list[SearchRequest]
) -> None:
    page = client.get("/?collection=papers&q=how+long+is+leave")
    assert page.status_code == 200
    assert requests[0] == SearchRequest.model_validate(
        {
            "collection": "papers",
            "query": "how long is leave",
            "top": 10,
            "count_not_in_force": True,
        }
    )
    assert "<mark>Leave</mark> lasts <mark>long</mark>." in page.text
    text = " ".join(Tags(page.text).text.split())
    assert "score 0.750 words rank 4 (7.500) meaning not found" in text
    assert "</span> <span>year 2026</span>" in page.text
    assert "of 12 candidates, 12 ms, 60 % words, 40 % meaning" in text


def test_an_attached_table_is_shown_as_what_is_only_read(
    client: FlaskClient, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger.collections.create(
        CollectionSchema("films", VectorSpec(2)),
        store=ATTACHED,
        embedder="unknown",
        analyzer="unknown",
        attachment=Attachment("doc", "films", "none"),
    )
    row = hit("A shark.").model_copy(
        update={"title": "Jaws", "filename": "", "properties": {"content_pretty": "A shark."}}
    )
    left_out = {"left_out": {"vector": STRANGERS}}
    monkeypatch.setattr(pages, "ask", lambda _, request: answer(request.query, row, **left_out))
    for path in ("/?collection=films", "/?collection=films&q=shark"):
        page = client.get(path).text
        assert "doc.films</code> is a table in CrateDB that is only read" in page
        for misled in ("Drop files", "No documents yet", "This collection is empty"):
            assert misled not in page, misled
    assert "Searched by words alone" in page
    assert "Not all of the search could run" not in page
    assert "content_pretty" not in page
    assert 'class="file"' not in page
    assert '<span class="first">score' in page


def test_every_field_of_the_form_reaches_the_search(
    client: FlaskClient, filled: Ledger, requests: list[SearchRequest]
) -> None:
    rows = [
        *[("key", "year"), ("operator", ">="), ("value", "2024")],
        *[("key", "lang"), ("operator", "in"), ("value", "en, ko")],
        *[("key", "code"), ("operator", "=="), ("value", '"007"')],
        *[("key", "title"), ("operator", "~"), ("value", "1*")],
        *[("key", ""), ("operator", "=="), ("value", "ignored")],
    ]
    given = [("q", "leave"), ("alpha", "0.8"), ("fusion", "rrf"), ("top", "3")]
    given += [("as_of", "2020-03-31"), *rows]
    page = client.get(f"/?{urlencode(given)}")
    assert page.status_code == 200
    request = requests[0]
    assert (request.alpha, request.fusion, request.top) == (0.8, "rrf", 3)
    assert request.as_of == "2020-03-31"
    assert request.having_all == {
        "year >=": 2024,
        "lang in": ["en", "ko"],
        "code ==": "007",
        "title ~": "1*",
    }
    assert request.having_any is None
    assert "in March" in page.text
    for _, value in given[:5]:
        assert f'value="{value}"' in page.text or value == "3"


@pytest.mark.long
@pytest.mark.parametrize(
    ("query", "output"),
    [
        ("q=a&alpha=much", "Invalid request"),
        ("q=a&fusion=magic", "Invalid request"),
        ("q=a&top=0", "Invalid request"),
        (
            "q=a&as_of=soon",
            "</b> In force on: is no ISO 8601 date or datetime, nor <code>now</code>",
        ),
        ("q=a&key=year&operator=is&value=1", "Invalid filter"),
        ("q=a&key=a&operator=%3D%3D&value=1&key=a&operator=%3D%3D&value=2", "stands in two lines"),
    ],
)
def test_a_wrong_field_is_named_on_the_page(
    client: FlaskClient, filled: Ledger, requests: list[SearchRequest], query: str, output: str
) -> None:
    page = client.get(f"/?{query}")
    assert page.status_code == 400
    assert output in page.text
    assert 'role="alert"' in page.text
    assert not requests


def test_a_failed_search_is_told_with_its_advice(
    client: FlaskClient, filled: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ask(*_: object) -> SearchResponse:
        raise Overloaded("70 searches are waiting")

    monkeypatch.setattr(pages, "ask", ask)
    page = client.get("/?q=leave")
    assert page.status_code == 503
    assert "70 searches are waiting." in page.text
    assert Overloaded.hint in page.text


def test_a_retriever_that_was_left_out_is_told(
    client: FlaskClient, filled: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    partial = answer("leave", partial=True, left_out={"vector": "the embedder does not answer"})
    monkeypatch.setattr(pages, "ask", lambda *_: partial)
    page = client.get("/?q=leave").text
    assert "The vector retriever was left out: the embedder does not answer" in page
    assert "No passage was found" in page


def test_an_unknown_collection_is_told_beside_the_known_ones(
    client: FlaskClient, filled: Ledger
) -> None:
    page = client.get("/?collection=none&q=leave")
    assert page.status_code == 404
    assert "collection &#39;none&#39; does not exist." in page.text
    assert "/?collection=papers" in page.text


def test_a_hit_is_shown_in_its_document_where_that_has_a_text(
    client: FlaskClient, filled: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    item = publish(filled, "content", ["c1"])
    assert filled.versions.readable([item.document_id, "none"]) == {item.document_id}
    here, elsewhere = hit_of(item.document_id), hit_of("attached")
    for found, links in ((here, 1), (elsewhere, 0)):
        monkeypatch.setattr(pages, "ask", lambda _, request, f=found: answer(request.query, f))
        assert client.get("/?q=leave").text.count("In context") == links


def test_the_page_of_a_hit_links_to_its_passage_on_that_page(
    client: FlaskClient, filled: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    item = publish(filled, "content", ["c1"])
    here, elsewhere = hit_of(item.document_id), hit_of("attached")
    for found, links in ((here, 1), (elsewhere, 0)):
        paged = found.model_copy(update={"pages": Pages(unit="page", first=3, last=3, labels=[])})
        monkeypatch.setattr(pages, "ask", lambda _, request, f=paged: answer(request.query, f))
        page = client.get("/?q=leave").text
        assert "p. 3" in page
        link = re.findall(r'<a href="(/page/passage\?[^"]+)">p\. 3</a>', page)
        assert [url.startswith(f"/page/passage?document={item.document_id}") for url in link] == [
            True
        ] * links


def hit_of(document_id: str) -> Hit:
    return hit("Leave lasts long.").model_copy(update={"document_id": document_id})


def test_a_passage_is_shown_in_its_document(
    client: FlaskClient, filled: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "𠮷" * 600 + f"Before. Leave lasts {HOSTILE} a year. After." + "z" * 600
    item = extracted(filled, text, tmp_path)
    start, end = text.index("Leave"), text.index(" After")
    scope = {"document": item.document_id, "start": start, "end": end, "q": "leave"}
    page = client.get(f"/page/passage?{urlencode(scope)}")
    assert page.status_code == 200
    assert_harmless(page.text)
    found = re.search(
        r'<span class="passage-text">(.*?)</span><span class="around">', page.text, re.S
    )
    assert found
    assert found[1].startswith("<mark>Leave</mark> lasts &lt;img")
    assert found[1].endswith("a year.")
    assert Tags(page.text).text.count("𠮷") == SURROUNDINGS - len("Before. ")
    assert Tags(page.text).text.count("z") == SURROUNDINGS - len(" After.")


def test_a_passage_of_a_document_that_is_being_replaced_is_the_live_ones(
    client: FlaskClient, filled: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    item = extracted(filled, "old text", tmp_path)
    submit(filled, "new text")
    page = client.get(f"/page/passage?document={item.document_id}&start=0&end=3")
    assert page.status_code == 200
    assert "old" in page.text


@pytest.mark.parametrize("query", ["start=-1&end=3", "start=x&end=3", "start=0"])
def test_a_passage_without_a_place_is_refused(
    client: FlaskClient, filled: Ledger, query: str
) -> None:
    item = publish(filled, "text", ["c1"])
    page = client.get(f"/page/passage?document={item.document_id}&{query}")
    assert page.status_code == 400
    assert "Invalid request" in page.text


def test_an_address_that_leads_nowhere_is_a_page_for_a_browser_and_a_problem_for_programs(
    client: FlaskClient,
) -> None:
    page = client.get("/page/nosuch", headers={"Accept": "text/html,*/*;q=0.8"})
    assert (page.status_code, page.content_type) == (404, "text/html; charset=utf-8")
    assert "there is no page /page/nosuch." in page.text
    for path in ("/page/nosuch", "/v1/nosuch"):
        assert client.get(path).content_type == "application/problem+json"
    shown = client.get("/static/nosuch.css", headers={"Accept": "text/css,*/*;q=0.1"})
    assert shown.content_type == "application/problem+json"


def test_what_is_refused_before_a_page_can_answer_is_a_page_for_a_browser(
    client: FlaskClient,
) -> None:
    client = client.application.test_client(use_cookies=False)
    browser = {"Accept": "text/html,*/*;q=0.8"}
    for status, path, sent in (
        (404, "/nosuch", {}),
        (405, "/login/begin", {}),
        (403, "/login", {"HTTP_ORIGIN": "http://elsewhere.example"}),
        (413, "/login", {"CONTENT_LENGTH": "1000000000"}),
    ):
        page = client.post(path, data={"key": "x"}, headers=browser, environ_overrides=sent)
        assert (page.status_code, page.content_type) == (status, "text/html; charset=utf-8"), path
        assert "This did not work" in page.text
        program = client.post(path, data={"key": "x"}, environ_overrides=sent)
        assert (program.status_code, program.content_type) == (status, "application/problem+json")
    of_api = client.get("/v1/documents/nosuch", headers=browser)
    assert (of_api.status_code, of_api.content_type) == (404, "application/problem+json")


def test_an_unknown_document_is_told(client: FlaskClient, filled: Ledger) -> None:
    page = client.get("/page/passage?document=none&start=0&end=1")
    assert page.status_code == 404
    assert "Document not found" in page.text


def test_hostile_text_never_becomes_markup(
    client: FlaskClient, filled: Ledger, requests: list[SearchRequest]
) -> None:
    digest = hashlib.sha256(b"x").hexdigest()
    hostile = submission("x", HOSTILE)
    item = filled.documents.submit("papers", hostile, uuid.uuid4().hex)
    assert hostile.sha256 == digest
    filled.leases.fail(taken(filled, item), NeedsPassword(f"{HOSTILE} is encrypted"))
    fields = {
        "q": HOSTILE,
        "key": HOSTILE,
        "operator": "==",
        "value": HOSTILE,
        "collection": "papers",
    }
    page = client.get(f"/?{urlencode(fields)}")
    assert page.status_code == 200
    tags = assert_harmless(page.text)
    assert tags.text.count("<img src=x onerror=") >= 6
    assert any(a.get("data-name") == HOSTILE for _, a in tags.tags)
    assert_harmless(client.get("/page/documents?collection=papers").text)
    assert_harmless(client.get(f"/?{urlencode({'collection': HOSTILE})}").text)


def test_no_address_leads_outside(
    client: FlaskClient, filled: Ledger, requests: list[SearchRequest]
) -> None:
    publish(filled, "live", ["c1"])
    found = [
        address
        for path in ("/", "/?q=leave", "/?collection=none", "/page/documents?collection=papers")
        for address in Tags(client.get(path).text).addresses()
    ]
    assert found
    for address in found:
        parts = urlsplit(address)
        assert not parts.scheme, address
        assert not parts.netloc, address
    for name in ("page.css", "page.js", "answers.js"):
        with client.get(f"/static/{name}") as static:
            text = static.text
        assert "//" not in re.sub(r"^\s*//.*|\s// .*", "", text, flags=re.M), name
        assert "@import" not in text
        assert "url(" not in text


def as_caller(
    monkeypatch: pytest.MonkeyPatch, *permissions: Permission, limited: bool = False
) -> None:
    """From now on every request is of a caller with these permissions."""
    only = frozenset({"papers"}) if limited else None
    made = Caller("someone", "key", frozenset(permissions), collections=only)
    monkeypatch.setattr(guard, "resolve", lambda *_: made)


def test_a_reader_is_offered_nothing_that_would_be_refused(
    client: FlaskClient,
    filled: Ledger,
    requests: list[SearchRequest],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    changes = ("Drop files here", "New collection", ">Edit</a>", ">Delete</button>")
    item = publish(filled, "live", ["c1"])
    as_caller(monkeypatch, "read", "write")
    page = client.get("/?collection=papers").text
    assert [each for each in changes if each not in page] == []
    as_caller(monkeypatch, "read", "write", limited=True)
    assert "New collection" not in client.get("/?collection=papers").text
    as_caller(monkeypatch, "read")
    for path in ("/?collection=papers", "/?collection=papers&q=leave"):
        page = client.get(path).text
        assert [each for each in changes if each in page] == []
        assert ">Chunks</a>" in page
    document = client.get(f"/page/documents/{item.document_id}").text
    assert "History" in document
    assert ">Save</button>" not in document


def test_a_reader_without_collections_is_told_who_makes_one(
    client: FlaskClient, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    as_caller(monkeypatch, "read")
    page = client.get("/").text
    assert "This key sees no collection" in page
    assert "/v1/collections" not in page


@pytest.mark.parametrize(
    "path", ["/", "/?q=leave", "/page/documents?collection=none", "/static/page.js", "/healthz"]
)
def test_every_answer_is_guarded(
    client: FlaskClient, filled: Ledger, requests: list[SearchRequest], path: str
) -> None:
    with client.get(path) as page:
        headers = page.headers
    policy = headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'self';")
    assert "unsafe" not in policy
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "same-origin"


def test_every_control_has_a_name(
    client: FlaskClient, filled: Ledger, requests: list[SearchRequest]
) -> None:
    html = client.get("/?q=leave&key=a&operator=%3D%3D&value=1").text
    labelled = {a.get("for") for tag, a in Tags(html).tags if tag == "label"}
    inside = re.findall(r"<label[^>]*>(?:(?!</label>).)*</label>", html, re.S)
    wrapped = {a["name"] for part in inside for _, a in Tags(part).tags if "name" in a}
    for tag, attributes in Tags(html).tags:
        if tag in ("input", "select") and attributes.get("type") not in ("hidden", "file"):
            assert attributes.get("id") in labelled or attributes["name"] in wrapped, attributes
