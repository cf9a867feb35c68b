"""Edits: what is known of a document changes by a version of the same bytes."""

from dataclasses import replace
from typing import Any

import pytest
from ledger_moves import publish, store_chunks, submission, submit, taken

from callslip.errors import (
    BrokenFile,
    Conflict,
    DocumentNotFound,
    InvalidRequest,
    PreconditionFailed,
)
from callslip.readers import Reader
from callslip.stores.ledger import Accepted, Edit, Ledger, Provenance, VersionRecord
from callslip.stores.ledger.base.corrections import Correction

pytest_plugins = ["ledger_fixtures"]

URL = "https://example.org/a.html"


def edit(ledger: Ledger, item: Accepted, if_match: set[str] | None = None, **fields: Any) -> Any:
    return ledger.edits.make(item.document_id, Edit(**fields), if_match=if_match).accepted


def newest(ledger: Ledger, item: Accepted) -> VersionRecord:
    return ledger.documents.get(item.document_id).newest


def resubmit(ledger: Ledger, content: str = "one", **changed: Any) -> Accepted:
    sent = replace(submission(content), **{"title": None, "properties": None} | changed)
    return ledger.documents.submit("papers", sent, "0" * 32)


def test_an_edit_is_a_version_of_the_same_bytes_with_an_event(ledger: Ledger) -> None:
    item = publish(ledger, "one", ["x"])
    edited = edit(ledger, item, title="T", url=URL, language="ko", properties={"a": 1, "b": ["c"]})
    assert edited == Accepted(item.document_id, 2, fresh=True)
    version = newest(ledger, item)
    assert (version.title, version.url, version.language) == ("T", URL, "ko")
    assert (version.properties, version.sha256) == ({"a": 1, "b": ["c"]}, submission("one").sha256)
    assert version.previous_version == 1
    changed = ("title", "url", "language", "properties.a", "properties.b")
    assert version.edited == changed
    assert ledger.documents.get(item.document_id).live_version == 1  # until it is live as a whole
    events = ledger.events.of_document(item.document_id, after=0)
    (event,) = [e for e in events if e.kind == "document.edited"]
    assert (event.version, event.data) == (2, {"edited": list(changed)})
    assert [n.version for n in ledger.fair_queue.take(10)] == [2]
    ledger.leases.go_live(store_chunks(ledger, edited, ["x"]), ["x"], {})
    assert ledger.versions.provenance({item.document_id: 2}) == {item.document_id: Provenance(URL)}
    assert ledger.versions.provenance({item.document_id: 1}) == {}
    undone = ledger.versions.restore(item.document_id, 1)
    restored = newest(ledger, item)
    assert (restored.version, restored.title, restored.url) == (undone.version, "", "")
    assert (restored.properties, restored.edited) == ({}, None)


def test_an_edit_that_changes_nothing_makes_no_version(ledger: Ledger) -> None:
    item = publish(ledger, "one", ["x"])
    edit(ledger, item, properties={"a": 1, "gone": True})
    for fields in (
        {},
        {"title": ""},
        {"properties": {"a": 1, "missing": None}},
        {"properties": {"a": 1, "gone": True}, "anew": True},
    ):
        assert edit(ledger, item, **fields) == Accepted(item.document_id, 2, fresh=False)
    assert edit(ledger, item, properties={"a": 1.0}).fresh  # JSON has both
    assert edit(ledger, item, anew=True).version == 4
    assert newest(ledger, item).properties == {}


def test_an_edit_continues_an_edit_that_waits(ledger: Ledger) -> None:
    item = publish(ledger, "one", ["x"])
    edit(ledger, item, title="T")
    edit(ledger, item, url=URL)
    version = newest(ledger, item)
    assert (version.version, version.title, version.url) == (3, "T", URL)
    assert version.previous_version == 1
    assert ledger.documents.version(item.document_id, 2).superseded_by == 3


def test_of_two_edits_of_one_state_the_second_is_refused(ledger: Ledger) -> None:
    item = publish(ledger, "one", ["x"])
    tag = ledger.documents.get(item.document_id).etag
    edit(ledger, item, {tag}, title="first")
    with pytest.raises(PreconditionFailed, match="version 2"):
        edit(ledger, item, {tag}, title="second")
    assert newest(ledger, item).title == "first"
    tag = ledger.documents.get(item.document_id).etag
    edit(ledger, item, {"other", tag}, readers=("user:ann",))
    with pytest.raises(PreconditionFailed):  # the readers are a part of the state
        edit(ledger, item, {tag}, title="third")


