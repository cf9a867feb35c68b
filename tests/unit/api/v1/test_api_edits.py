"""The web address of a document's source, the archive that contains it, and edits, over HTTP."""

import io
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from reader_parts import COLLECTION, Installation, installation

URL = "https://example.org/canteen.html"
PAGE = "<html><head><title>Canteen</title></head><body><h1>Canteen</h1><p>{}</p></body></html>"


@pytest.fixture
def it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Installation]:
    with installation(tmp_path, monkeypatch) as made:
        yield made


def change(it: Installation, document_id: str, status: int = 202, **more: Any) -> Any:
    reply = it.anyone.call("PATCH", f"/v1/documents/{document_id}", **more)
    assert reply.status_code == status, reply.text
    return reply


def hit(it: Installation, query: str, **more: Any) -> dict[str, Any]:
    body = {"collection": COLLECTION, "query": query, "top": 1} | more
    found = it.anyone.call("POST", "/v1/search", json=body)
    hits: list[dict[str, Any]] = found.json["hits"]
    return hits[0] if hits else {}


def test_a_document_has_the_address_of_its_source_and_hits_have_it_too(it: Installation) -> None:
    form = it.put("a.txt", "The canteen opens at nine.", url="https://example.org/ä b")
    assert hit(it, "canteen opens")["source_url"] == "https://example.org/%C3%A4%20b"
    sent = it.anyone.call(
        "POST",
        f"/v1/collections/{COLLECTION}/documents",
        json={"text": "Parking costs ten.", "name": "b.txt", "url": URL, "language": "en"},
    )
    assert hit(it, "parking costs")["source_url"] == URL
    shown = it.anyone.call("GET", f"/v1/documents/{sent.json['document_id']}").json
    assert (shown["url"], shown["language"]) == (URL, "en")
    it.put("c.txt", "The garden closes.")
    assert hit(it, "garden closes")["source_url"] is None
    change(it, form, json={"url": None})
    assert hit(it, "canteen opens")["source_url"] is None


def test_hits_and_citations_name_the_archive_that_contains_their_document(it: Installation) -> None:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("letters/a.txt", "The canteen opens at nine.")
    it.put("outer.zip", archive.getvalue())
    found = hit(it, "canteen opens")
    assert (found["filename"], found["within"]) == ("a.txt", "outer.zip/letters")
    body = {"collection": COLLECTION, "question": "When does the canteen open?"}
    shown = it.anyone.call("POST", "/v1/answer", json=body).json
    (cited,) = shown["citations"] or shown["nearest"]
    assert (cited["filename"], cited["within"]) == ("a.txt", "outer.zip/letters")
    it.put("outer/b.txt", "Parking costs ten.")
    assert hit(it, "parking costs")["within"] is None


@pytest.mark.long
@pytest.mark.parametrize(
    "url",
    [
        *("javascript:alert(1)", "ftp://example.org/a", "//example.org/a", "a.html", "https://"),
        *("https://u:p@example.org/a", "https://example.org/" + "a" * 2048, "http://[::1", "x\0y"),
    ],
)
def test_an_address_that_no_reader_could_open_is_refused(it: Installation, url: str) -> None:
    document_id = it.put("a.txt", "The canteen opens at nine.")
    refused = change(it, document_id, 400, json={"url": url})
    assert "url" in refused.json["detail"]
    sent = {"text": "x", "name": "b.txt", "url": url}
    reply = it.anyone.call("POST", f"/v1/collections/{COLLECTION}/documents", json=sent)
    assert (reply.status_code, reply.json["type"]) == (400, refused.json["type"])


def test_an_edit_follows_in_searches_filters_and_the_history(it: Installation) -> None:
    document_id = it.put("a.txt", "The canteen opens at nine.", properties='{"topic": "food"}')
    merge = {"Content-Type": "application/merge-patch+json"}
    body = '{"title": "Hours", "properties": {"topic": null, "floor": 2}, "language": "de"}'
    changed = change(it, document_id, data=body, headers=merge)
    assert (changed.json["title"], changed.json["version"]) == ("Hours", 2)
    assert changed.json["properties"] == {"floor": 2}
    found = hit(it, "canteen opens", having_all={"floor": 2, "lang": "de"})
    assert (found["title"], found["lang"], found["properties"]) == ("Hours", "de", {"floor": 2})
    assert not hit(it, "canteen opens", having_all={"topic": "food"})
    history = it.anyone.call("GET", f"/v1/documents/{document_id}/versions").json["versions"]
    edited = ["title", "language", "properties.floor", "properties.topic"]
    assert [v["edited"] for v in history] == [edited, None]
    rollback = f"/v1/documents/{document_id}/rollback"
    assert it.anyone.call("POST", rollback, json={"version": 1}).status_code == 202
    assert hit(it, "canteen opens", having_all={"topic": "food"})["title"] == "a.txt"


def test_days_by_hand_decide_what_is_in_force(it: Installation) -> None:
    text = "The canteen opens at nine. This is effective from 1 March 2020."
    document_id = it.put("a.txt", text)
    assert hit(it, "canteen opens", as_of="2021-01-01")
    change(it, document_id, json={"valid_from": "2024", "valid_to": "2025-01-01"})
    assert not hit(it, "canteen opens", as_of="2021-01-01")
    assert hit(it, "canteen opens", as_of="2024-06-01")
    assert not hit(it, "canteen opens", as_of="2025-01-01")
    refused = change(it, document_id, 400, json={"valid_to": "2023-01-01"})
    assert "valid_to (2023-01-01) is before valid_from (2024-01-01)" in refused.json["detail"]
    both = {"valid_from": "2021-01-01", "properties": {"valid_from": "2022-01-01"}}
    assert "valid_from" in change(it, document_id, 400, json=both).json["detail"]
    change(it, document_id, json={"valid_from": None, "valid_to": None})
    assert hit(it, "canteen opens", as_of="2021-01-01")
    assert not hit(it, "canteen opens", as_of="2019-01-01")


