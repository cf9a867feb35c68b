"""Who may read a document: every route sees what its caller may read, and nothing else."""

import io
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from reader_parts import COLLECTION, Installation, installation

from callslip.api.identity.current import reader_of
from callslip.api.page import chunk_pages, editing
from callslip.api.v1.answers import answering
from callslip.callers import OPEN, Caller
from callslip.errors import ObjectRefused
from callslip.messages.answers import Conversation, TurnMessage
from callslip.readers import Reader, audience_of
from callslip.retrieval.facets.readable import read_consistently
from callslip.stores.ledger import Claim
from callslip.stores.ledger.documents import readers as ledger_readers
from callslip.stores.ledger.documents.failures import Which
from callslip.stores.properties.filters import Where
from callslip.stores.records import AUDIENCE
from callslip.tasks import answer as answers

BOB = Reader("bob", frozenset({"user:bob"}))


@pytest.fixture
def it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Installation]:
    with installation(tmp_path, monkeypatch) as made:
        yield made


def test_a_search_finds_what_its_caller_may_read(it: Installation) -> None:
    it.put("public.txt", "The canteen opens at nine.")
    it.put("board.txt", "The merger of the canteen is in May.", readers="group:board,user:ann")
    assert it.anyone.search("canteen merger") == ["board.txt", "public.txt"]
    for names in ("user:ann", "user:bob,group:board"):
        assert it.as_reader(names).search("canteen merger") == ["board.txt", "public.txt"]
    for names in ("user:bob", "group:ann", ""):
        assert it.as_reader(names).search("canteen merger") == ["public.txt"]


def test_what_is_not_in_force_counts_only_for_who_may_read_it(it: Installation) -> None:
    it.put("public.txt", "The canteen opens at nine.")
    later = '{"valid_from": "2999-01-01"}'
    it.put("board.txt", "The merger of the canteen is in May.", "user:ann", properties=later)
    counting = {"count_not_in_force": True}
    body = {"collection": COLLECTION, "query": "canteen merger"}
    for at, documents in ((it.anyone, 1), (it.as_reader("user:ann"), 1), (it.as_reader(""), 0)):
        shown = at.call("POST", "/v1/search", json=body | counting).json
        assert ([h["filename"] for h in shown["hits"]], shown["not_in_force"]) == (
            ["public.txt"],
            documents,
        )
        assert at.call("POST", "/v1/search", json=body).json["not_in_force"] is None


def test_a_change_of_readers_applies_at_once_and_reaches_the_store(it: Installation) -> None:
    it.put("public.txt", "The canteen opens at nine.")
    document_id = it.put("board.txt", "The merger of the canteen is in May.")
    bob = it.as_reader("user:bob")
    assert bob.search("merger canteen") == ["board.txt", "public.txt"]
    url = f"/v1/documents/{document_id}"
    changed = it.anyone.call("PATCH", url, json={"readers": ["user:ann"]})
    assert changed.json["readers"] == ["user:ann"]
    assert bob.search("merger canteen") == ["public.txt"]
    assert bob.call("GET", url).status_code == 404
    assert bob.call("PATCH", url, json={"readers": None}).status_code == 404
    assert it.as_reader("user:ann").search("merger canteen") == ["board.txt", "public.txt"]
    limited = it.ledger.for_reader(Reader("bob", frozenset({"user:bob"}))).readers.unreadable(
        COLLECTION, ""
    )
    assert (len(limited.audiences), limited.documents) == (1, ())
    assert it.anyone.call("PATCH", url, json={"readers": None}).json["readers"] is None
    assert bob.search("merger canteen") == ["board.txt", "public.txt"]