def test_readers_and_the_rest_of_an_edit_are_one_transaction(ledger: Ledger) -> None:
    item = publish(ledger, "one", ["x"])
    with pytest.raises(InvalidRequest):
        edit(ledger, item, readers=("user:ann",), properties={"title": "x"})
    assert ledger.documents.get(item.document_id).readers is None
    edited = ledger.edits.make(
        item.document_id, Edit(title="T", readers=("user:ann",)), if_match=None
    )
    assert edited.due == ((item.document_id, 1),)
    assert ledger.documents.get(item.document_id).readers == ("user:ann",)
    bob = ledger.for_reader(Reader("bob", frozenset({"user:bob"})))
    with pytest.raises(DocumentNotFound):
        edit(bob, item, title="B")
    assert bob.versions.provenance({item.document_id: 2}) == {}


@pytest.mark.parametrize(
    ("properties", "named"),
    [
        ({"title": "x"}, "'title'"),
        ({"document_id": None}, "'document_id'"),
        ({"callslip:audience": "x"}, "'callslip:audience'"),
        ({"a": {"b": 1}}, "'a'"),
        ({"valid_from": "soon"}, "'valid_from'"),
        ({"valid_to": "2019-01-01"}, "valid_to"),
        ({f"p{n}": n for n in range(64)}, "65 properties"),
        ({"": 1}, "name"),
    ],
)
def test_a_property_that_no_document_may_have_is_refused_by_name(
    ledger: Ledger, properties: dict[str, Any], named: str
) -> None:
    item = publish(ledger, "one", ["x"])
    edit(ledger, item, properties={"valid_from": "2020-01-01"})
    with pytest.raises(InvalidRequest, match=named):
        edit(ledger, item, properties=properties)
    assert newest(ledger, item).version == 2


def test_what_cannot_be_made_anew_cannot_be_edited(ledger: Ledger) -> None:
    item = publish(ledger, "one", ["x"])
    failed = submit(ledger, "two")
    ledger.leases.fail(taken(ledger, failed), BrokenFile("it broke"))
    with pytest.raises(Conflict, match="version 2"):
        edit(ledger, item, title="T")
    empty = ledger.documents.submit("papers", replace(submission("", "b.txt")), "1" * 32)
    with pytest.raises(Conflict, match="adapter"):
        edit(ledger, empty, title="T")
    ledger.documents.delete(item.document_id)
    with pytest.raises(DocumentNotFound):
        edit(ledger, item, title="T")


def test_the_same_content_again_leaves_what_an_edit_set(ledger: Ledger) -> None:
    item = publish(ledger, "one", ["x"])
    edit(ledger, item, title="T", url=URL, language="ko", properties={"valid_from": "2024"})
    by_hand = newest(ledger, item).by_hand
    assert by_hand == ("language", "properties.valid_from", "title", "url")
    assert not resubmit(ledger).fresh
    assert resubmit(ledger, url="").fresh
    assert (newest(ledger, item).url, newest(ledger, item).title) == ("", "T")
    assert newest(ledger, item).by_hand == by_hand[:-1]
    assert resubmit(ledger, "two").fresh
    version = newest(ledger, item)
    assert (version.title, version.language, version.properties, version.by_hand) == (
        "",
        "",
        {},
        (),
    )


def test_what_nobody_states_anew_leaves_what_an_edit_set(ledger: Ledger) -> None:
    """A source sends what it fetched, with properties of its own."""
    item = publish(ledger, "one", ["x"])
    edit(ledger, item, title="T", properties={"topic": "travel", "valid_from": "2024-01-01"})
    fetched: dict[str, Any] = {
        "title": "",
        "url": URL,
        "properties": {"topic": "", "source": URL},
        "keeps_edits": True,
    }
    assert resubmit(ledger, "two", **fetched).fresh
    version = newest(ledger, item)
    assert (version.title, version.url) == ("T", URL)
    assert version.properties == {"topic": "travel", "valid_from": "2024-01-01", "source": URL}
    assert "properties.valid_from" in version.by_hand
    edit(ledger, item, title="", properties={"topic": None})
    assert resubmit(ledger, "three", **fetched).fresh
    assert newest(ledger, item).title == ""
    assert newest(ledger, item).properties["topic"] == ""


def test_a_correction_and_an_edit_keep_what_the_other_one_changed(ledger: Ledger) -> None:
    item = publish(ledger, "one", ["x"])
    edited = edit(ledger, item, title="T", url=URL, properties={"valid_from": "2024-01-01"})
    ledger.leases.go_live(store_chunks(ledger, edited, ["x"]), ["x"], {})
    correction = Correction("0" * 16, 0, "", "1O", "10", "", 0.0)
    ledger.corrections.add(item.document_id, 2, (correction,))
    version = newest(ledger, item)
    assert (version.title, version.url, version.edited) == ("T", URL, None)
    assert version.by_hand == ("properties.valid_from", "title", "url")
    edit(ledger, item, title="U")
    assert [c.replacement for c in newest(ledger, item).corrections] == ["10"]
