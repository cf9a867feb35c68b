"""Extracts: which sentences of passages answer a question, word for word."""

from typing import Any

import numpy as np
import pytest
from agent_parts import ANALYZER, Remembering
from hypothesis import given
from hypothesis import strategies as st

from callslip.errors import EmbedderDown
from models.lexical import LexicalEmbedder
from retrieval.background import NOTHING
from retrieval.extracts import Asked, extracts, nearest
from retrieval.messages import Hit, Legs, Span
from retrieval.sufficiency import weighed

pytest_plugins = ["agent_fixtures"]

OFFSET = 100
"""Where the passages of these tests begin in their documents."""


def hit(text: str, chunk_id: str = "c", **more: Any) -> Hit:
    given: dict[str, Any] = {
        **{"rank": 1, "score": 1.0, "chunk_id": chunk_id, "document_id": "d", "text": text},
        **{"title": "", "filename": "a.txt", "section": "", "heading": "", "lang": "en"},
        "span": Span(start=OFFSET, end=OFFSET + len(text)),
        "legs": Legs(vector=None, keyword=None),
        **{"properties": {}, "level": 2, "parent_id": None, "parent_of": None, "vector": None},
    }
    return Hit(**given | more)


def said(question: str, *hits: Hit, most: int = 1, embedder: Any = None) -> list[str]:
    vector = embedder.query(question) if embedder else None
    asked = Asked(weighed(NOTHING, ANALYZER.analyze(question)), vector)
    found = extracts(hits, asked, ANALYZER, embedder or LexicalEmbedder(), most)
    for each in found:
        start = each.span.start - OFFSET
        assert each.hit.text[start : each.span.end - OFFSET] == each.text
    return [each.text for each in found]


@pytest.mark.parametrize(
    ("question", "text", "answer"),
    [
        (
            "How long is parental leave?",
            "How long is parental leave?\nParents may be away for 20 weeks.",
            "Parents may be away for 20 weeks.",
        ),
        (
            "How long is parental leave?",
            "Q: How long is parental leave?\nA: 20 weeks.",
            "A: 20 weeks.",
        ),
        ("Is lunch free?", "Is lunch free? 6 euros.\nDinner is served at seven.", "6 euros."),
        ("Is lunch free?", "Is lunch free?\nYes.\nThe town pays for it.", "The town pays for it."),
        (
            "육아휴직 기간은 얼마인가요?",
            "육아휴직 기간은 얼마인가요?\n자녀 1명당 1년 이내입니다.\n신청은 30일 전에 합니다.",
            "자녀 1명당 1년 이내입니다.",
        ),
        (
            "scope of leave",
            "1. Scope of leave\nThis holds for all staff.",
            "This holds for all staff.",
        ),
        (
            "scope of leave",
            "1.2 Scope of leave\nThis holds for all staff.",
            "This holds for all staff.",
        ),
        (
            "목적",
            "1. 목적과 적용 범위\n이 규정은 모든 직원에게 적용한다.",
            "이 규정은 모든 직원에게 적용한다.",
        ),
        (
            "Which office gets the form?",
            "1. Fill in the form\n2. Send the form to the office\n3. Wait for a letter",
            "2. Send the form to the office",
        ),
        ("What does lunch cost?", "3.5 euros per lunch and guest", "3.5 euros per lunch and guest"),
        ("How many days of leave?", "20 days of leave a year", "20 days of leave a year"),
    ],
)
def test_headings_and_questions_are_no_answers(question: str, text: str, answer: str) -> None:
    assert said(question, hit(text)) == [answer]


@pytest.mark.parametrize("where", ["heading", "title", "section"])
def test_a_heading_that_the_passage_begins_with_is_no_answer(where: str) -> None:
    passage = hit("## Parental leave\nIt lasts 20 weeks.", **{where: "Parental Leave"})
    assert said("parental leave", passage, most=2) == ["It lasts 20 weeks."]


@pytest.mark.parametrize("text", ["", " \n ", "---", "Is it paid?", "1. Scope", "Is it? Was it?"])
def test_what_has_no_statement_answers_nothing(text: str) -> None:
    assert said("Is it paid?", hit(text)) == []


def test_a_passage_of_one_word_is_that_word() -> None:
    assert said("Which city?", hit("Seoul")) == ["Seoul"]
    assert said("Which city?", hit("Seoul"), hit("The city is Seoul.", "d")) == [
        "The city is Seoul."
    ]
    assert said("?", hit("Seoul")) == ["Seoul"]
    assert said("Which city?") == []


def test_the_sentence_that_means_most_wins(meaning: Remembering) -> None:
    passage = hit("Staff must wear a badge. Newborns give mothers and fathers 20 weeks off work.")
    assert said("How long is parental leave?", passage, embedder=meaning) == [
        "Newborns give mothers and fathers 20 weeks off work."
    ]


def test_an_embedder_that_is_down_leaves_the_words() -> None:
    class Down:
        def query(self, text: str) -> Any:
            return np.ones(2, np.float32)

        def passages(self, texts: Any) -> Any:
            raise EmbedderDown("it is down")

    passage = hit("The canteen is new. Leave lasts 20 weeks.")
    assert said("How long is leave?", passage, embedder=Down()) == ["Leave lasts 20 weeks."]


def test_the_nearest_sentence_is_found_by_its_words() -> None:
    passage = hit("Leave is paid. It lasts 20 weeks. Ask the office.")
    span = nearest("The leave lasts for 20 weeks", passage, ANALYZER)
    assert passage.text[span.start - OFFSET : span.end - OFFSET] == "It lasts 20 weeks."
    assert nearest("…", passage, ANALYZER) == passage.span


@given(
    st.lists(
        st.sampled_from(["Lunch", "costs", "6.", "?", "\n", "1. ", "Yes.", "# ", "육아", "!"])
    ),
    st.integers(1, 4),
)
def test_extracts_are_of_the_passage_and_no_more_than_asked_for(
    words: list[str], most: int
) -> None:
    passage = hit(" ".join(words))
    found = said("What does lunch cost?", passage, most=most)
    assert len(found) <= most
    assert not any(text.endswith("?") for text in found)