def test_while_the_store_has_other_readers_the_document_is_left_out_by_its_id(
    it: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    it.put("public.txt", "The canteen opens at nine.")
    document_id = it.put("board.txt", "The merger of the canteen is in May.")
    monkeypatch.setattr(it, "work", lambda: None)
    due = it.ledger.readers.set(document_id, ("user:ann",))
    assert due == it.ledger.readers.due() == [(document_id, 1)]
    hidden = it.ledger.for_reader(BOB).readers.unreadable(COLLECTION, "")
    assert hidden.documents == (document_id,)
    store = it.context.store_of("memory")
    assert store.count(COLLECTION, hidden.left_out_of(None)) == len(it.chunks("public.txt"))


def test_a_change_during_an_upsert_is_written_by_the_next_one(it: Installation) -> None:
    document_id = it.put("board.txt", "The merger of the canteen is in May.")
    it.ledger.leases.reopen(document_id, 1, "upsert")
    claim = it.ledger.leases.claim(
        document_id, 1, "upsert", worker="w", lease_seconds=60, max_crashes=3
    )
    assert isinstance(claim, Claim)
    it.ledger.readers.set(document_id, ("user:ann",))
    assert it.ledger.readers.due() == []  # the version that is queued
    it.ledger.leases.go_live(claim, sorted(it.chunks("board.txt")), {}, audience="")
    assert it.ledger.readers.due() == [(document_id, 1)]
    it.ledger.leases.reopen(document_id, 1, "upsert")
    it.work()
    assert it.ledger.readers.due() == []
    (chunk, *_) = it.context.store_of("memory").get_chunks(COLLECTION, it.chunks("board.txt"))
    assert chunk.properties[AUDIENCE] == audience_of(("user:ann",))


def test_readers_that_cannot_be_written_are_not_written_again_for_ever(it: Installation) -> None:
    document_id = it.put("board.txt", "The merger of the canteen is in May.")
    it.ledger.readers.set(document_id, ("user:ann",))
    it.ledger.leases.reopen(document_id, 1, "upsert")
    claim = it.ledger.leases.claim(
        document_id, 1, "upsert", worker="w", lease_seconds=60, max_crashes=3
    )
    assert isinstance(claim, Claim)
    it.ledger.leases.fail(claim, ObjectRefused("the store refuses a chunk"))
    assert it.ledger.readers.due() == []
    hidden = it.ledger.for_reader(BOB).readers.unreadable(COLLECTION, "")
    assert hidden.documents == (document_id,)
    assert len(it.ledger.failures.retry(Which())) == 1
    it.work()
    (chunk, *_) = it.context.store_of("memory").get_chunks(COLLECTION, it.chunks("board.txt"))
    assert chunk.properties[AUDIENCE] == audience_of(("user:ann",))


def test_a_new_version_keeps_its_readers_unless_it_names_others(it: Installation) -> None:
    it.put("board.txt", "The merger is in May.", readers="user:ann")
    it.put("board.txt", "The merger is in June.")
    bob = it.as_reader("user:bob")
    assert bob.search("merger") == []
    assert it.as_reader("user:ann").search("merger") == ["board.txt"]
    it.put("board.txt", "The merger is in June.", readers="everyone")
    assert bob.search("merger") == ["board.txt"]


def test_a_name_that_is_taken_by_a_hidden_document_stays_its_own(it: Installation) -> None:
    document_id = it.put("board.txt", "The merger is in May.", readers="user:ann")
    bob = it.as_reader("user:bob")
    url = f"/v1/collections/{COLLECTION}/documents"
    sent = bob.call("POST", url, json={"name": "board.txt", "text": "Mine."})
    assert (sent.status_code, sent.json["type"]) == (409, "urn:callslip:problem:name-taken")
    same = bob.call("POST", url, json={"name": "mine.txt", "text": "The merger is in May."})
    assert same.status_code == 202  # not a duplicate of what it may not read
    shown = it.anyone.call("GET", f"/v1/documents/{document_id}").json
    assert (shown["version"], shown["readers"]) == (1, ["user:ann"])


@pytest.mark.parametrize(
    ("reader", "fault"),
    [
        ("ann", "is neither `user:NAME` nor `group:NAME`"),
        ("user:", "is neither `user:NAME` nor `group:NAME`"),
        ("role:x", "is neither `user:NAME` nor `group:NAME`"),
        ("group: x ", "has a space at an end of its name"),
        ("user:a\tb", "has the character U+0009, which no name has"),
        ("user:a\0", "has the character U+0000, which no name has"),
        ("user:\u202ex", "has the character U+202E, which no name has"),
        (f"user:{'a' * 300}", "has more than 256 characters"),
    ],
)
def test_a_list_of_readers_is_checked(it: Installation, reader: str, fault: str) -> None:
    url = f"/v1/collections/{COLLECTION}/documents"
    readers = ["group:hr", reader, "user:bob"]
    sent = it.anyone.call("POST", url, json={"text": "x", "readers": readers})
    assert (sent.status_code, sent.json["type"]) == (400, "urn:callslip:problem:invalid-request")
    assert sent.json["detail"] == f"reader 2 {fault}"


@pytest.mark.parametrize("readers", ["", " "])
def test_an_empty_field_of_a_form_restricts_or_opens_nothing(
    it: Installation, readers: str
) -> None:
    fields = {"readers": readers, "file": (io.BytesIO(b"x"), "b.txt")}
    refused = it.anyone.call("POST", f"/v1/collections/{COLLECTION}/documents", data=fields)
    assert refused.status_code == 400
    assert "leave it out" in refused.json["detail"]
    assert "[]" in refused.json["detail"]


def test_a_name_may_have_commas_in_json(it: Installation) -> None:
    document_id = it.put("a.txt", "One.", readers='["group:cn=hr,dc=example", "user:ann"]')
    shown = it.anyone.call("GET", f"/v1/documents/{document_id}").json
    assert shown["readers"] == ["group:cn=hr,dc=example", "user:ann"]
    for readers in ("[", '["user:ann", 1]', '{"user:ann": 1}', "user:ann,everyone"):
        fields = {"readers": readers, "file": (io.BytesIO(b"x"), "b.txt")}
        url = f"/v1/collections/{COLLECTION}/documents"
        assert it.anyone.call("POST", url, data=fields).status_code == 400, readers


def test_nobody_sets_or_filters_the_property_of_the_audience(it: Installation) -> None:
    url = f"/v1/collections/{COLLECTION}/documents"
    sent = it.anyone.call("POST", url, json={"text": "x", "properties": {AUDIENCE: "y"}})
    assert sent.status_code == 400
    it.put("board.txt", "The merger is in May.", readers="user:ann")
    body = {"collection": COLLECTION, "query": "merger"}
    for names in (None, "user:ann"):
        at = it.anyone if names is None else it.as_reader(names)
        refused = at.call("POST", "/v1/search", json=body | {"having_all": {AUDIENCE: "y"}})
        assert (refused.status_code, refused.json["type"]) == (
            400,
            "urn:callslip:problem:invalid-filter",
        )
        (hit, *_) = at.call("POST", "/v1/search", json=body).json["hits"]
        assert AUDIENCE not in hit["properties"]


def test_what_is_within_a_document_has_its_readers(it: Installation) -> None:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("inner.txt", "The merger of the canteen is in May.")
    parent_id = it.put("outer.zip", archive.getvalue(), readers="group:board")
    (child,) = it.ledger.documents.find(COLLECTION, parent=parent_id)
    assert child.readers == ("group:board",)
    bob = it.as_reader("user:bob")
    assert bob.search("merger") == []
    url = f"/v1/documents/{parent_id}"
    it.anyone.call("PATCH", url, json={"readers": ["user:bob"]})
    assert bob.search("merger") == ["inner.txt", "outer.zip"]
    it.ledger.readers.set(parent_id, ())
    it.ledger.readers.set(child.document_id, ("user:bob",))
    shown = bob.call("GET", f"/v1/documents/{child.document_id}").json
    assert (shown["name"], shown["parent"]) == ("outer.zip/inner.txt", None)


def test_rows_of_a_hidden_faq_stay_as_they_are(it: Installation) -> None:
    rows = {"rows": [{"id": 1, "question": "When?", "answer": "In May."}]}
    url, body = "/v1/faq/help", rows | {"strategies": ["question"]}
    assert it.anyone.call("POST", url, json=body).status_code == 200
    document_id = it.ledger.documents.id_of("help__question", "faq")
    it.anyone.call("PATCH", f"/v1/documents/{document_id}", json={"readers": ["user:ann"]})
    again = it.as_reader("user:ann").call("POST", url, json=body)
    assert again.json["collections"]["help__question"]["unchanged"] == 1
    bob = it.as_reader("user:bob")
    refused = bob.call("POST", url, json=body)
    assert (refused.status_code, refused.json["type"]) == (409, "urn:callslip:problem:name-taken")
    assert bob.call("POST", f"{url}/remove", json={"ids": [1]}).json["collections"] == {
        "help__question": 0
    }
    assert it.as_reader("user:ann").call("GET", url).json["collections"] == {"help__question": [1]}


def test_a_collection_has_a_bounded_number_of_lists(
    it: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger_readers, "MOST_AUDIENCES", 1)
    document_id = it.put("a.txt", "One.", readers="user:ann")
    it.put("b.txt", "Two.", readers="user:ann")
    refused = it.anyone.call("PATCH", f"/v1/documents/{document_id}", json={"readers": []})
    assert (refused.status_code, refused.json["type"]) == (409, "urn:callslip:problem:conflict")


def test_facet_values_are_counted_again_while_readers_change(it: Installation) -> None:
    document_id = it.put("a.txt", "One.", properties='{"kind": "a"}')
    bob, store = it.ledger.for_reader(BOB), it.context.store_of("memory")
    seen: list[int] = []

    def read(where: Where | None) -> int:
        if not seen:
            it.ledger.readers.set(document_id, ("user:ann",))
        seen.append(store.count(COLLECTION, where))
        return seen[-1]

    assert read_consistently(bob, COLLECTION, "", read) == 0
    assert seen == [1, 0]


def test_metrics_count_the_documents_that_their_caller_may_read(it: Installation) -> None:
    it.put("public.txt", "The canteen opens at nine.")
    it.put("board.txt", "The merger of the canteen is in May.", readers="user:ann")
    for caller, count in ((it.anyone, 2), (it.as_reader("user:ann"), 2), (it.as_reader(""), 1)):
        text = caller.call("GET", "/metrics").text
        assert f'callslip_documents{{state="live"}} {count}.0' in text


def test_a_caller_is_the_reader_of_its_user_and_groups() -> None:
    key = Caller("k", "key", frozenset({"read"}), user="ann", groups=frozenset({"hr"}))
    oidc = Caller("ann@x", "oidc", frozenset({"read"}), user="ann")
    made = reader_of(key)
    assert made is not None
    assert made.names == {"user:ann", "group:hr"}
    again, other = reader_of(oidc), reader_of(Caller("k", "key", frozenset({"read"})))
    assert again is not None
    assert other is not None
    assert made.owner == again.owner != other.owner
    assert other.names == frozenset()
    assert reader_of(Caller("k", "key", frozenset({"admin"}), user="ann")) is None
    assert reader_of(OPEN) is None


def test_a_batch_of_hidden_documents_is_not_changed(it: Installation) -> None:
    it.put("board.txt", "The merger of the canteen is in May.", readers="user:ann", batch="b")
    body = {"batch_id": "b", "expected": 7}
    assert it.as_reader("user:bob").call("POST", "/v1/batches", json=body).status_code == 404
    assert it.ledger.batches.report("b").expected is None
    assert it.as_reader("user:ann").call("POST", "/v1/batches", json=body).json["expected"] == 7


def test_a_filter_of_an_invoker_does_not_tell_which_properties_are_hidden(it: Installation) -> None:
    it.put("public.txt", "The canteen opens at nine.", properties='{"topic": "food"}')
    it.put("pay.txt", "The salaries rise.", readers="user:ann", properties='{"band": 1}')
    url = "/v1/invokers/WeaviateVectorSimilaritySearchInvoker"

    def twice(names: str, prop: str) -> int:
        content = {"collection": COLLECTION, "query_embedding": [1.0] + [0.0] * 15}
        content |= {"having_all": {prop: 1, f"document_metadata.{prop}": 1}}
        return it.as_reader(names).call("POST", url, json={"content": content}).status_code

    assert twice("user:ann", "band") == 400  # both names stand for one property
    assert twice("user:bob", "band") == twice("user:bob", "nothing") == 200
    assert twice("user:bob", "topic") == 400


def test_an_edit_shows_its_caller_what_it_may_read(it: Installation) -> None:
    document_id = it.put("a.txt", "The canteen opens at nine.")
    url, bob = f"/v1/documents/{document_id}", it.as_reader("user:bob")
    shown = bob.call("GET", url).json
    assert bob.call("PATCH", url, json={}).json == shown
    assert "embedded" not in {name for step in shown["steps"] for name in step["counts"]}
    assert "embedded" in {
        name for step in it.anyone.call("GET", url).json["steps"] for name in step["counts"]
    }
    hidden = bob.call("PATCH", url, json={"readers": ["user:ann"]})
    assert (hidden.status_code, hidden.json["readers"]) == (200, ["user:ann"])
    assert (hidden.json["parent"], hidden.json["steps"]) == (None, [])
    assert bob.call("GET", url).status_code == 404


@pytest.mark.parametrize(
    ("page", "url", "form"),
    [
        (chunk_pages, "/page/corrections", {"document": "ID", "chunk": "none", "text": "x"}),
        (editing, "/page/documents/ID", {"title": "x"}),
        (editing, "/page/documents/ID/restore", {"version": "7"}),
    ],
)
def test_who_may_write_and_not_read_sees_the_error_alone(
    it: Installation, monkeypatch: pytest.MonkeyPatch, page: ModuleType, url: str, form: Any
) -> None:
    document_id = it.put("a.txt", "The canteen opens at nine.", title="Hours")
    fields = {name: text.replace("ID", document_id) for name, text in form.items()}
    url = url.replace("ID", document_id)
    reader = it.anyone.call("POST", url, data=fields)
    writer = Caller("w", "key", frozenset({"write"}))
    monkeypatch.setattr(page, "caller", lambda: writer)
    reply = it.anyone.call("POST", url, data=fields)
    assert reply.status_code == reader.status_code >= 400
    assert "Hours" in reader.text
    assert not {"Hours", "canteen"} & set(re.findall(r"\w+", reply.text))


def test_who_may_write_and_not_read_deletes_a_conversation_unseen(
    it: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    fields = {"question": "?", "understood": "?", "text": "Nine.", "answered": True}
    turn = TurnMessage(**fields, trace_id="t", at=1.0)
    talk = Conversation(thread_id="talk", created_at=1.0, asked_at=1.0, turns=[turn])
    monkeypatch.setattr(answers, "forget", lambda *_: talk)
    url = f"/v1/collections/{COLLECTION}/conversations/talk"
    for permission, turns in (("read", 1), ("write", 0)):
        who = Caller("k", "key", frozenset({permission}))
        monkeypatch.setattr(answering, "caller", lambda who=who: who)
        assert len(it.anyone.call("DELETE", url).json["turns"]) == turns
