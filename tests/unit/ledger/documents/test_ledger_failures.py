"""Dead letters: what failed for good is listed with its reason, and can be tried again."""

import time

import pytest
from ledger_moves import OVER, claim, publish, submit, taken, work

from callslip.errors import BrokenFile, StoreDown
from callslip.stores.ledger import Ledger, Refusal, Which

pytest_plugins = ["ledger_fixtures"]


def broken(ledger: Ledger, name: str) -> str:
    item = submit(ledger, "one", name)
    work(ledger, item, "sectionize")
    ledger.leases.fail(taken(ledger, item, "chunk"), BrokenFile("it broke"))
    return item.document_id


def deadly(ledger: Ledger, name: str) -> str:
    item = submit(ledger, "two", name)
    for _ in range(3):
        taken(ledger, item, lease=OVER)
    assert isinstance(claim(ledger, item), Refusal)
    return item.document_id


def test_a_dead_letter_says_step_reason_and_attempts(ledger: Ledger) -> None:
    publish(ledger, "fine", ["x"])
    killer = deadly(ledger, "killer")
    (letter,) = ledger.failures.find(Which())
    assert (letter.document_id, letter.name, letter.collection) == (killer, "killer", "papers")
    assert (letter.attempts, letter.crashes) == (3, 3)
    assert (letter.failure.type, letter.failure.step) == ("worker-lost", "extract")
    assert letter.live_version is None
    assert letter.failed_at >= letter.submitted_at


def test_they_are_found_by_reason_age_collection_and_id_page_by_page(ledger: Ledger) -> None:
    first, second, killer = broken(ledger, "1"), broken(ledger, "2"), deadly(ledger, "3")
    find = ledger.failures.find

    def ids(which: Which) -> list[str]:
        return [letter.document_id for letter in find(which)]

    assert ids(Which()) == [killer, second, first]
    assert ids(Which(reason="worker-lost")) == [killer]
    assert ids(Which(reason="broken-file", document_ids=[first, killer])) == [first]
    assert ids(Which(collection="papers", tenant="")) == [killer, second, first]
    assert ids(Which(collection="other")) == ids(Which(tenant="other")) == []
    at = find(Which(document_ids=[second]))[0].failed_at
    assert ids(Which(before=at)) == [first]
    assert ids(Which(since=at)) == [killer, second]
    (page,) = find(Which(), limit=1)
    assert [x.document_id for x in find(Which(), after=(page.failed_at, page.document_id))] == [
        second,
        first,
    ]


def test_a_retried_one_goes_on_at_the_step_that_failed(ledger: Ledger) -> None:
    document_id, other = broken(ledger, "1"), deadly(ledger, "2")
    (again,) = ledger.failures.retry(Which(reason="broken-file"))
    assert again.document_id == document_id
    (dispatch,) = ledger.fair_queue.take(10)
    assert (dispatch.document_id, dispatch.step) == (document_id, "chunk")
    found = ledger.documents.get(document_id)
    assert (found.state, found.newest.failure) == ("waiting", None)
    assert [letter.document_id for letter in ledger.failures.find(Which())] == [other]
    assert ledger.failures.retry(Which(document_ids=[document_id])) == []


def test_a_document_that_killed_its_workers_has_all_its_tries_again(ledger: Ledger) -> None:
    document_id = deadly(ledger, "1")
    ledger.failures.retry(Which(document_ids=[document_id]))
    (dispatch,) = ledger.fair_queue.take(10)
    step = ledger.documents.get(document_id).steps[0]
    assert (dispatch.step, step.crashes, step.attempts) == ("extract", 0, 3)


@pytest.mark.parametrize("after", ["replaced", "deleted", "waits"])
def test_what_is_no_longer_failed_is_no_dead_letter(ledger: Ledger, after: str) -> None:
    document_id = broken(ledger, "1")
    if after == "replaced":
        submit(ledger, "new", "1")
    elif after == "deleted":
        ledger.documents.delete(document_id)
    else:
        submit(ledger, "one", "1")
    assert ledger.failures.find(Which()) == []
    assert ledger.failures.retry(Which()) == []


def test_a_transient_error_that_lasts_too_long_is_a_dead_letter(ledger: Ledger) -> None:
    item = submit(ledger, "one", "1")
    ledger.leases.release(taken(ledger, item), StoreDown("no answer"), wait=9, give_up=5)
    (letter,) = ledger.failures.find(Which(since=time.time() - 60))
    assert letter.failure.type == "store-down"
