"""Which chunks may be seen, over the versions of a document and its end."""

import pytest
from ledger_moves import OVER, publish, store_chunks, submission, submit, taken, work

from callslip.errors import BrokenFile, LeaseLost, TransientError
from callslip.stores.ledger import Accepted, Ledger

pytest_plugins = ["ledger_fixtures"]


def seen(ledger: Ledger) -> str:
    """The chunks that may be seen, in order, in one word."""
    return "".join(sorted(ledger.chunks.visible(list("abcdexyz"))))


def prune(ledger: Ledger, item: Accepted) -> str:
    """What maintenance does; returns the chunks that left the store."""
    ended = ledger.chunks.end(item.document_id)
    ledger.chunks.forget(item.document_id, ended)
    return "".join(sorted(ended))


def test_chunks_are_seen_exactly_when_their_version_goes_live(ledger: Ledger) -> None:
    item = submit(ledger)
    held = store_chunks(ledger, item, "ab")
    assert seen(ledger) == ""
    ledger.leases.go_live(held, list("ab"), {})
    assert ledger.chunks.visible(["b", "a", "nobody's"]) == {
        "a": item.document_id,
        "b": item.document_id,
    }
    assert ledger.chunks.live_ids(item.document_id) == {"a", "b"}


def test_a_new_version_hides_what_it_lacks_and_shows_what_it_brings_at_once(
    ledger: Ledger,
) -> None:
    publish(ledger, "one", "ab")
    second = store_chunks(ledger, submit(ledger, "two"), "bc")
    assert seen(ledger) == "ab"
    ledger.leases.go_live(second, list("bc"), {})
    assert seen(ledger) == "bc"


def test_a_chunk_that_left_comes_back_whether_or_not_it_was_pruned(ledger: Ledger) -> None:
    for version, (ids, pruned) in enumerate(
        [("ab", ""), ("b", "a"), ("ab", ""), ("a", None), ("b", "a"), ("ab", "")], 1
    ):
        item = publish(ledger, f"content {version}", ids)
        assert item.version == version
        assert seen(ledger) == ids
        if pruned is not None:
            assert prune(ledger, item) == pruned
            assert seen(ledger) == ids
    assert ledger.sweep.unpruned() == []


def test_a_document_whose_old_ranges_are_over_is_not_pruned_for_ever(ledger: Ledger) -> None:
    publish(ledger, "one", "ab")
    publish(ledger, "two", "b")
    item = publish(ledger, "three", "ab")
    assert ledger.sweep.unpruned() == [item.document_id]
    assert prune(ledger, item) == ""
    assert ledger.sweep.unpruned() == []
    assert seen(ledger) == "ab"


def test_chunks_of_versions_that_never_went_live_are_never_seen_and_go(ledger: Ledger) -> None:
    publish(ledger, "one", "a")
    superseded = store_chunks(ledger, submit(ledger, "two"), "ax")
    third = submit(ledger, "three")
    ledger.leases.drop(superseded)
    failed = store_chunks(ledger, third, "ay")
    ledger.leases.fail(failed, BrokenFile("it broke"))
    assert seen(ledger) == "a"
    item = publish(ledger, "four", "ayz")
    assert seen(ledger) == "ayz"
    assert prune(ledger, item) == "x"


def test_a_late_worker_cannot_make_its_chunks_seen_in_the_version_that_is_live(
    ledger: Ledger,
) -> None:
    old = submit(ledger, "one")
    work(ledger, old)
    late = taken(ledger, old, "upsert", lease=OVER)
    publish(ledger, "two", "b")
    with pytest.raises(LeaseLost):
        ledger.chunks.expect(late, {"x": "hash"})
    assert seen(ledger) == "b"


def test_a_try_after_a_crash_expects_the_same_chunks_again(ledger: Ledger) -> None:
    item = submit(ledger)
    work(ledger, item)
    for lease in (OVER, 60.0):
        held = taken(ledger, item, "upsert", lease=lease)
        ledger.chunks.expect(held, {"a": "hash", "b": "hash"})
    ledger.leases.go_live(held, ["a", "b"], {})
    assert seen(ledger) == "ab"


def test_a_chunk_that_is_leaving_the_store_is_waited_for_before_it_comes_back(
    ledger: Ledger,
) -> None:
    publish(ledger, "one", "ab")
    item = publish(ledger, "two", "b")
    third = submit(ledger, "three")
    work(ledger, third)
    held = taken(ledger, third, "upsert")
    leaving = ledger.chunks.end(item.document_id)
    assert leaving == {"a"}
    with pytest.raises(TransientError):
        ledger.chunks.expect(held, {"a": "hash", "b": "hash"})
    ledger.chunks.expect(held, {"b": "hash"})
    ledger.chunks.forget(item.document_id, leaving)
    ledger.chunks.expect(held, {"a": "hash", "b": "hash"})
    ledger.leases.go_live(held, ["a", "b"], {})
    assert seen(ledger) == "ab"


