"""The recognizer of names finds what spaCy's own finds."""

from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.quality.entities import read
from callslip.models.entities.english import pipeline
from callslip.models.entities.tagger import BATCH, Tagger

PIECES = (
    *("the University of", "Bob", "\n\n", " ", "U.S.", "can't", "in", "1", "May", "2020", "🙂"),
    *("International Business Machines Corporation", "Kim", "and", ",", "DPC", "서울", "Act"),
)


@cache
def spacy() -> Any:
    return pipeline()


@cache
def tagger() -> Tagger:
    return Tagger(pipeline())


def assert_same(texts: list[str]) -> None:
    found = [[(n.label, n.start, n.end) for n in names] for names in tagger().find(texts)]
    assert found == [
        [(span.label_, span.start_char, span.end_char) for span in document.ents]
        for document in spacy().pipe(texts)
    ]


@pytest.mark.long
def test_the_names_of_real_passages_are_those_of_spacy() -> None:
    texts = [passage.text for lang in ("en", "ko") for passage in read(lang)]
    assert len(texts) > BATCH
    assert_same(texts)


def test_texts_without_a_token_have_no_names() -> None:
    assert_same([""])
    assert_same(["", "in Paris", "", "Rome", ""])


@settings(max_examples=40, deadline=None)
@given(st.lists(st.lists(st.sampled_from(PIECES), max_size=12).map(" ".join), max_size=4))
def test_the_names_of_any_texts_are_those_of_spacy(texts: list[str]) -> None:
    assert_same(texts)
