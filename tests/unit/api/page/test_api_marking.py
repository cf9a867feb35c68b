"""Marking a query's words in a passage."""

from hypothesis import given
from hypothesis import strategies as st

from callslip.api.page.marking import Passage, body, excerpt, find, reflow, whole


def marked(text: str, query: str) -> list[str]:
    return [text[start:end] for start, end in find(text, query)]


def shown(passage: Passage) -> str:
    return "".join(piece.text for piece in passage.pieces)


def test_english_words_meet_by_their_stems() -> None:
    assert marked("Borrowing: who borrows Books?", "which book can I borrow?") == [
        *("Borrowing", "borrows", "Books")
    ]


def test_a_word_is_not_marked_inside_another() -> None:
    assert marked("a cat in a catalogue", "cat") == ["cat"]


def test_stop_words_are_marked_only_where_there_is_nothing_else() -> None:
    assert marked("the loan of the book", "the book") == ["book"]
    assert marked("to be or not", "to be") == ["to", "be"]


def test_korean_words_are_marked_without_their_particle() -> None:
    assert marked("출산 장려금을 첫째에게", "출산 장려금은 얼마인가요?") == ["출산", "장려금"]


def test_korean_compounds_meet_whichever_is_written_apart() -> None:
    assert marked("출산 장려금 안내", "출산장려금") == ["출산 장려금"]
    assert marked("출산장려금 안내", "출산 장려금") == ["출산", "장려금"]
    assert marked("출산 가정의 장려금", "출산장려금") == ["출산", "장려금"]


def test_a_long_word_without_spaces_is_not_tried_in_all_its_parts() -> None:
    assert (
        find("가나다라마바사" * 300, "하" * 4000) == []
    )  # tried in all its parts it takes minutes


def test_an_excerpt_is_where_the_marks_are() -> None:
    text = "nothing here. " * 100 + "The loan period is a loan of fourteen days. " + "more. " * 200
    cut = excerpt(text, "loan period", longest=200)
    assert "loan period is a loan" in shown(cut)
    assert len(shown(cut)) == 200
    assert (cut.before, cut.after) == (True, True)
    assert [piece.text for piece in cut.pieces if piece.marked] == ["loan", "period", "loan"]


def test_a_short_passage_is_shown_whole() -> None:
    assert excerpt("short", "short") == whole("short", "short")


def test_lines_broken_at_a_width_are_joined_and_lists_are_not() -> None:
    line = "A line that somebody broke where the paper ended,"
    assert reflow(f"{line}\nand its rest") == f"{line} and its rest"
    for kept in ("- a point", "2.1 a paragraph", "| a | row |", "\na paragraph", "제3조(목적)"):
        assert reflow(f"{line}\n{kept}") == f"{line}\n{kept}"


def test_the_body_leaves_out_the_headings_that_are_shown_above_it() -> None:
    assert body("# Rules\n\n## 1. Hours\n\nFrom nine.\n\nTo six.", "1. Hours") == (
        "From nine.\nTo six."
    )
    assert body("1. Hours", "1. Hours") == "1. Hours"
    assert body("From nine.", "") == "From nine."


@given(st.text(alphabet="ab 가나다의\n.,<&", max_size=200), st.text("ab 가나다의<", max_size=20))
def test_pieces_put_together_are_the_text(text: str, query: str) -> None:
    assert shown(whole(text, query)) == text
    assert shown(excerpt(text, query, longest=30)) in text
    assert len(reflow(text)) == len(text)
