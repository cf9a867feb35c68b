"""The page of one document: its form edits, its history restores."""

import html
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from reader_parts import COLLECTION, Installation, installation
from werkzeug.test import TestResponse


@pytest.fixture
def it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Installation]:
    with installation(tmp_path, monkeypatch) as made:
        yield made


PROPERTIES = '{"topic": "food", "floor": 2, "code": "007", "number": "7", "names": ["a", "b"]}'


@pytest.fixture
def document_id(it: Installation) -> str:
    text = "The canteen opens at nine. This is effective from 1 March 2020."
    return it.put("a.txt", text, properties=PROPERTIES)


def shown(reply: TestResponse) -> dict[str, str]:
    """The fields of the form."""
    fields = re.findall(r'<input [^>]*?name="(\w+)"[^>]*? value="([^"]*)"', reply.text)
    (lines,) = re.findall(r'<textarea id="properties"[^>]*>([^<]*)</textarea>', reply.text)
    return {n: html.unescape(v) for n, v in [*fields, ("properties", lines)] if n != "version"}


def opened(it: Installation, document_id: str) -> dict[str, str]:
    return shown(it.anyone.call("GET", f"/page/documents/{document_id}"))


def save(it: Installation, document_id: str, form: dict[str, str], status: int = 303) -> Any:
    reply = it.anyone.call("POST", f"/page/documents/{document_id}", data=form)
    assert reply.status_code == status, reply.text
    return reply


def test_the_form_changes_what_was_changed_in_it(it: Installation, document_id: str) -> None:
    form = opened(it, document_id)
    lines = 'code=007\nfloor=2\nnames=["a", "b"]\nnumber="7"\ntopic=food'
    assert (form["title"], form["properties"]) == ("", lines)
    save(it, document_id, form)
    assert it.ledger.documents.get(document_id).newest.version == 1
    changed = {
        "title": " Hours ",
        "url": "https://example.org/a?b=1&c=2",
        "valid_to": "2027-01-01",
        "properties": lines.replace("floor=2\n", "").replace("food", "a = b") + "\n\nyes=true\n",
    }
    save(it, document_id, form | changed)
    newest = it.ledger.documents.get(document_id).newest
    assert (newest.title, newest.url, newest.version) == ("Hours", changed["url"], 2)
    assert newest.properties == {
        **{"topic": "a = b", "code": "007", "number": "7", "names": ["a", "b"]},
        **{"yes": True, "valid_to": "2027-01-01"},
    }
    assert "properties.valid_from" not in newest.by_hand
    assert opened(it, document_id)["url"] == changed["url"]
    page = it.anyone.call("GET", f"/page/documents/{document_id}").text
    assert "edited properties.floor" in page or "properties.floor" in page
    restored = it.anyone.call("POST", f"/page/documents/{document_id}/restore", data={"version": 1})
    assert restored.status_code == 303
    assert it.ledger.documents.get(document_id).newest.restores == 1
    assert opened(it, document_id)["properties"] == lines


def test_without_a_title_of_its_own_a_document_has_that_in_its_file(it: Installation) -> None:
    document_id = it.put("guide.md", "# Opening hours\n\nThe canteen opens at nine.")
    page = it.anyone.call("GET", f"/page/documents/{document_id}").text
    assert "<h1>Opening hours</h1>" in page
    assert 'placeholder="Opening hours"' in page
    assert re.search(r"<b>Version 1</b>, live: submitted\s*<time [^>]*>\d{4}-\d\d-\d\d ", page)
    for path in (f"/page/chunks?document={document_id}", f"/page/passage?document={document_id}"):
        shown_page = it.anyone.call("GET", f"{path}&start=0&end=5").text
        assert "<h1>Opening hours</h1>" in shown_page
        assert f'<a href="/?collection={COLLECTION}">Search and documents</a>' in shown_page
    save(it, document_id, opened(it, document_id) | {"title": "Hours"})
    page = it.anyone.call("GET", f"/page/documents/{document_id}").text
    assert "<h1>Hours</h1>" in page
    assert 'placeholder="Opening hours"' in page


def test_of_two_people_the_second_sees_what_the_first_did_and_loses_nothing(
    it: Installation, document_id: str
) -> None:
    one, two = opened(it, document_id), opened(it, document_id)
    save(it, document_id, one | {"title": "First", "properties": one["properties"] + "\nnew=1"})
    typed = two | {"language": "en", "properties": two["properties"].replace("food", "travel")}
    refused = save(it, document_id, typed, 412)
    assert "The form has the present values with your changes" in refused.text
    again = shown(refused)
    assert (again["title"], again["language"]) == ("First", "en")
    assert "topic=travel" in again["properties"]
    assert "new=1" in again["properties"]
    save(it, document_id, again)
    newest = it.ledger.documents.get(document_id).newest
    assert (newest.title, newest.language, newest.version) == ("First", "en", 3)
    assert (newest.properties["topic"], newest.properties["new"]) == ("travel", 1)


