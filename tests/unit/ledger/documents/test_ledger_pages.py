"""The pages of each version in the ledger."""

import uuid
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ledger_moves import submission, taken, work
from sqlalchemy import update

from callslip.readers import Reader
from callslip.stores.ledger import Accepted, Ledger, PageTable
from callslip.stores.ledger.base import schema

pytest_plugins = ["ledger_fixtures"]

TABLE = PageTable("page", (0, 10, 10, 25), ("i", "ii", "", "1"))


def live(ledger: Ledger, name: str, content: str, pages: PageTable | None) -> Accepted:
    item = ledger.documents.submit("papers", submission(content, name), uuid.uuid4().hex)
    work(ledger, item)
    upsert = taken(ledger, item, "upsert")
    ids = [f"{item.document_id}-{item.version}"]
    ledger.chunks.expect(upsert, dict.fromkeys(ids, ""), pages=pages)
    ledger.leases.go_live(upsert, ids, {})
    return item


@pytest.mark.parametrize(
    ("start", "end", "first", "last", "labels"),
    [
        (0, 5, 1, 1, ("i", "i")),
        (9, 10, 1, 1, ("i", "i")),
        (10, 25, 3, 3, ("3", "3")),
        (5, 26, 1, 4, ("i", "1")),
        (30, 30, 4, 4, ("1", "1")),
    ],
)
def test_a_span_has_its_first_and_its_last_page(
    start: int, end: int, first: int, last: int, labels: Sequence[str]
) -> None:
    assert TABLE.of(start, end) == ("page", first, last, labels)


@given(
    st.lists(st.integers(1, 50), min_size=1, max_size=20), st.integers(0, 999), st.integers(1, 99)
)
def test_the_pages_of_a_span_hold_its_ends(lengths: list[int], start: int, length: int) -> None:
    starts = [sum(lengths[:n]) for n in range(len(lengths))]
    pages = PageTable("slide", tuple(starts)).of(start, start + length)
    assert pages is not None
    assert starts[pages.first - 1] <= start
    assert starts[pages.last - 1] < start + length
    assert pages.first == len(starts) or start < starts[pages.first]


def test_a_text_without_pages_has_none() -> None:
    assert PageTable("page", ()).of(0, 10) is None


def test_each_version_has_its_pages(ledger: Ledger) -> None:
    item = live(ledger, "a.pdf", "one", TABLE)
    none = live(ledger, "b.txt", "one", None)
    assert ledger.pages.of({item.document_id: 1, none.document_id: 1}) == {item.document_id: TABLE}
    live(ledger, "a.pdf", "two", PageTable("page", (0,)))
    assert ledger.pages.of({item.document_id: 1}) == {item.document_id: TABLE}
    assert ledger.pages.of({item.document_id: 2})[item.document_id].starts == (0,)
    assert ledger.pages.of({}) == {}


def test_a_reader_gets_the_pages_of_what_it_may_read(ledger: Ledger) -> None:
    item = live(ledger, "a.pdf", "one", TABLE)
    ledger.readers.set(item.document_id, ("user:kim",))
    versions = {item.document_id: 1}
    assert ledger.for_reader(Reader("kim", frozenset({"user:kim"}))).pages.of(versions)
    assert ledger.for_reader(Reader("lee", frozenset({"user:lee"}))).pages.of(versions) == {}


@pytest.mark.parametrize("name", ["a.PDF", "a.pptx", "a.txt"])
def test_what_was_ingested_before_pages_were_kept_gets_them_when_it_is_sent_again(
    ledger: Ledger, name: str
) -> None:
    item = live(ledger, name, "one", TABLE)
    again = submission("one", name)
    assert not ledger.documents.submit("papers", again, "new").fresh
    with ledger._database.writing() as connection:
        connection.execute(update(schema.versions).values(pages=None))
    made = ledger.documents.submit("papers", again, "new")
    assert (made.document_id, made.fresh) == (item.document_id, not name.endswith("txt"))
    assert not ledger.documents.submit("papers", again, "new").fresh
