"""The history of a document, and going back in it."""

import pytest
from ledger_moves import claim, publish, store_chunks, submission, submit, taken

from callslip.errors import BrokenFile, Conflict, DocumentNotFound
from callslip.stores.ledger import Accepted, Claim, Edit, Ledger, Refusal
from callslip.stores.ledger.base.corrections import Correction

pytest_plugins = ["ledger_fixtures"]


def history(ledger: Ledger, document_id: str) -> list[tuple[int, str, int | None, int | None]]:
    return [
        (
            v.record.version,
            "live" if v.live else v.record.state,
            v.record.superseded_by,
            v.record.restores,
        )
        for v in ledger.versions.of(document_id)
    ]


def test_the_history_says_what_became_of_each_version(ledger: Ledger) -> None:
    first = publish(ledger, "one", ["x"])
    submit(ledger, "two")
    publish(ledger, "three", ["y"])
    failed = submit(ledger, "four")
    ledger.leases.fail(taken(ledger, failed), BrokenFile("it broke"))
    assert history(ledger, first.document_id) == [
        (4, "failed", None, None),
        (3, "live", None, None),
        (2, "superseded", 3, None),
        (1, "superseded", 3, None),
    ]
    newest, live, *_ = ledger.versions.of(first.document_id)
    assert newest.record.failure is not None
    assert live.counts["upsert"] == {"chunks": 1}
    assert live.record.sha256 == submission("three").sha256
    with pytest.raises(DocumentNotFound):
        ledger.versions.of("nobody's")


def test_the_history_says_how_each_version_was_made(ledger: Ledger) -> None:
    item = publish(ledger, "one", ["x"])
    lengths = {"target_tokens": 43, "max_tokens": 48, "overlap_tokens": 5}
    ledger.versions.cut(item.document_id, 1, lengths)
    submit(ledger, "two")  # follows the lengths of the queued cut
    live = publish(ledger, "three", ["y"])
    made = tuple(Correction(f"{n:016}", n, "", "1O", "10", "", 0.0) for n in range(2))
    ledger.corrections.add(item.document_id, live.version, made)
    edited = ledger.edits.make(item.document_id, Edit(title="New"), if_match=None).accepted
    ledger.versions.restore(item.document_id, 1)
    submit(ledger, "four")
    past = ledger.versions.of(item.document_id)
    assert [(v.record.version, v.origin, v.corrections_added) for v in past] == [
        (8, "submitted", 0),
        (7, "restored", 0),
        (edited.version, "edited", 0),
        (5, "corrected", 2),
        (4, "submitted", 0),
        (3, "submitted", 0),
        (2, "cut", 0),
        (1, "submitted", 0),
    ]
    assert [v.record.chunking for v in past] == [None, None, *[lengths] * 5, None]


def test_only_the_newest_version_is_cut_while_it_is_live(ledger: Ledger) -> None:
    item = publish(ledger, "one", ["x"])
    lengths = {"target_tokens": 43, "max_tokens": 48, "overlap_tokens": 5}
    ledger.versions.cut(item.document_id, 1, lengths)
    with pytest.raises(Conflict, match="version 1 is not the newest one, which is version 2"):
        ledger.versions.cut(item.document_id, 1, lengths)
    with pytest.raises(Conflict, match="version 2 is not live"):
        ledger.versions.cut(item.document_id, 2, lengths)


def test_a_version_that_is_brought_back_is_a_new_one_with_the_old_content(ledger: Ledger) -> None:
    item = publish(ledger, "one", ["x"])
    publish(ledger, "two", ["y"])
    back = ledger.versions.restore(item.document_id, 1)
    assert back == Accepted(item.document_id, 3, fresh=True)
    record = ledger.documents.version(item.document_id, 3)
    assert (record.state, record.sha256) == ("queued", submission("one").sha256)
    assert (record.previous_version, record.restores) == (1, 1)
    assert set(ledger.chunks.visible(["x", "y"])) == {"y"}
    ledger.chunks.forget(item.document_id, ledger.chunks.end(item.document_id))
    assert [n.version for n in ledger.fair_queue.take(10)] == [3]
    ledger.leases.go_live(store_chunks(ledger, back, ["x"]), ["x"], {})
    assert set(ledger.chunks.visible(["x", "y"])) == {"x"}
    assert history(ledger, item.document_id) == [
        (3, "live", None, 1),
        (2, "superseded", 3, None),
        (1, "superseded", 2, None),
    ]


def test_going_back_stops_what_is_on_its_way(ledger: Ledger) -> None:
    item = publish(ledger, "one", ["x"])
    second = submit(ledger, "two")
    taken(ledger, second)
    back = ledger.versions.restore(item.document_id, 1)
    assert (back.version, back.fresh) == (3, True)
    assert ledger.documents.version(item.document_id, 2).superseded_by == 3
    assert isinstance(claim(ledger, second), Refusal)
    assert isinstance(claim(ledger, back), Claim)


def test_the_live_version_needs_no_going_back_to(ledger: Ledger) -> None:
    item = publish(ledger, "one", ["x"])
    assert not ledger.versions.restore(item.document_id, 1).fresh


def test_a_version_that_failed_or_never_was_is_not_brought_back(ledger: Ledger) -> None:
    item = publish(ledger, "one", ["x"])
    failed = submit(ledger, "two")
    ledger.leases.fail(taken(ledger, failed), BrokenFile("it broke"))
    with pytest.raises(Conflict):
        ledger.versions.restore(item.document_id, 2)
    with pytest.raises(DocumentNotFound) as absent:
        ledger.versions.restore(item.document_id, 9)
    assert "callslip versions" in absent.value.advice
    ledger.documents.delete(item.document_id)
    with pytest.raises(DocumentNotFound):
        ledger.versions.restore(item.document_id, 1)
    with pytest.raises(DocumentNotFound) as unknown:
        ledger.documents.get("f389")
    assert "callslip status" in unknown.value.advice


def test_a_version_remembers_which_one_was_live_when_it_came(ledger: Ledger) -> None:
    item = publish(ledger, "one", ["x"])
    assert ledger.documents.version(item.document_id, 1).previous_version is None
    submit(ledger, "two")
    third = submit(ledger, "three")
    assert ledger.documents.version(item.document_id, third.version).previous_version == 1