def test_after_a_failed_save_the_heading_is_the_stored_title_and_the_field_has_its_label(
    it: Installation, document_id: str
) -> None:
    form = opened(it, document_id) | {"title": "Hours"}
    refused = save(it, document_id, form | {"valid_from": "soon"}, 400)
    assert "<h1>a.txt</h1>" in refused.text
    assert shown(refused)["title"] == "Hours"
    problem = refused.text[refused.text.index('class="problem"') : refused.text.index("<form")]
    assert "“In force from” is not a date" in problem
    assert "valid_from" not in problem
    days = {"valid_from": "2026-01-02", "valid_to": "2026-01-01"}
    problem = save(it, document_id, form | days, 400).text
    assert "“No longer in force from” (2026-01-01) is before “In force from”" in problem
    problem = save(it, document_id, form | {"language": "x" * 9}, 400).text
    assert "Language: " in problem


@pytest.mark.long
@pytest.mark.parametrize(
    "wrong",
    [
        {"url": "javascript:alert(1)"},
        {"language": "Korean"},
        {"valid_from": "soon"},
        {"properties": "no equals"},
        {"properties": "a=1\na=2"},
        {"properties": "title=x"},
        {"properties": 'a={"b": 1}'},
        {"properties": 'a="\\ud800"'},
        {"was": "nonsense"},
    ],
)
def test_what_is_wrong_is_said_above_the_form_that_was_typed(
    it: Installation, document_id: str, wrong: dict[str, str]
) -> None:
    form = opened(it, document_id) | {"title": 'A "title" <b>'} | wrong
    refused = save(it, document_id, form, 400)
    assert 'class="problem"' in refused.text
    assert "Value error" not in refused.text
    assert shown(refused)["title"] == 'A "title" <b>'
    assert all(shown(refused)[name] == value for name, value in wrong.items() if name == "url")
    assert it.ledger.documents.get(document_id).newest.version == 1


@pytest.mark.parametrize("version", ["", "0", "-1", "two", str(2**70)])
def test_a_version_that_is_none_is_named(it: Installation, document_id: str, version: str) -> None:
    form = {"csrf_token": opened(it, document_id)["csrf_token"], "version": version}
    refused = it.anyone.call(
        "POST",
        f"/page/documents/{document_id}/restore",
        data=form,
        headers={"X-CSRF-Token": form["csrf_token"]},
    )
    assert refused.status_code == 400
    assert "no number of a version" in refused.text


def test_a_deleted_document_has_no_live_version(it: Installation, document_id: str) -> None:
    url = f"/v1/documents/{document_id}"
    it.put("a.txt", "The canteen closes.")
    assert it.anyone.call("GET", f"{url}/versions").json["versions"][0]["state"] == "live"
    it.anyone.call("DELETE", url)
    history = it.anyone.call("GET", f"{url}/versions").json
    assert history["live_version"] is None
    assert [version["state"] for version in history["versions"]] == ["deleted", "superseded"]
    assert it.anyone.call("GET", url).json["live_version"] is None
    page = it.anyone.call("GET", f"/page/documents/{document_id}").text
    assert "<b>Version 2</b>, deleted" in page
    assert ", live" not in page


def test_a_deleted_document_is_not_found_by_a_rollback(it: Installation, document_id: str) -> None:
    it.put("a.txt", "The canteen closes.")
    it.anyone.call("DELETE", f"/v1/documents/{document_id}")
    for _ in range(2):  # before and after its data are removed
        refused = it.anyone.call(
            "POST", f"/v1/documents/{document_id}/rollback", json={"version": 1}
        )
        assert (refused.status_code, "document-not-found" in refused.text) == (404, True)
        it.context.blobs.delete(document_id)


def test_a_form_of_another_site_changes_nothing(it: Installation, document_id: str) -> None:
    form = opened(it, document_id) | {"title": "Foreign", "csrf_token": "x" * 22}
    foreign = it.anyone.call(
        "POST", f"/page/documents/{document_id}", data=form, headers={"X-CSRF-Token": "x" * 22}
    )
    assert foreign.status_code == 403
    bob = it.as_reader("user:bob")
    it.ledger.readers.set(document_id, ("user:ann",))
    for method in ("GET", "POST"):
        assert bob.call(method, f"/page/documents/{document_id}", data=form).status_code == 404


def test_hits_on_the_page_link_to_their_source(it: Installation) -> None:
    it.put("b.txt", "Parking costs ten.", url="https://example.org/parking?a=1&b=2")
    page = it.anyone.call("GET", "/?q=parking+costs&collection=papers").text
    assert 'href="https://example.org/parking?a=1&amp;b=2" rel="noopener noreferrer"' in page
