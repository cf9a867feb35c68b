"""`VectorSearch` and FAQ over every store."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from faq_parts import ROWS, ingest, row
from genie_parts import adapter_context_of

from callslip.compat.context import AdapterContext
from callslip.compat.faq import VectorSearch, entries
from callslip.compat.faq.collections import siblings
from callslip.compat.faq.entries import Counts
from callslip.stores.blobs import Blobs
from callslip.stores.contract import Store
from callslip.stores.ledger import Ledger

pytest_plugins = ["store_fixtures"]

HALF = 0.707107


@pytest.fixture
def context(store: Store, tmp_path: Path) -> Iterator[AdapterContext]:
    with closing(Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")) as ledger:
        ledger.create()
        yield adapter_context_of(ledger, store, Blobs(str(tmp_path / "blobs")))[0]


@pytest.fixture
def faq(context: AdapterContext, store: Store) -> Iterator[str]:
    name = f"f{id(context)}"
    yield name
    for record, _ in context.ledger.collections.all():
        store.drop_collection(record.name)


@pytest.mark.long
def test_unit_vectors_score_their_cosine(context: AdapterContext, faq: str) -> None:
    ingest(context, faq)
    questions, answers = f"{faq}__question", f"{faq}__answer"
    search = VectorSearch([questions, answers], context=context)
    found = search.search("0 what", top_k=4, threshold=-1)
    assert list(found) == [questions, answers]
    output = [[(h["id"], h["similarity"], h["distance"]) for h in hits] for hits in found.values()]
    assert output == [
        [
            ("faq_1", 1.0, 0.0),
            ("faq_2", HALF, 0.292893),
            ("faq_3", 0.0, 1.0),
            ("faq_four", -1.0, 2.0),
        ],
        [
            ("faq_2", 1.0, 0.0),
            ("faq_four", HALF, 0.292893),
            ("faq_1", 0.0, 1.0),
            ("faq_3", -1.0, 2.0),
        ],
    ]
    assert found[answers][1] == {
        "id": "faq_four",
        "text": "45 half",
        "metadata": {"question": "180 against", "answer": "45 half", "id": "four"},
        "distance": 0.292893,
        "similarity": HALF,
        "collection_name": answers,
    }


@pytest.mark.long
def test_what_changed_is_written_and_what_left_is_removed(
    context: AdapterContext, faq: str
) -> None:
    both = f"{faq}__question_answer"
    assert ingest(context, faq)["question_answer"] == Counts(new=4)
    assert ingest(context, faq)["question_answer"] == Counts(unchanged=4)
    changed = [row(1, "0 same", "90 otherwise"), *ROWS[1:3]]
    output = ingest(context, faq, [*changed, row("five", "7 new", "8 new")])
    assert output["question"] == output["question_answer"] == Counts(1, 1, 2)
    record = siblings(context, faq)["question_answer"]
    assert entries.ids(context, record) == [1, 2, 3, "five", "four"]
    assert entries.remove(context, record, ["four", "nobody"]) == 1
    search = VectorSearch(both, context=context)
    assert [(d["id"], d["text"]) for d in search.get_all_documents()] == [
        ("faq_1", "0 same\n\n90 otherwise"),
        ("faq_2", "45 half\n\n0 same"),
        ("faq_3", "90 across\n\n180 against"),
        ("faq_five", "7 new\n\n8 new"),
    ]
    (hits,) = search.search("0 what", top_k=9, threshold=-1).values()
    assert [hit["id"] for hit in hits] == ["faq_1", "faq_five", "faq_2", "faq_3"]


@pytest.mark.long
def test_long_texts_hostile_ones_and_korean_are_given_back_as_they_were(
    context: AdapterContext, faq: str
) -> None:
    rows = [
        row("1", "30 " + "여권은 어디서 만드나요? " * 600, "<b>'; DROP TABLE faq; --</b>\t\r\n"),
        row("2024-03-01", "60 질문", "2024-03-01"),
    ]
    ingest(context, faq, rows)
    documents = VectorSearch(f"{faq}__answer", context=context).get_all_documents()
    assert [d["metadata"] for d in documents] == [dict(r.metadata) for r in rows]
    assert [d["text"] for d in documents] == [r.answer for r in rows]


def test_missing_collections_are_made_and_are_empty(context: AdapterContext, faq: str) -> None:
    made = VectorSearch([faq, f"{faq}.b"], context=context)
    assert made.search("0 what") == {faq: [], f"{faq}.b": []}
    assert made.search_merged("0 what") == []
    assert made.get_all_documents() == []