def test_a_chunk_that_a_new_version_expects_already_does_not_leave(ledger: Ledger) -> None:
    publish(ledger, "one", "ab")
    item = publish(ledger, "two", "b")
    held = store_chunks(ledger, submit(ledger, "three"), "ab")
    assert ledger.chunks.end(item.document_id) == set()
    ledger.chunks.forget(item.document_id, ["a", "b"])
    ledger.leases.go_live(held, ["a", "b"], {})
    assert seen(ledger) == "ab"


def test_pruning_that_was_cut_short_is_found_again(ledger: Ledger) -> None:
    publish(ledger, "one", "ab")
    item = publish(ledger, "two", "b")
    assert ledger.chunks.end(item.document_id) == {"a"}
    assert ledger.sweep.unpruned() == [item.document_id]
    assert prune(ledger, item) == "a"
    assert ledger.sweep.unpruned() == []


def test_a_deleted_document_is_hidden_at_once_and_forgotten_after(ledger: Ledger) -> None:
    item = publish(ledger, "one", "ab")
    ledger.documents.delete(item.document_id)
    assert seen(ledger) == ""
    assert ledger.chunks.end(item.document_id) == set()
    ledger.chunks.forget(item.document_id)
    ledger.documents.removed(item.document_id, {"before": {"vector": 2}, "after": {"vector": 0}})
    found = ledger.documents.get(item.document_id)
    assert found.removed_at is not None
    assert found.receipt == {"before": {"vector": 2}, "after": {"vector": 0}}


def test_the_chunks_of_other_documents_stay(ledger: Ledger) -> None:
    item = publish(ledger, "one", "ab")
    other = ledger.documents.submit("papers", submission("one", "b.txt"), "f" * 32)
    ledger.leases.go_live(store_chunks(ledger, other, "xy"), list("xy"), {})
    ledger.documents.delete(item.document_id)
    ledger.chunks.forget(item.document_id)
    assert seen(ledger) == "xy"


def test_thousands_of_chunks_are_kept_found_and_pruned(ledger: Ledger) -> None:
    many = [f"chunk {n}" for n in range(2500)]
    publish(ledger, "one", many)
    item = publish(ledger, "two", many[2000:])
    assert set(ledger.chunks.visible(many)) == set(many[2000:])
    ended = ledger.chunks.end(item.document_id)
    ledger.chunks.forget(item.document_id, ended)
    assert ended == set(many[:2000])
    assert ledger.chunks.live_ids(item.document_id) == set(many[2000:])


def test_a_chunk_that_moves_in_the_text_moves_when_its_version_goes_live(ledger: Ledger) -> None:
    first = submit(ledger)
    work(ledger, first)
    held = taken(ledger, first, "upsert")
    ledger.chunks.expect(held, {"a": "h", "b": "h"}, {"a": (0, 5), "b": (6, 9)})
    ledger.leases.go_live(held, ["a", "b"], {})
    second = submit(ledger, "two")
    work(ledger, second)
    held = taken(ledger, second, "upsert")
    moved = {"a": (0, 5), "b": (16, 19), "c": (6, 15)}
    ledger.chunks.expect(held, dict.fromkeys("abc", "h"), moved)
    ledger.chunks.expect(held, dict.fromkeys("abc", "h"), moved | {"c": (6, 14)})
    ledger.chunks.expect(held, dict.fromkeys("abc", "h"))
    assert {i: s.span for i, s in ledger.chunks.seen("abc").items()} == {"a": (0, 5), "b": (6, 9)}
    third = submit(ledger, "three")  # the second never goes live
    ledger.leases.drop(held)
    work(ledger, third)
    held = taken(ledger, third, "upsert")
    ledger.chunks.expect(held, dict.fromkeys("ab", "h"), {"a": (3, 8), "b": (16, 19)})
    ledger.leases.go_live(held, ["a", "b"], {})
    assert {i: s.span for i, s in ledger.chunks.seen("abc").items()} == {"a": (3, 8), "b": (16, 19)}
    assert ledger.chunks.end(first.document_id) == {"c"}
    ledger.chunks.forget(first.document_id, {"c"})
    assert ledger.chunks.live_ids(first.document_id) == {"a", "b"}
    assert ledger.sweep.unpruned() == []
