"""The cells of tables in the texts of each format."""

import csv
import io

import pytest
from office_files import workbook
from pdf_files import page_of, shown

from callslip.config.settings import ExtractSettings
from callslip.errors import DocumentTableNotFound
from callslip.ingestion import tables
from callslip.ingestion.extract import extract
from callslip.ingestion.extract.readers.web.grid import MOST_COLUMNS
from callslip.ingestion.tables import as_csv


def rows(content: bytes | str, name: str, number: int = 1) -> list[list[str]]:
    data = content.encode() if isinstance(content, str) else content
    text = as_csv(extract(data, name, ExtractSettings()), number)
    return list(csv.reader(io.StringIO(text, newline="")))


SHIPS = [["ship", "berth", "note"], ["Aurora", "", "a|b"], ["Nova, II", "7", 'the "new" one']]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", 'ship,berth,note\nAurora,,a|b\n"Nova, II",7,"the ""new"" one"\n'),
        ("a.xlsx", workbook(Ships=SHIPS)),
        (
            "a.html",
            "<!DOCTYPE html><table><tr><th>ship<th>berth<th>note<tr><td>Aurora<td><td>a|b"
            '<tr><td>Nova, II<td>7<td>the "new" one</table>',
        ),
        (
            "a.md",
            "# Ships\n\n| ship | berth | note |\n|---|:-:|---|\n| Aurora | | a\\|b |\n"
            '| Nova, II | 7 | the "new" one |\n',
        ),
    ],
)
def test_the_cells_of_a_table_are_those_of_the_file(name: str, content: bytes | str) -> None:
    assert rows(content, name) == SHIPS


NAMES = ["region", "year", "ships"]
HEAD = f"<tr><th>{'<th>'.join(NAMES)}"


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        (
            f"{HEAD}<tr><td rowspan=2>North<td>2025<td>1<tr><td>2026<td>2<tr><td>South<td>2025",
            [NAMES, ["North", "2025", "1"], ["", "2026", "2"], ["South", "2025", ""]],
        ),
        (
            f"{HEAD}<tr><td>N<td rowspan=2>2025<td>1<tr><td>S<td>2<tr><td colspan=2>All<td>3",
            [NAMES, ["N", "2025", "1"], ["S", "", "2"], ["All", "", "3"]],
        ),
        (
            "<thead><tr><th rowspan=2>region<th colspan=2>2025<th rowspan=2>all<tr><th>in<th>out"
            "</thead><tbody><tr><td>North<td>1<td>2<td>3",
            [["region", "2025", "", "all"], ["", "in", "out", ""], ["North", "1", "2", "3"]],
        ),
        (
            f"{HEAD}<tr><td rowspan=2 colspan=2>all<td>1<tr><td>2",
            [NAMES, ["all", "", "1"], ["", "", "2"]],
        ),
    ],
)
def test_cells_of_html_beside_a_span_stay_in_their_columns(
    table: str, expected: list[list[str]]
) -> None:
    assert rows(f"<!DOCTYPE html><table>{table}</table>", "a.html") == expected


def test_a_span_ends_with_its_part_of_the_table() -> None:
    page = (
        "<!DOCTYPE html><table><thead><tr><th rowspan=9>a<th>b</thead>"
        "<tbody><tr><td rowspan=0>1<td>2<tr><td>3</tbody><tbody><tr><td>4<td>5</tbody></table>"
    )
    assert rows(page, "a.html") == [["a", "b"], ["1", "2"], ["", "3"], ["4", "5"]]


def test_a_column_in_which_no_cell_begins_does_not_count() -> None:
    page = "<!DOCTYPE html><table><tr><th colspan=3>a<th>b<tr><td colspan=3>1<td>2</table>"
    assert rows(page, "a.html") == [["a", "b"], ["1", "2"]]


@pytest.mark.parametrize("span", ["", "-1", "x", "0.5", "1"])
def test_a_span_that_is_no_number_of_columns_is_one(span: str) -> None:
    page = f'<!DOCTYPE html><table><tr><td colspan="{span}">a<td>b<tr><td>1<td>2<td>3</table>'
    assert rows(page, "a.html") == [["a", "b", ""], ["1", "2", "3"]]


