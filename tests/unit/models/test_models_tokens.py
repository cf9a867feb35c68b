"""The tokenizer: its counts and where it places tokens."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from callslip.models.e5.tokens import Tokenizer, is_blank, well_formed

MEGABYTE = 1_000_000
WORDS = [
    "library",
    "Stacks",
    "출산장려금",
    "신청하는",
    "육아 휴직",
    "2024년",
    "café",
    "漢字",
    "naïve",
    "x",
]
SPACES = [" ", "  ", "\n", "\t", "\u3000", ", "]


@pytest.fixture(scope="module")
def tokenizer(models_dir: Path) -> Tokenizer:
    return Tokenizer(models_dir)


prose = st.lists(st.tuples(st.sampled_from(WORDS), st.sampled_from(SPACES)), max_size=40).map(
    lambda pairs: "".join(word + space for word, space in pairs)
)
any_text = st.text(st.characters(codec="utf-8") | st.characters(categories=["Cs"]), max_size=60)
fast = settings(max_examples=200, deadline=None)


def test_tokens_are_those_of_the_published_model(tokenizer: Tokenizer) -> None:
    # XLM-R's ids for this sentence, which the model shares
    assert tokenizer.ids("Hello world") == [35378, 8999]


def test_blank_text_has_no_tokens(tokenizer: Tokenizer) -> None:
    for text in ("", " ", "\n\t ", "\u200b"):
        assert tokenizer.count(text) == 0
        assert tokenizer.offsets(text) == []


def test_a_run_of_spaces_counts_as_one(tokenizer: Tokenizer) -> None:
    assert tokenizer.ids("  two   words ") == tokenizer.ids("two words ")


def test_a_word_starts_at_the_space_before_it(tokenizer: Tokenizer) -> None:
    assert tokenizer.offsets("Hello   world") == [0, 5]


def test_tokens_of_one_character_share_its_offset(tokenizer: Tokenizer) -> None:
    text = "a \u3231"  # one character that is normalized to three, the first of them a bracket
    assert tokenizer.count(text) > len(text) - 1
    assert max(tokenizer.offsets(text)) < len(text)


def test_a_lone_surrogate_is_a_token_like_another(tokenizer: Tokenizer) -> None:
    assert tokenizer.ids("a \ud800 b") == tokenizer.ids("a ? b")
    assert len(well_formed("\ud800\udfff")) == 2


@pytest.mark.parametrize("text", ["가" * MEGABYTE, "x" * MEGABYTE, "\0\U0001f600" * 500_000])
def test_a_line_of_a_megabyte_is_placed(tokenizer: Tokenizer, text: str) -> None:
    offsets = tokenizer.offsets(text)
    assert len(offsets) == tokenizer.count(text)
    assert offsets[-1] < MEGABYTE


@fast
@given(text=any_text)
def test_there_is_one_offset_for_each_token_and_they_ascend(
    tokenizer: Tokenizer, text: str
) -> None:
    offsets = tokenizer.offsets(text)
    assert len(offsets) == tokenizer.count(text)
    assert offsets == sorted(offsets)
    assert all(0 <= offset < len(text) for offset in offsets)


@fast
@given(text=prose, data=st.data())
def test_a_slice_between_offsets_has_the_tokens_between_them(
    tokenizer: Tokenizer, text: str, data: st.DataObject
) -> None:
    offsets = [*tokenizer.offsets(text), len(text)]
    first = data.draw(st.integers(0, len(offsets) - 1))
    last = data.draw(st.integers(first, len(offsets) - 1))
    assert tokenizer.count(text[offsets[first] : offsets[last]]) <= last - first + 1


@fast
@given(text=prose)
def test_words_have_the_tokens_of_their_text(tokenizer: Tokenizer, text: str) -> None:
    assert sum(map(tokenizer.count, text.split())) >= tokenizer.count(text.strip())


@fast
@given(
    any_text
    | st.text(st.sampled_from(" \t\u200b\u0001\ufeff\u2581\u3000\x85\u2060\ud800"), max_size=4)
)
def test_a_text_is_blank_exactly_where_it_has_no_token(tokenizer: Tokenizer, text: str) -> None:
    assert is_blank(text) == (not tokenizer.ids(text))
