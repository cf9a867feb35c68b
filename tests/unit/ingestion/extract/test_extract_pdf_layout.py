"""Lines of a PDF: bookmarks, margins, columns and plain tables."""

from itertools import pairwise

from callslip.ingestion.extract.readers.pdf.layout import assemble
from callslip.ingestion.extract.readers.pdf.outline import Bookmark, Line


def line(text: str, down: float, size: float = 10, *, turn: int = 0) -> Line:
    return Line(text, size, down, bold=False, hyphen=False, mapped=True, turn=turn)


def page(*texts: str) -> list[Line]:
    return [line(text, 12.0 * n) for n, text in enumerate(texts)]


def outline(pages: list[list[Line]], *bookmarks: Bookmark) -> list[tuple[int, str]]:
    made = assemble(pages, bookmarks)
    text, headings = made.text, made.headings
    return [(h.level, text[h.start : h.end]) for h in headings]


BODY = ["A line of the text.", "Another line of it."]


def test_lines_that_bookmarks_lead_to_are_headings_whatever_their_type() -> None:
    pages = [page("1 First", *BODY, "A detail", *BODY), page(*BODY, "2. Second:", "and its end")]
    found = outline(
        pages,
        Bookmark("First", 1, 0),
        Bookmark("A Detail", 2, 0),
        Bookmark("Second: and its end", 1, 1),
        Bookmark("Nowhere", 1, 1),
        Bookmark("Beyond", 1, 7),
    )
    assert found == [(1, "1 First"), (2, "A detail"), (1, "2. Second:\nand its end")]


def test_larger_type_is_below_the_bookmarks_and_a_single_bookmark_is_no_outline() -> None:
    below = [li._replace(down=li.down + 40) for li in page("One", *BODY, "Two", *BODY)]
    pages = [[line("In large type", 0, 14), *below]]
    both = (Bookmark("One", 1, 0), Bookmark("Two", 1, 0))
    assert outline(pages, *both) == [(2, "In large type"), (1, "One"), (1, "Two")]
    assert outline(pages, both[0]) == [(1, "In large type")]


def test_text_across_the_margin_is_no_heading() -> None:
    margin = line("arXiv:2103.15348v2 [cs.CV] 21 Jun 2021", 5, 16, turn=1)
    assert outline([[line("Title", 0, 16), margin, *page(*BODY * 20)[1:]]]) == [(1, "Title")]


def test_lines_drawn_in_another_order_are_read_from_the_top() -> None:
    lines = page("Head", *[f"Line {n} of the text" for n in range(12)], "Foot")
    drawn = [lines[0], lines[-1], *lines[7:-1], *lines[1:7]]
    assert assemble([drawn]) == assemble([lines])


def test_columns_are_left_as_drawn() -> None:
    left = [line(f"Left {n}", 12.0 * n) for n in range(10)]
    right = [line(f"Right {n}", 12.0 * n + 5) for n in range(10)]
    text = assemble([[*left, *right]])[0]
    words = text.split()[::2]
    assert [a == b for a, b in pairwise(words)].count(False) == 1


def test_rows_of_figures_are_a_table_under_its_header() -> None:
    rows = [f"State {n} 1,{n}00 22 (3) 4%" for n in range(6)]
    made = assemble([page("Name Sum Days Loss Share", *rows)])
    text, tables = made.text, made.tables
    (table,) = tables
    assert text[table.start : table.header] == "Name Sum Days Loss Share\n"
    assert text[table.header : table.end].splitlines() == rows
    assert assemble([page("In 2020 and 2021 there were 5 of 8.", *BODY * 4)])[3] == ()
