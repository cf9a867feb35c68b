"""Cutting as the Document Retriever cuts: numbers, order, and nothing lost."""

import string
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from callslip.compat.annotator.chunks import MOST_WORDS, chunks, cut, lines
from callslip.compat.annotator.words import words

WORDS = st.text(string.ascii_letters + "가나.!?-'", min_size=1, max_size=6)
SPACES = st.sampled_from([" ", " ", " ", "  ", "\t", "\n", "\n", "\n\n", "\r\n", ". ", "\u2003"])
LINES = st.lists(st.tuples(WORDS, st.integers(1, 90)), max_size=30).map(
    lambda parts: "\n".join(" ".join([word] * times) for word, times in parts)
)
"""Texts whose lines have up to 90 words each."""

TEXTS = st.one_of(
    LINES,
    st.lists(st.tuples(WORDS, SPACES), max_size=600).map(
        lambda parts: "".join(word + space for word, space in parts)
    ),
    st.text(max_size=300),
    st.tuples(WORDS, st.integers(0, 700)).map(lambda part: f"{part[0]} " * part[1]),
    st.integers(0, 60).map(lambda times: "Roses have thorns, and the prince knows why. " * times),
)


def read_by_the_skill(text: str) -> list[list[str]]:
    """The words of each chunk by the rule of `common/build_dataset.py`, which the skill goes by."""
    found, kept = [], ""
    for line in text.split("\n"):
        longer = f"{kept} {line}"
        if len(longer.strip().split(" ")) > MOST_WORDS:
            found.append(kept)
            kept = line
        else:
            kept = longer
    return [chunk.split() for chunk in (*found, kept)]


@pytest.mark.long
@given(st.lists(TEXTS, max_size=4))
@example([""])
@example(["", "one", "", "two"])
@example(["x" * 10_000])
@example(["- " * 400])
@example(["\n" * 1000 + "a" + "\n" * 1000 + "b"])
def test_every_word_is_in_one_chunk_in_its_order_and_numbers_go_on(texts: list[str]) -> None:
    documents = [(f"id{i}", text) for i, text in enumerate(texts)]
    found = list(chunks(documents))
    assert [chunk.name for chunk in found] == [f"{i + 1}.txt" for i in range(len(found))]
    assert all(chunk.text.strip() for chunk in found)
    assert max((len(chunk.text.split()) for chunk in found), default=0) <= MOST_WORDS
    assert [chunk.file_id for chunk in found] == sorted(chunk.file_id for chunk in found)
    for file_id, text in documents:
        whole = " ".join(chunk.text for chunk in found if chunk.file_id == file_id)
        assert whole.split() == text.split()


@given(LINES)
def test_lines_stay_whole_and_a_chunk_takes_all_that_fit(text: str) -> None:
    found = [chunk.split("\n") for chunk in cut(text)]
    assert [line for chunk in found for line in chunk] == [x for x in text.split("\n") if x]
    for chunk, after in pairwise(found):
        assert len(" ".join([*chunk, after[0]]).split()) > MOST_WORDS


@given(st.lists(st.sampled_from(["a b c", "d " * 60, "e", "", " ", "  f  g "]), min_size=1))
def test_the_skill_that_cuts_the_same_text_finds_the_same_chunks(found: list[str]) -> None:
    text = "\n".join([*found, "end"])
    assert [chunk.split() for chunk in cut(text)] == read_by_the_skill(text)


@given(TEXTS.filter(str.strip))
def test_what_the_processor_writes_is_cut_by_the_skill_alike(text: str) -> None:
    written = "\n".join(["***FILENAME: x***", *lines(text)]).replace("\t", " ")
    assert [chunk.split() for chunk in cut(written)] == read_by_the_skill(written)


def test_a_line_too_long_is_cut_where_a_sentence_ends() -> None:
    sentence = "Roses have thorns, and the prince knows why."
    found = list(cut("A heading\n" + f"{sentence} " * 40 + "\nThe end"))
    assert found[0] == "A heading"
    assert [chunk.endswith(("why.", "end", "heading")) for chunk in found] == [True] * len(found)
    assert len(found) == 4


def test_words_are_counted_without_stop_words_and_korean_without_particles() -> None:
    plain = words("The boy's DRAWINGS aren't what I'd draw", stop_words=True, stems=False)
    assert plain == "boy drawings draw"
    assert words("The drawings", stop_words=False, stems=True) == "the draw"
    request = words("출산 장려금은 얼마인가요?", stop_words=True, stems=False).split()
    assert "장려" in request
    assert "장려" in words("출산장려금을 지급한다", stop_words=True, stems=False).split()
