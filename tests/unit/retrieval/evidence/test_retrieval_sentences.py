"""Sentences of a passage: where they begin and end, and that nothing that is said is lost."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callslip.retrieval.evidence.sentences import reflow, sentences

LONG = "The rooms on the upper floor are open to every reader who has a card"


def reply(text: str) -> list[str]:
    return [text[start:end] for start, end in sentences(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (" \n\t ", []),
        ("---\n***", []),
        ("Lunch", ["Lunch"]),
        ("Leave is paid. It lasts 20 weeks.", ["Leave is paid.", "It lasts 20 weeks."]),
        ("Is it paid? Yes! For 20 weeks…", ["Is it paid?", "Yes!", "For 20 weeks…"]),
        ('He said "no." Then he left.', ['He said "no."', "Then he left."]),
        ("Paid (in full.) Then more.", ["Paid (in full.)", "Then more."]),
        ("휴가는 20일이다. 신청은 30일 전에 한다.", ["휴가는 20일이다.", "신청은 30일 전에 한다."]),
        ("언제까지인가요? 3월까지입니다.", ["언제까지인가요?", "3월까지입니다."]),
        ("이 법은 2020. 3. 31. 시행한다. 끝.", ["이 법은 2020. 3. 31. 시행한다.", "끝."]),
        ("시행일은 2024. 1. 1.이다. 끝.", ["시행일은 2024. 1. 1.이다.", "끝."]),
        ("개정 2019. 12. 31.\n제2조 목적", ["개정 2019. 12. 31.", "제2조 목적"]),
        ("Ask Dr. Kim or Ms. Lee. Then wait.", ["Ask Dr. Kim or Ms. Lee.", "Then wait."]),
        ("Tools, e.g. saws, cost more. Ask.", ["Tools, e.g. saws, cost more.", "Ask."]),
        ("It is at 5 p.m. on Mon. or so. Go.", ["It is at 5 p.m. on Mon.", "or so.", "Go."]),
        ("U.S. law, Art. 5 and No. 7. End.", ["U.S. law, Art. 5 and No. 7.", "End."]),
        ("One space, no. 12, is ours. End.", ["One space, no. 12, is ours.", "End."]),
        ("The answer is no. Guests pay.", ["The answer is no.", "Guests pay."]),
        ("The limit is 30. Guests pay 9.", ["The limit is 30.", "Guests pay 9."]),
        ("It costs 3.5 euros. Or 4.", ["It costs 3.5 euros.", "Or 4."]),
        ("Section 3. Scope of this. More.", ["Section 3. Scope of this.", "More."]),
        ("1. Fill in the form\n2. Send it", ["1. Fill in the form", "2. Send it"]),
        ("- one\n* two\n• three\n– four", ["one", "two", "three", "four"]),
        ("# Leave\n\nIt is paid.", ["Leave", "It is paid."]),
        ("> quoted text", ["quoted text"]),
        ("**①** 장관은 정한다.", ["**①** 장관은 정한다."]),
        ("**31.** (1) The age is 18.", ["**31.** (1) The age is 18."]),
        ("* **Fee:** 9\n- *none*", ["**Fee:** 9", "*none*"]),
        ("**It is paid. It lasts.** Go.", ["It is paid.", "It lasts.** Go."]),
        ("-5 degrees is cold.", ["-5 degrees is cold."]),
        ("| day | -5 |\n| night | 6 |", ["day | -5 |", "night | 6 |"]),
        ("meal | price\nlunch | 6", ["meal | price", "lunch | 6"]),
        (f"{LONG}.\nNext.", [f"{LONG}.", "Next."]),
        (f"{LONG}\nand a bag.", [f"{LONG}\nand a bag."]),
        (f"{LONG}\n- and a bag", [LONG, "and a bag"]),
        (f"{LONG} | 6\nlunch | 7", [f"{LONG} | 6", "lunch | 7"]),
        (f"meal | {LONG}\nlunch | {LONG}", [f"meal | {LONG}", f"lunch | {LONG}"]),
        (f"meal\t{LONG}\nlunch\t{LONG}", [f"meal\t{LONG}", f"lunch\t{LONG}"]),
        ("End.Not a new one. Here.", ["End.Not a new one.", "Here."]),
        ("\u200bHidden. \ufeffMark.", ["\u200bHidden.", "\ufeffMark."]),
    ],
)
def test_a_text_has_these_sentences(text: str, expected: list[str]) -> None:
    assert reply(text) == expected


PIECES = st.lists(
    st.sampled_from(
        [
            *"ab가1 .?!。…\n\t|-#*>()'\"",
            "Dr.",
            "e.g.",
            "3. 1.",
            "2020.",
            "No. 7",
            "제3조",
            "\n\n",
            LONG,
        ]
    )
    | st.text(max_size=4),
    max_size=40,
).map("".join)


@given(PIECES)
def test_sentences_are_in_order_apart_and_leave_out_no_letter_or_digit(text: str) -> None:
    found = sentences(text)
    covered: set[int] = set()
    last = 0
    for start, end in found:
        assert last <= start < end <= len(text)
        piece = text[start:end]
        assert any(map(str.isalnum, piece))
        assert piece == piece.rstrip()
        assert not re.match(r"[\s#>•·|]", piece)
        stars = re.match(r"\*+", piece)
        assert stars is None or "*" in piece[stars.end() :], "emphasis that closes"
        covered.update(range(start, end))
        last = end
    assert {i for i, c in enumerate(text) if c.isalnum()} <= covered


@given(PIECES)
def test_every_character_keeps_its_place_when_lines_are_joined(text: str) -> None:
    joined = reflow(text)
    assert len(joined) == len(text)
    assert all(a == b or (a, b) == ("\n", " ") for a, b in zip(text, joined, strict=True))


def test_a_text_of_full_stops_and_numbers_takes_no_time() -> None:
    assert sentences("1. " * 20_000)
    assert sentences("a." * 20_000)


@pytest.mark.long
@pytest.mark.parametrize("piece", ["J. R. R. Tolkien ", "Dr. Kim et al. and ", "a. ", "2026. 1. "])
def test_a_text_of_nothing_but_abbreviations_ends(piece: str) -> None:
    assert len(sentences(piece * 60_000)) >= 1