def test_a_document_shows_the_days_that_were_recognised(it: Installation) -> None:
    dated = it.put("a.txt", "The canteen opens at nine. This is effective from 1 March 2020.")
    plain = it.put("b.txt", "The canteen closes at five.")

    def days(document_id: str) -> list[str | None]:
        shown = it.anyone.call("GET", f"/v1/documents/{document_id}").json
        return [shown["valid_from"], shown["valid_to"]]

    assert (days(dated), days(plain)) == (["2020-03-01", None], [None, None])
    change(it, dated, json={"valid_to": "2031-01-01"})
    assert days(dated) == ["2020-03-01", "2031-01-01"]
    listed = it.anyone.call("GET", f"/v1/collections/{COLLECTION}/documents").json["documents"]
    assert [d["valid_to"] for d in listed] == [None, "2031-01-01"]
    words = "in force from 2020-03-01 until 2031-01-01"
    for path in (f"/page/documents?collection={COLLECTION}", f"/page/documents/{dated}"):
        assert it.anyone.call("GET", path).text.count(words) == 1


def test_of_two_changes_of_one_state_the_second_is_refused(it: Installation) -> None:
    document_id = it.put("a.txt", "The canteen opens at nine.")
    shown = it.anyone.call("GET", f"/v1/documents/{document_id}")
    assert shown.headers["ETag"] == f'"{shown.json["etag"]}"' == '"1"'
    tag = {"If-Match": shown.headers["ETag"]}
    first = change(it, document_id, json={"title": "first"}, headers=tag)
    second = change(it, document_id, 412, json={"title": "second"}, headers=tag)
    assert second.json["type"].endswith("precondition-failed")
    assert it.anyone.call("GET", f"/v1/documents/{document_id}").json["title"] == "first"
    for wrong in ("nonsense", 'W/"2"', '""'):
        change(it, document_id, 412, json={"title": "third"}, headers={"If-Match": wrong})
    either = {"If-Match": f'"1", {first.headers["ETag"]}'}
    change(it, document_id, json={"title": "third"}, headers=either)
    change(it, document_id, json={"title": "fourth"}, headers={"If-Match": "*"})
    same = change(it, document_id, 200, json={"title": "fourth"})
    assert (same.json["version"], same.headers["ETag"]) == (4, '"4"')
    readers = change(it, document_id, 200, json={"readers": ["user:ann"]})
    assert readers.headers["ETag"] == f'"{readers.json["etag"]}"' != '"4"'


@pytest.mark.long
@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({"titel": "x"}, "titel"),
        ({"document_id": "x"}, "document_id"),
        ({"name": "x.txt"}, "name"),
        ({"version": 3}, "version"),
        ({"properties": {"title": "x"}}, "title"),
        ({"properties": {"chunk": {"a": 1}}}, "chunk"),
        ({"properties": [1]}, "properties"),
        ({"title": 3}, "title"),
        ({"title": "x" * 1025}, "title"),
        ({"language": "Korean"}, "language"),
        ({"language": "K"}, "language"),
        ({"valid_from": "soon"}, "valid_from"),
        ({"readers": ["ann"]}, "reader"),
    ],
)
def test_a_change_that_no_document_can_have_is_refused_by_name(
    it: Installation, body: dict[str, Any], named: str
) -> None:
    document_id = it.put("a.txt", "The canteen opens at nine.")
    assert named in change(it, document_id, 400, json=body).text
    assert it.anyone.call("GET", f"/v1/documents/{document_id}").json["version"] == 1


def test_a_change_of_a_document_that_the_caller_may_not_read_does_not_show(
    it: Installation,
) -> None:
    document_id = it.put("a.txt", "The merger is in May.", readers="user:ann", url=URL)
    bob = it.as_reader("user:bob")
    for headers in ({}, {"If-Match": '"1"'}, {"If-Match": '"9"'}):
        url = f"/v1/documents/{document_id}"
        reply = bob.call("PATCH", url, json={"title": "B"}, headers=headers)
        assert reply.status_code == 404
    assert bob.search("merger") == []
    assert hit(it, "merger")["source_url"] == URL


def test_a_citation_of_a_web_page_leads_to_its_sentence(it: Installation) -> None:
    sentence = "The canteen opens at nine - except on Mondays, holidays & Sundays."
    it.put("canteen.html", PAGE.format(sentence.replace("&", "&amp;")), url=URL)
    body = {"collection": COLLECTION, "question": "When does the canteen open?"}
    answer = it.anyone.call("POST", "/v1/answer", json=body).json
    (citation, *_) = answer["citations"] or answer["nearest"]
    quote = "%20".join(("The", "canteen", "opens", "at", "nine"))
    assert citation["source_url"].startswith(f"{URL}#:~:text={quote}")
    assert "&" not in citation["source_url"]
    plain = it.put("plain.txt", "Parking in the basement costs ten euros.", url=URL + "#p")
    body["question"] = "What does parking in the basement cost?"
    answer = it.anyone.call("POST", "/v1/answer", json=body).json
    cited = answer["citations"] or answer["nearest"]
    assert {c["source_url"] for c in cited if c["document_id"] == plain} == {URL + "#p"}
