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
