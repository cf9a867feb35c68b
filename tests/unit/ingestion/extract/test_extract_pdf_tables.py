"""Ruled tables of a PDF: rows with cells and headers, and what is no table."""

from collections.abc import Callable, Sequence

import pytest
from pdf_files import page_of, shown

from callslip.config.settings import ExtractSettings
from callslip.ingestion.boxes import areas
from callslip.ingestion.extract import extract
from callslip.ingestion.values import ExtractedText

ROWS = [["Ship", "Berth", "Sum"], ["Aurora", "Seven", "12"], ["Nova", "", "8"]]
LEFT, TOP, WIDTH, HEIGHT = 60, 700, 120, 30

Ruling = Callable[[int, int], str]


def read(content: str) -> ExtractedText:
    return extract(page_of(content), "a.pdf", ExtractSettings())


def tables(text: ExtractedText) -> list[tuple[list[str], list[str]]]:
    """The header rows and the other rows of each table."""
    return [
        (
            text.text[b.start : b.header].splitlines(),
            text.text[b.header : b.end].splitlines(),
        )
        for b in text.blocks
    ]


def words(rows: Sequence[Sequence[str]]) -> str:
    """The words of cells, drawn row by row; a cell has a line for each line end."""
    return "".join(
        shown(line, LEFT + 5 + WIDTH * column, TOP - HEIGHT * row - 12 - 11 * number, 10)
        for row, cells in enumerate(rows)
        for column, cell in enumerate(cells)
        for number, line in enumerate(cell.split("\n"))
        if line
    )


def lines(rows: int, columns: int) -> str:
    """A line along each edge of each row and column."""
    right, bottom = LEFT + WIDTH * columns, TOP - HEIGHT * rows
    ys = [TOP - HEIGHT * row for row in range(rows + 1)]
    xs = [LEFT + WIDTH * column for column in range(columns + 1)]
    across = (f"{LEFT} {y} m {right} {y} l S" for y in ys)
    down = (f"{x} {TOP} m {x} {bottom} l S" for x in xs)
    return "\n".join([*across, *down]) + "\n"


def one_path(rows: int, columns: int) -> str:
    """The same as a single path."""
    return lines(rows, columns).replace(" S\n", "\n") + " S\n"


def outlines(rows: int, columns: int) -> str:
    """An outlined rectangle around each cell."""
    return "".join(
        f"{LEFT + WIDTH * column} {TOP - HEIGHT * (row + 1)} {WIDTH} {HEIGHT} re S\n"
        for row in range(rows)
        for column in range(columns)
    )


def thin_areas(rows: int, columns: int) -> str:
    """Thin filled areas instead of lines, as word processors draw them."""
    across = (f"{LEFT} {TOP - HEIGHT * n} {WIDTH * columns} 0.5 re f" for n in range(rows + 1))
    down = (
        f"{LEFT + WIDTH * n} {TOP - HEIGHT * rows} 0.5 {HEIGHT * rows} re f"
        for n in range(columns + 1)
    )
    return "\n".join([*across, *down]) + "\n"


def open_sides(rows: int, columns: int) -> str:
    """No lines at the left and the right."""
    kept = lines(rows, columns).splitlines()
    return "\n".join(kept[: rows + 1] + kept[rows + 2 : -1]) + "\n"


@pytest.mark.parametrize("ruling", [lines, one_path, outlines, thin_areas, open_sides])
def test_a_ruled_table_has_its_rows_and_header(ruling: Ruling) -> None:
    text = read(shown("Before.", y=740) + words(ROWS) + ruling(3, 3) + shown("After.", y=550))
    assert tables(text) == [(["Ship | Berth | Sum"], ["Aurora | Seven | 12", "Nova | | 8"])]
    assert text.text.startswith("Before.\n\nShip")
    assert text.text.endswith("8\n\nAfter.")


def test_cells_of_several_lines_are_read_cell_by_cell() -> None:
    rows = [["Ship", "Berth"], ["Aurora\nof Oslo", "Seven\nand eight"], ["Nova", "Nine"]]
    text = read(words(rows) + lines(3, 2))
    assert tables(text) == [(["Ship | Berth"], ["Aurora of Oslo | Seven and eight", "Nova | Nine"])]


def test_the_area_of_a_cell_is_where_its_words_are() -> None:
    text = read(words(ROWS) + lines(3, 3))
    start = text.text.index("Seven")
    (area,) = areas(text.boxes, text.text, start, start + 5)
    assert LEFT + WIDTH < area.left < area.right < LEFT + 2 * WIDTH
    assert 792 - TOP + HEIGHT < area.top < area.bottom < 792 - TOP + 2 * HEIGHT


def test_a_title_over_all_columns_is_a_header_row() -> None:
    rows = [["Harbour fees", "", ""], *ROWS]
    ruling = lines(4, 3).replace(f"{LEFT + WIDTH} {TOP} m", f"{LEFT + WIDTH} {TOP - HEIGHT} m")
    ruling = ruling.replace(f"{LEFT + 2 * WIDTH} {TOP} m", f"{LEFT + 2 * WIDTH} {TOP - HEIGHT} m")
    heads, _ = tables(read(words(rows) + ruling))[0]
    assert heads == ["Harbour fees", "Ship | Berth | Sum"]


def test_rows_without_names_have_no_header() -> None:
    (table,) = tables(read(words([["1", "2"], ["3", "4"], ["5", "6"]]) + lines(3, 2)))
    assert table == ([], ["1 | 2", "3 | 4", "5 | 6"])


def test_words_beside_a_table_stay_lines() -> None:
    text = read(words(ROWS) + lines(3, 3) + shown("Note beside.", x=450, y=TOP - 12))
    assert tables(text)[0][1] == ["Aurora | Seven | 12", "Nova | | 8"]
    assert "Note beside." in text.text.split("\n\n")


@pytest.mark.parametrize(
    "content",
    [
        words([["A frame around", "two columns"]]) + lines(1, 2),
        words([["One"], ["column"], ["of boxes"]]) + lines(3, 1),
        words([["Name", ""], ["", ""], ["", "Date"]]) + lines(3, 2),
        words([["Prose " * 90, "more " * 90], ["and " * 90, "more " * 90]]) + lines(2, 2),
        words(ROWS) + lines(3, 3).replace(" S", " n"),
        words(ROWS) + "1 1 1 rg\n" + outlines(3, 3).replace(" S", " f") + words(ROWS),
        "".join(f"{x} 100 m {x + 9} 600 l S\n" for x in range(60, 500, 20)) + words(ROWS),
    ],
    ids=["frame", "one column", "form", "prose", "not drawn", "white areas", "hatching"],
)
def test_what_is_no_table_stays_lines(content: str) -> None:
    assert tables(read(content)) == []


def test_many_lines_take_no_time() -> None:
    drawing = "".join(
        f"{x} {y} m {x + 30} {y} l S {x} {y} m {x} {y + 30} l S\n"
        for x in range(0, 600, 15)
        for y in range(0, 780, 15)
    )
    assert read(shown("A map.") + drawing).text == "A map."
