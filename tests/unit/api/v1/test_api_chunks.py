"""The chunks of documents over HTTP and on the page: lists, corrections, previews."""

import io
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from own_messy import pdf
from page_parts import HOSTILE, assert_harmless
from pipeline_parts import paragraphs
from reader_parts import COLLECTION, Installation, installation

from callslip.api.v1.chunks import preview, routes
from callslip.errors import Conflict, StoreDown
from callslip.ingestion.corrections import corrected_version
from callslip.stores.blobs import Blobs
from callslip.stores.records import AUDIENCE
from callslip.tasks import compute

PREVIEW = f"/v1/collections/{COLLECTION}/chunks:preview"


@pytest.fixture
def it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Installation]:
    with installation(tmp_path, monkeypatch) as made:
        yield made


def listed(it: Installation, document_id: str, **query: Any) -> dict[str, Any]:
    response = it.anyone.call("GET", f"/v1/documents/{document_id}/chunks", query_string=query)
    assert response.status_code == 200, response.text
    body: dict[str, Any] = response.json
    return body


def correct(it: Installation, document_id: str, texts: dict[str, str], **more: Any) -> Any:
    body = {"texts": texts} | more
    return it.anyone.call("POST", f"/v1/documents/{document_id}/corrections", json=body)


def test_a_list_of_chunks_says_all_that_is_known_of_each(it: Installation) -> None:
    source = (
        f"# Leave\n\n{paragraphs('one', 'two', 'three')}\n\n"
        f"# Rates\n\nBy ACME.\n\n{paragraphs('four', 'five')}"
    )
    document_id = it.put("a.md", source, properties='{"kind": "rules"}')
    body = listed(it, document_id)
    text = it.anyone.call("GET", f"/v1/documents/{document_id}/text").json["text"]
    first, *_, fourth, _ = body["chunks"]
    assert (body["version"], body["count"], body["next_after"]) == (1, 5, None)
    assert [c["section"] for c in body["chunks"]] == ["leave"] * 3 + ["rates"] * 2
    assert text[first["span"]["start"] : first["span"]["end"]] == first["text"]
    assert fourth["entities"] == ["ACME"]
    assert {"one0", "one29"} <= set(first["terms"])
    assert first["properties"]["kind"] == "rules"
    assert (first["level"], fourth["ordinal"], fourth["heading"]) == (2, 3, "Rates")
    assert first["tokens"] >= 30
    assert first["stores"] == {it.context.store_of("").kind: ["keyword", "vector"]}
    assert first["pages"] is None
    assert AUDIENCE not in str(body)
    parents = listed(it, document_id, parents=True)
    assert [c["level"] for c in parents["chunks"]] == [0, 1, 2, 2, 2, 1, 2, 2]
    assert parents["chunks"][2]["parent_id"] == parents["chunks"][1]["chunk_id"]
    assert parents["chunks"][0]["tokens"] is None


def test_pages_of_a_list_have_each_chunk_once(it: Installation) -> None:
    document_id = it.put("a.txt", paragraphs(*(f"w{n}x" for n in range(7))))
    whole = [c["chunk_id"] for c in listed(it, document_id, parents=True, limit=500)["chunks"]]
    read: list[str] = []
    after = None
    while after or not read:
        query = {"limit": 2, "parents": True} | ({"after": after} if after else {})
        page = listed(it, document_id, **query)
        read += [c["chunk_id"] for c in page["chunks"]]
        after = page["next_after"]
    assert read == whole
    assert len(read) == 9
    bad = it.anyone.call("GET", f"/v1/documents/{document_id}/chunks?after=9999999999.1.x")
    assert (bad.status_code, "invalid-request" in bad.text) == (400, True)
    assert it.anyone.call("GET", f"/v1/documents/{document_id}/chunks?after=x").status_code == 400


def test_pages_of_a_pdf_are_those_of_its_chunks(it: Installation) -> None:
    document_id = it.put("a.pdf", pdf("The leave is long.", "The rate is low."))
    (chunk,) = listed(it, document_id)["chunks"]
    assert (chunk["pages"]["first"], chunk["pages"]["last"]) == (1, 2)