@pytest.mark.parametrize("span", ["99999999", "9" * 5000])
def test_the_cells_of_a_table_bound_what_spans_fill(span: str) -> None:
    spans = f'rowspan="{span}" colspan="{span}"'
    page = f"<!DOCTYPE html><table><tr><td {spans}>a<td>b" + "<tr><td>1<td>2" * 1000 + "</table>"
    expected = [["a", "b", ""], *[["", "1", "2"]] * 1000]
    assert rows(page, "a.html") == expected


@pytest.mark.parametrize(
    ("first", "other"),
    [("<td>x", "<td colspan=1000>a<td>b"), ("<td rowspan=65534>x", "<td>a")],
)
def test_spans_fill_a_hundred_columns_of_a_row_at_most(first: str, other: str) -> None:
    page = f"<!DOCTYPE html><table><tr>{first * 300}{f'<tr>{other}' * 1000}<tr><td>a<td>b</table>"
    lines = extract(page.encode(), "a.html", ExtractSettings()).text.strip().split("\n")
    assert len(lines) == 1002
    assert lines[1].count("|") == MOST_COLUMNS


def test_the_header_rows_of_a_table_with_spans_are_its_header() -> None:
    page = (
        "<!DOCTYPE html><h1>Ships</h1><table><thead><tr><th rowspan=2>region<th colspan=2>2025"
        "<tr><th>in<th>out</thead><tr><td rowspan=2>North<td>1<td>2<tr><td>3<td>4</table><p>End."
    )
    text = extract(page.encode(), "a.html", ExtractSettings())
    [table] = text.blocks
    assert text.text[table.start : table.header] == "region | 2025\n| in | out\n"
    assert text.text[table.header : table.end] == "North | 1 | 2\n| 3 | 4"
    assert [text.text[h.start : h.end] for h in text.headings] == ["Ships"]


GRID = """\
Ships
=====

+--------+-------+
| ship   | berth |
+========+=======+
| Aurora | 7     |
| II     |       |
+--------+-------+
| Nova   | 8     |
+--------+-------+
"""
SIMPLE = """\
Ships
=====

=======  =====
ship     berth
=======  =====
Aurora   7
Nova     8
=======  =====
"""


def test_tables_of_restructured_text_have_cells() -> None:
    assert rows(GRID, "a.rst") == [["ship", "berth"], ["Aurora II", "7"], ["Nova", "8"]]
    assert rows(SIMPLE, "a.rst") == [["ship", "berth"], ["Aurora", "7"], ["Nova", "8"]]


def test_tables_count_from_one_in_the_order_of_the_text() -> None:
    sheets = workbook(One=[["a", "b"], [1, 2]], Two=[["c", "d"], [3, 4]])
    assert rows(sheets, "a.xlsx", 2) == [["c", "d"], ["3", "4"]]
    for number in (0, 3, -1):
        with pytest.raises(DocumentTableNotFound, match="2 tables"):
            rows(sheets, "a.xlsx", number)


def test_rows_have_the_same_number_of_fields_and_values_stay_as_they_are() -> None:
    cells = rows("name,sum,more\n=1+1,@x\n-3,+4,5\n", "a.csv")
    assert cells == [["name", "sum", "more"], ["=1+1", "@x", ""], ["-3", "+4", "5"]]


def test_a_table_of_many_rows_is_whole() -> None:
    content = "number,double\n" + "".join(f"{n},{2 * n}\n" for n in range(100_000))
    cells = rows(content, "a.csv")
    assert len(cells) == 100_001
    assert cells[-1] == ["99999", "199998"]


def test_rows_of_figures_without_rules_are_names_and_figures() -> None:
    lines = ["Port Ships Tons", *(f"New port {name} 1,100 (20) 3%" for name in "ABCDE")]
    content = "".join(shown(line, y=700 - 14 * at) for at, line in enumerate(lines))
    assert rows(page_of(content.replace("(20)", "\\(20\\)")), "a.pdf") == [
        ["Port Ships Tons", "", "", ""],
        *([f"New port {name}", "1,100", "(20)", "3%"] for name in "ABCDE"),
    ]


def test_a_small_file_with_one_long_row_is_no_large_table() -> None:
    text = as_csv(extract(b"a," * 4000 + b"a\n" + b"b\n" * 4000, "a.csv", ExtractSettings()), 1)
    assert len(text) < 50_000
    ruled = "= " * 2000 + "=="
    wide = f"Title\n=====\n\n{ruled}\n" + "a\n" * 2000 + ruled + "\n"
    simple = tables._simple(wide.splitlines()[3:])
    assert max(len(row) for row in simple) == 1