def test_while_a_collection_moves_both_stores_are_named(
    it: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    document_id = it.put("a.txt", paragraphs("one"))
    home = it.context.store_of("").kind
    move = it.ledger.moves.take(COLLECTION, f"{home}:2", lease_seconds=60)
    (chunk,) = listed(it, document_id)["chunks"]
    assert chunk["stores"] == {home: ["keyword", "vector"], f"{home}:2": []}
    it.ledger.moves.end(move)


def test_a_chunk_that_the_store_lost_is_listed_with_its_text(it: Installation) -> None:
    document_id = it.put("a.txt", paragraphs("one", "two"))
    one, _ = listed(it, document_id)["chunks"]
    store = it.context.store_of("")
    store.delete_chunks(COLLECTION, [one["chunk_id"]])
    lost, there = listed(it, document_id)["chunks"]
    assert (lost["text"], lost["tokens"]) == (one["text"], one["tokens"])
    assert (lost["stores"], lost["terms"]) == ({store.kind: []}, [])
    assert there["stores"] == {store.kind: ["keyword", "vector"]}


def test_a_correction_is_a_new_version_and_both_texts_are_shown(it: Installation) -> None:
    document_id = it.put("a.txt", paragraphs("one", "two"))
    one, two = listed(it, document_id)["chunks"]
    sent = correct(it, document_id, {one["chunk_id"]: one["text"].replace("one3 ", "three ")})
    assert sent.status_code == 202, sent.text
    assert sent.json["version"] == 2
    body = listed(it, document_id)
    assert body["version"] == 2
    assert body["chunks"][1]["chunk_id"] == two["chunk_id"]
    (made,) = body["chunks"][0]["corrections"]
    assert (made["original"], made["replacement"], made["left_out"]) == ("one3", "three", None)
    url = f"/v1/documents/{document_id}/corrections"
    assert it.anyone.call("GET", url).json["corrections"] == [made]
    versions = it.anyone.call("GET", f"/v1/documents/{document_id}/versions").json["versions"]
    assert versions[0]["counts"]["extract"]["corrections"] == 1
    assert it.anyone.search("three") == ["a.txt"]
    same = correct(it, document_id, {two["chunk_id"]: two["text"]})
    assert (same.status_code, same.json["outcome"]) == (200, "unchanged")
    back = it.anyone.call("POST", f"/v1/documents/{document_id}/rollback", json={"version": 1})
    assert back.status_code == 202
    assert [c["chunk_id"] for c in listed(it, document_id)["chunks"]] == [
        one["chunk_id"],
        two["chunk_id"],
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [("", "empty"), (" \n", "empty"), (" ".join(["w"] * 1001), "1001 tokens"), ("w" * 20_001, "")],
)
def test_a_wrong_correction_is_named(it: Installation, text: str, words: str) -> None:
    document_id = it.put("a.txt", paragraphs("one", "two"))
    one = listed(it, document_id)["chunks"][0]
    refused = correct(it, document_id, {one["chunk_id"]: text})
    assert refused.status_code == 400
    assert words in refused.json["detail"]
    assert listed(it, document_id)["version"] == 1


def test_other_bad_corrections_are_named(it: Installation) -> None:
    document_id = it.put("a.txt", paragraphs("one", "two"))
    one, two = listed(it, document_id)["chunks"]
    assert correct(it, document_id, {}).status_code == 400
    unknown = correct(it, document_id, {"f" * 32: "x"})
    assert (unknown.status_code, "chunk-not-found" in unknown.text) == (404, True)
    assert correct(it, "e" * 32, {"f" * 32: "x"}).status_code == 404
    assert correct(it, document_id, {one["chunk_id"]: one["text"] + " x"}).status_code == 202
    late = correct(it, document_id, {two["chunk_id"]: two["text"] + " x"}, version=1)
    assert (late.status_code, "version 1 is not the newest" in late.text) == (409, True)
    gone = correct(it, document_id, {one["chunk_id"]: "x"})
    assert gone.status_code == 404
    it.anyone.call("DELETE", f"/v1/documents/{document_id}")
    assert correct(it, document_id, {two["chunk_id"]: "x"}).status_code == 404
    for what in ("chunks", "corrections"):
        assert it.anyone.call("GET", f"/v1/documents/{document_id}/{what}").status_code == 404


def test_of_two_corrections_at_the_same_moment_one_is_refused(
    it: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    document_id = it.put("a.txt", paragraphs("one", "two"))
    one, two = listed(it, document_id)["chunks"]
    backend, measures = it.context.backend, it.context.measures
    check = corrected_version._check_lengths

    def meanwhile(*arguments: Any) -> None:
        monkeypatch.setattr(corrected_version, "_check_lengths", check)
        text = {two["chunk_id"]: two["text"] + " second"}
        corrected_version.correct(backend, measures, document_id, text, 1)
        check(*arguments)

    monkeypatch.setattr(corrected_version, "_check_lengths", meanwhile)
    with pytest.raises(Conflict):
        corrected_version.correct(backend, measures, document_id, {one["chunk_id"]: "first"}, 1)
    assert len(it.ledger.documents.get(document_id).newest.corrections) == 1


def test_while_the_blob_store_is_down_no_text_is_said_to_be_gone(
    it: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    document_id = it.put("a.txt", paragraphs("one", "two"))
    one, _ = listed(it, document_id)["chunks"]

    def down(*_: Any) -> bytes:
        raise StoreDown("the blob store does not answer")

    monkeypatch.setattr(Blobs, "read", down)
    url = f"/v1/documents/{document_id}"
    for reply in (
        correct(it, document_id, {one["chunk_id"]: "x"}),
        it.anyone.call("POST", f"{url}/cut:preview", json={"max_tokens": 40}),
        it.anyone.call("GET", f"{url}/chunks"),
        it.anyone.call("GET", f"{url}/text"),
    ):
        assert (reply.status_code, reply.json["type"]) == (503, "urn:callslip:problem:store-down")


def test_provided_chunks_are_listed_and_not_corrected(it: Installation) -> None:
    rows = {"rows": [{"id": 1, "question": "When is the merger?", "answer": "In May."}]}
    it.anyone.call("POST", "/v1/faq/help", json=rows)
    collection = "help__question"
    document_id = it.ledger.documents.id_of(collection, "faq")
    assert document_id is not None
    (chunk,) = listed(it, document_id)["chunks"]
    assert chunk["text"].startswith("When is the merger?")
    assert chunk["tokens"] is None
    refused = correct(it, document_id, {chunk["chunk_id"]: "x"})
    assert (refused.status_code, "provided" in refused.text) == (409, True)


def test_a_preview_cuts_and_stores_nothing(it: Installation) -> None:
    text = f"# Leave\n\n{paragraphs('one', 'two', 'three')}"
    made = it.anyone.call("POST", PREVIEW, json={"text": text, "max_tokens": 40})
    assert made.status_code == 200, made.text
    body = made.json
    assert (body["count"], body["max_tokens"], body["target_tokens"]) == (3, 40, 36)
    assert body["media_type"] == "text/markdown"
    document_id = it.put("a.md", text)
    assert [c["text"] for c in listed(it, document_id)["chunks"]] == [
        c["text"] for c in it.anyone.call("POST", PREVIEW, json={"text": text}).json["chunks"]
    ]
    fewer = it.anyone.call("POST", PREVIEW, json={"text": text, "limit": 1}).json
    assert (len(fewer["chunks"]), fewer["count"]) == (1, 3)
    assert len(it.ledger.documents.find(COLLECTION)) == 1


def test_a_preview_of_a_file_has_its_pages(it: Installation) -> None:
    file = (io.BytesIO(pdf("The leave is long.", "The rate is low.")), "a.pdf")
    made = it.anyone.call("POST", PREVIEW, data={"file": file, "overlap_tokens": "8"})
    assert made.status_code == 200, made.text
    (chunk,) = made.json["chunks"]
    assert (chunk["pages"]["last"], made.json["overlap_tokens"]) == (2, 8)


@pytest.mark.long
@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        ({"json": {"text": ""}}, 400, "text"),
        ({"json": {"text": "x", "max_tokens": 31}}, 400, "max_tokens"),
        (
            {"json": {"text": "x", "target_tokens": 90, "max_tokens": 60}},
            400,
            "target_tokens is 90, but must be from 32 to 60",
        ),
        ({"json": {"text": "x", "colour": "red"}}, 400, "colour"),
        ({"json": {"text": "x" * 10_001}}, 413, "takes 10"),
        ({"data": {"file": (io.BytesIO(b"x" * 10_001), "a.txt")}}, 413, "takes 10"),
        ({"data": {"file": (io.BytesIO(b""), "a.txt")}}, 422, "no bytes"),
        ({"data": {"max_tokens": "many", "file": (io.BytesIO(b"x"), "a.txt")}}, 400, "max_tokens"),
        ({"data": {"limit": "1_0", "file": (io.BytesIO(b"x"), "a.txt")}}, 400, "limit"),
        ({"data": {"file": [(io.BytesIO(b"x"), "a"), (io.BytesIO(b"y"), "b")]}}, 400, "named file"),
        (
            {"data": {"tenant": (io.BytesIO(b"x"), "t"), "file": (io.BytesIO(b"x"), "a.txt")}},
            400,
            "not 'tenant'",
        ),
        ({"data": {"file": (io.BytesIO(b"%PDF-1.4 broken"), "a.pdf")}}, 422, "too damaged"),
        ({"data": b"x", "content_type": "text/plain"}, 400, "content type"),
    ],
)
def test_a_wrong_preview_is_named(
    it: Installation,
    monkeypatch: pytest.MonkeyPatch,
    arguments: dict[str, Any],
    status: int,
    words: str,
) -> None:
    monkeypatch.setattr(preview, "MEGABYTE", 1000)
    refused = it.anyone.call("POST", PREVIEW, **arguments)
    assert refused.status_code == status, refused.text
    assert words in refused.text


def test_a_preview_takes_few_threads(it: Installation, monkeypatch: pytest.MonkeyPatch) -> None:
    real, statuses, depth = compute.run, list[int](), list[int]()

    def run(*arguments: Any, **more: Any) -> Any:
        if len(depth) < preview.MOST_WAITING:
            depth.append(1)
            response = it.anyone.call("POST", PREVIEW, json={"text": "x"})
            statuses.append(response.status_code)
        return real(*arguments, **more)

    monkeypatch.setattr(compute, "run", run)
    assert it.anyone.call("POST", PREVIEW, json={"text": "x"}).status_code == 200
    assert statuses == [503, 200]
    assert it.anyone.call("POST", PREVIEW, json={"text": "x"}).status_code == 200


def test_the_page_lists_chunks_and_corrects_one(it: Installation) -> None:
    document_id = it.put("a.txt", paragraphs("one", "two"))
    one, _ = listed(it, document_id)["chunks"]
    url = f"/page/chunks?document={document_id}"
    assert "<textarea" not in it.anyone.call("GET", url).text
    form = it.anyone.call("GET", f"{url}&correct={one['chunk_id']}")
    assert_harmless(form.text)
    assert f">\n{one['text']}</textarea>" in unescape(form.text)
    fields = {"document": document_id, "chunk": one["chunk_id"], "version": "1"}
    new = one["text"].replace("one3 ", f"three {HOSTILE} ").replace(" one5", "\r\none5")
    sent = it.anyone.call("POST", "/page/corrections", data=fields | {"text": new})
    here = f"#chunk-{one['chunk_id']}"
    assert (sent.status_code, sent.headers["Location"]) == (303, url + here)
    shown = it.anyone.call("GET", url)
    assert_harmless(shown.text)
    assert "<del>one3" in shown.text
    text = it.anyone.call("GET", f"/v1/documents/{document_id}/text").json["text"]
    assert f"three {HOSTILE} one4\none5" in text
    passage = it.anyone.call("GET", f"/page/passage?document={document_id}&start=0&end=5")
    assert_harmless(passage.text)
    assert "<del>one3" in passage.text


def test_the_page_says_that_a_text_is_the_same_and_stays_where_it_is(it: Installation) -> None:
    document_id = it.put("a.txt", paragraphs("one", "two"))
    _, two = listed(it, document_id)["chunks"]
    fields = {"document": document_id, "chunk": two["chunk_id"], "version": "1"}
    first = it.anyone.call("GET", f"/v1/documents/{document_id}/chunks?limit=1").json
    fields |= {"after": first["next_after"], "text": two["text"]}
    sent = it.anyone.call("POST", "/page/corrections", data=fields)
    assert sent.status_code == 303
    assert f"after={first['next_after']}" in unquote(sent.headers["Location"])
    assert sent.headers["Location"].endswith(f"#chunk-{two['chunk_id']}")
    shown = it.anyone.call("GET", sent.headers["Location"]).text
    assert shown.count("The text is the same as before: nothing was changed.") == 1


@pytest.mark.parametrize("changed", [False, True])
def test_a_position_that_is_none_loses_no_correction_and_no_text(
    it: Installation, changed: bool
) -> None:
    document_id = it.put("a.txt", paragraphs("one", "two"))
    one, _ = listed(it, document_id)["chunks"]
    fields = {"document": document_id, "chunk": one["chunk_id"], "version": "1", "after": "x"}
    text = one["text"] + (" more" if changed else "")
    sent = it.anyone.call("POST", "/page/corrections", data=fields | {"text": text})
    assert sent.status_code == 303
    assert it.anyone.call("GET", sent.headers["Location"]).status_code == 200
    late = it.anyone.call(
        "POST", "/page/corrections", data=fields | {"text": "my text", "version": "7"}
    )
    assert late.status_code == 409
    assert "my text</textarea>" in late.text
    url = f"/page/chunks?document={document_id}&after=x"
    assert it.anyone.call("GET", url).status_code == 400


def test_while_a_version_waits_the_page_offers_no_correction_and_keeps_the_text(
    it: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    document_id = it.put("a.txt", paragraphs("one", "two"))
    one, _ = listed(it, document_id)["chunks"]
    url = f"/page/chunks?document={document_id}"
    assert ">Correct</a>" in it.anyone.call("GET", url).text
    monkeypatch.setattr(routes, "send_version", lambda *arguments: None)
    correct(it, document_id, {one["chunk_id"]: f"{one['text']} x"})
    waits = it.anyone.call("GET", f"{url}&correct={one['chunk_id']}").text
    assert ">Correct</a>" not in waits
    assert "<form" not in waits[waits.index("<main") :]
    assert "Chunks can be corrected again once it is live" in waits
    fields = {"document": document_id, "chunk": one["chunk_id"], "version": "1", "text": "my text"}
    late = it.anyone.call("POST", "/page/corrections", data=fields)
    assert late.status_code == 409
    assert "my text</textarea>" in late.text
    assert "after you have copied your text" in late.text


def test_the_page_keeps_a_text_that_is_refused(it: Installation) -> None:
    document_id = it.put("a.txt", paragraphs("one", "two"))
    one, _ = listed(it, document_id)["chunks"]
    fields = {"document": document_id, "chunk": one["chunk_id"], "version": "1"}
    long = "long " * 1001
    refused = it.anyone.call("POST", "/page/corrections", data=fields | {"text": long})
    assert refused.status_code == 400
    assert f"{long}</textarea>" in refused.text
    correct(it, document_id, {one["chunk_id"]: f"{one['text']} x"})
    late = it.anyone.call("POST", "/page/corrections", data=fields | {"text": "my text"})
    assert late.status_code == 409
    assert "not saved" in late.text
    assert "my text</textarea>" in late.text
    assert it.anyone.call("GET", "/page/chunks?document=x").status_code == 404


def test_the_page_lists_corrections_that_are_left_out(it: Installation) -> None:
    document_id = it.put("a.txt", paragraphs("one", "two"))
    one, _ = listed(it, document_id)["chunks"]
    correct(it, document_id, {one["chunk_id"]: one["text"].replace("one3 ", "three ")})
    it.put("a.txt", paragraphs("two", "four"))
    shown = it.anyone.call("GET", f"/page/chunks?document={document_id}").text
    assert "1 correction left out" in shown
    assert "the file does not have the original any more" in shown


def test_a_form_without_the_token_of_the_page_is_refused(it: Installation) -> None:
    document_id = it.put("a.txt", paragraphs("one"))
    del it.client.environ_base["HTTP_X_CSRF_TOKEN"]
    refused = it.client.post("/page/corrections", data={"document": document_id})
    assert refused.status_code == 403
