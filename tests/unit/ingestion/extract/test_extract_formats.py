"""Office files, books and structured text: their text, headings, tables and code."""

import contextlib
import io
import json
import struct

import docx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from office_files import (
    deck,
    epub,
    hwp_record,
    hwpx,
    open_document,
    workbook,
    zip_file,
)

from callslip.config.settings import ExtractSettings
from callslip.errors import BrokenFile, DocumentError, ExtractionLimit, NeedsPassword
from callslip.ingestion.extract import extract
from callslip.ingestion.extract.composer import Composer
from callslip.ingestion.extract.readers.office import hangul
from callslip.ingestion.values import ExtractedText

LIMITS = ExtractSettings()


def read(data: bytes | str, filename: str = "file", **limits: object) -> ExtractedText:
    content = data.encode() if isinstance(data, str) else data
    return extract(content, filename, LIMITS.model_copy(update=limits))


def headings(text: ExtractedText) -> list[tuple[int, str]]:
    return [(h.level, text.text[h.start : h.end]) for h in text.headings]


def blocks(text: ExtractedText) -> list[tuple[str, str, str]]:
    """Kind, header and the rest of each block; each holds whole lines."""
    for b in text.blocks:
        assert b.start == 0 or text.text[b.start - 1] == "\n"
        assert b.end == len(text.text) or text.text[b.end] == "\n"
    return [
        (b.kind, text.text[b.start : b.header], text.text[b.header : b.end]) for b in text.blocks
    ]


# Office


def test_slides_are_pages_with_their_tables_notes_and_groups() -> None:
    text = read(deck(), "a.pptx")
    assert [text.text[p.start : p.end].split("\n")[0] for p in text.pages] == ["첫 장", "Second"]
    assert headings(text) == [(1, "첫 장"), (1, "Second")]
    assert blocks(text) == [("table", "name | year\n", "callslip | 2026")]
    assert "Say this aloud." in text.text
    assert "in a group" in text.text


def test_sheets_are_headings_and_empty_rows_end_a_table() -> None:
    rows = [["name", "price"], ["tea", 1.5], [None, None], [None, "left", "out"], [None, 3.0, None]]
    text = read(workbook(Prices=rows, Empty=[[]], 둘째=[["하나"]]), "a.xlsx")
    assert headings(text) == [(1, "Prices"), (1, "둘째")]
    assert blocks(text) == [
        ("table", "name | price\n", "tea | 1.5"),
        ("table", "left | out\n", "3"),
    ]
    assert text.text.endswith("하나\n\n")


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_of_a_table_is_found(delimiter: str) -> None:
    rows = [["name", "year", "note"], ["a", "2024", "x y"], ["b", "2025", "z"]]
    source = "\n".join(delimiter.join(row) for row in rows)
    text = read(source, "a.tsv" if delimiter == "\t" else "a.csv")
    assert blocks(text) == [("table", "name | year | note\n", "a | 2024 | x y\nb | 2025 | z")]


def test_a_line_end_within_a_cell_does_not_break_its_row() -> None:
    text = read('a,b\n"one\ntwo",3\n', "a.csv")
    assert text.text.split("\n")[:2] == ["a | b", "one two | 3"]


def test_csv_in_a_korean_code_page_is_read() -> None:
    text = read("이름,나이\n홍길동,30\n성춘향,16\n".encode("cp949"), "a.csv")
    assert text.text.startswith("이름 | 나이\n홍길동 | 30")


def test_docx_tables_are_blocks_and_marked_header_rows_their_header() -> None:
    document = docx.Document()
    table = document.add_table(3, 2)
    for at, word in enumerate(["", "2024", "kg", "t", "1", "2"]):
        table.cell(at // 2, at % 2).text = word
    for row in table.rows[0], table.rows[1]:
        row._tr.get_or_add_trPr().append(row._tr.makeelement(docx.oxml.ns.qn("w:tblHeader")))
    buffer = io.BytesIO()
    document.save(buffer)
    assert blocks(read(buffer.getvalue())) == [("table", "| 2024\nkg | t\n", "1 | 2")]


def test_open_documents_give_headings_lists_tables_and_spaces() -> None:
    cell = "<table:table-cell><text:p>{}</text:p></table:table-cell>"
    row = "<table:table-row>{}</table:table-row>"
    body = (
        '<office:text><text:h text:outline-level="2">제목</text:h>'
        '<text:p>a<text:s text:c="3"/>b<text:span>c<text:line-break/>d</text:span></text:p>'
        "<text:list><text:list-item><text:p>item</text:p></text:list-item></text:list>"
        "<text:tracked-changes><text:p>gone</text:p></text:tracked-changes><table:table>"
        f"{row.format(cell.format('one') + cell.format('two'))}"
        f"{row.format(cell.format('1') + cell.format('2'))}</table:table></office:text>"
    )
    text = read(open_document(body), "a.odt")
    assert headings(text) == [(2, "제목")]
    assert text.text.split("\n\n")[1:3] == ["a   bc\nd", "item"]
    assert blocks(text) == [("table", "one | two\n", "1 | 2")]
    assert "gone" not in text.text


def test_open_sheets_are_headings_and_repeats_are_bounded() -> None:
    body = (
        '<office:spreadsheet><table:table table:name="S"><table:table-row '
        'table:number-rows-repeated="1000000"><table:table-cell '
        'table:number-columns-repeated="1000000"><text:p>x</text:p></table:table-cell>'
        "</table:table-row></table:table></office:spreadsheet>"
    )
    text = read(open_document(body, "spreadsheet"), "a.ods")
    assert headings(text) == [(1, "S")]
    assert len(text.text) < 100_000


def test_rich_text_gives_its_characters_and_tables() -> None:
    source = (
        r"{\rtf1\ansi\ansicpg949 \'c7\'d1\'b1\'db text\par "
        r"\trowd\cellx1\cellx2\intbl name\cell age\cell\row"
        r"\trowd\intbl kim\cell 7\cell\row\pard end}"
    )
    text = read(source, "a.rtf")
    assert text.text.startswith("한글 text")
    assert blocks(text) == [("table", "name | age\n", "kim | 7")]
    assert text.text.rstrip().endswith("end")


def test_a_book_is_read_in_the_order_of_its_spine() -> None:
    text = read(epub("<h1>Last</h1><p>b", "<h1>First</h1><p>a"), "a.epub")
    assert headings(text) == [(1, "First"), (1, "Last")]
    assert text.title == "The Book"
    assert text.properties == {"creator": "A. Writer"}


def test_a_book_with_encrypted_chapters_needs_its_key() -> None:
    with pytest.raises(NeedsPassword):
        read(epub("<p>x", encrypted="text/c0.xhtml"), "a.epub")


# Hangul


def test_hwpx_gives_headings_by_style_paragraphs_and_tables() -> None:
    cell = "<hp:tc><hp:subList><hp:p><hp:run><hp:t>{}</hp:t></hp:run></hp:p></hp:subList></hp:tc>"
    table = f"<hp:tr>{cell.format('이름')}{cell.format('나이')}</hp:tr>" + (
        f"<hp:tr>{cell.format('홍길동')}{cell.format('30')}</hp:tr>"
    )
    text = read(
        hwpx(
            'styleIDRef="3"><hp:run><hp:t>제1장 총칙</hp:t></hp:run>',
            "><hp:run><hp:t>앞<hp:lineBreak/>뒤</hp:t></hp:run>",
            f"><hp:run><hp:tbl>{table}</hp:tbl></hp:run>",
        ),
        "a.hwpx",
    )
    assert headings(text) == [(2, "제1장 총칙")]
    assert text.text.split("\n\n")[1] == "앞\n뒤"
    assert blocks(text) == [("table", "이름 | 나이\n", "홍길동 | 30")]


def hwp_text(words: str) -> bytes:
    return words.encode("utf-16-le")


def test_records_of_hwp_5_become_paragraphs_headings_and_tables() -> None:
    def paragraph(words: str, level: int, style: int = 0) -> bytes:
        header = bytes(10) + bytes([style]) + bytes(11)
        return hwp_record(66, level, header) + hwp_record(67, level + 1, hwp_text(words))

    def cell(row: int, words: str) -> bytes:
        head = bytes(10) + row.to_bytes(2, "little") + bytes(10)
        return hwp_record(72, 2, head) + paragraph(words, 2)

    control = hwp_text("\x0b" + "lbt" + "\0" * 4)
    section = (
        paragraph("제목", 0, style=1)
        + paragraph("본문\t\0\0\0\0\0\0\t가\n나\r", 0)  # a tab takes eight units
        + paragraph("x" * 5000, 0)
        + hwp_record(66, 0, bytes(22))
        + hwp_record(67, 1, control)
        + hwp_record(71, 1, b" lbt" + bytes(40))
        + cell(0, "이름") + cell(0, "나이") + cell(1, "김") + cell(1, "7")
        + paragraph("끝", 0)
    )  # fmt: skip
    composer = Composer(LIMITS)
    hangul._section(section, [0, 1], composer)
    text = composer.text("x")
    assert headings(text) == [(1, "제목")]
    assert text.text.split("\n\n")[1] == "본문\t가\n나"
    assert blocks(text) == [("table", "이름 | 나이\n", "김 | 7")]
    assert text.text.endswith("끝\n\n")


@given(st.binary(max_size=400))
@settings(deadline=None)
def test_any_bytes_as_hwp_records_end(data: bytes) -> None:
    with contextlib.suppress(struct.error, UnicodeError):  # a named one in `extract`
        hangul._section(data, [0, 1], Composer(LIMITS))


# Marked-up and structured text

RST = """\
=====
Title
=====

Text that ends in a colon::

    # code, no heading
    ====

Section
-------

.. code-block:: python
   :linenos:

   x = 1

=====  ====
name   year
=====  ====
a      2024
b      2025
=====  ====

+---+---+
| a | b |
+===+===+
| 1 | 2 |
+---+---+

소제목
~~~~~~

Section two
-----------
"""


def test_rst_loses_adornments_and_knows_titles_code_and_tables() -> None:
    text = read(RST, "a.rst")
    assert text.text.startswith("Title\n\n")
    assert "Text that ends in a colon:\n\n    # code, no heading\n" in text.text
    assert not {"-", "~"} & set(text.text.replace("+---+---+", ""))
    assert headings(text) == [(1, "Title"), (2, "Section"), (3, "소제목"), (2, "Section two")]
    assert blocks(text) == [
        ("code", "", "    # code, no heading\n    ===="),
        ("code", "", "   x = 1"),
        (
            "table",
            "=====  ====\nname   year\n=====  ====\n",
            "a      2024\nb      2025\n=====  ====",
        ),
        ("table", "+---+---+\n| a | b |\n+===+===+\n", "| 1 | 2 |\n+---+---+"),
    ]


def test_markdown_code_and_tables_are_blocks() -> None:
    source = (
        "# T\n\n```py\nx = 1\n\n# no\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n- item\n\n"
        "      indented\n"
    )
    assert blocks(read(source, "a.md")) == [
        ("code", "", "```py\nx = 1\n\n# no\n```"),
        ("table", "| a | b |\n|---|---|\n", "| 1 | 2 |"),
        ("code", "", "      indented"),
    ]


def test_html_tables_have_a_row_on_each_line_and_layout_is_none() -> None:
    page = (
        "<html><h1>One</h1>before<table><caption>Cap</caption><tr><th>a</th><th>b</th></tr>"
        "<tr><td>1<br>2<script>no()</script></td><td>x<!-- no --></td></tr></table>after"
        "<pre>\ndef f():\n    return 1\n</pre>"
        "<table><tr><td><div>menu</div></td><td>text</td></tr><tr><td>p</td><td>q</td></tr></table>"
    )
    text = read(page)
    assert blocks(text) == [
        ("table", "a | b\n", "1 2 | x"),
        ("code", "", "def f():\n    return 1"),
    ]
    words = text.text.split()
    assert words.index("before") < words.index("Cap") < words.index("a") < words.index("after")
    assert {"menu", "text", "p", "q"} <= set(words)
    assert "no" not in text.text


RECORDS = [
    {"title": "첫째", "body": {"text": "One."}, "tags": ["a", "b"], "year": 2024, "none": None},
    {"name": "Second", "body": {"text": "Two."}},
]


@pytest.mark.parametrize("name", ["a.json", "data", "a.txt"])
def test_json_records_are_sections_whatever_the_name(name: str) -> None:
    text = read(json.dumps(RECORDS), name)
    assert text.media_type == "application/json"
    assert headings(text) == [(1, "첫째"), (1, "Second")]
    assert text.text.split("\n\n")[1] == "body.text: One.\ntags: a, b\nyear: 2024"


def test_the_mapping_says_which_fields_are_text_title_and_properties() -> None:
    mapped = {"json_title": "id", "json_text": "body.text,tags", "json_properties": "year,none"}
    record = RECORDS[0] | {"id": "r1"}
    text = read(json.dumps(record), "a.json", **mapped)
    assert text.text.split("\n\n")[:2] == ["r1", "One.\na, b"]
    assert text.title == "r1"
    assert text.properties == {"year": "2024"}


@pytest.mark.parametrize("name", ["a.json", "data"])
def test_a_number_of_any_length_is_read(name: str) -> None:
    text = read('{"title": "Largest", "known": [' + "9" * 5000 + ', -12], "year": 2024}', name)
    assert text.media_type == "application/json"
    assert "known: " + "9" * 5000 + ", -12" in text.text
    assert "year: 2024" in text.text


def test_json_lines_keep_a_line_that_is_none() -> None:
    source = "\n".join([json.dumps(RECORDS[0]), "not json", json.dumps(RECORDS[1])])
    text = read(source, "a.jsonl")
    assert headings(text) == [(1, "첫째"), (1, "Second")]
    assert "not json" in text.text
    assert text.warnings == ("read as plain text: lines that are no JSON (1)",)


def test_a_json_file_without_json_is_broken() -> None:
    with pytest.raises(BrokenFile):
        read("just words", "a.json")


def test_json_nested_too_deeply_is_a_named_error() -> None:
    with pytest.raises(ExtractionLimit):
        read("[" * 200_000 + "]" * 200_000, "a.json")


# Whatever comes


@given(
    st.lists(st.lists(st.text(max_size=20), max_size=4), max_size=6), st.none() | st.integers(0, 7)
)
@settings(deadline=None)
def test_a_composed_table_is_whole_lines_with_its_header_within(
    rows: list[list[str]], header: int | None
) -> None:
    composer = Composer(LIMITS)
    composer.paragraph("before")
    composer.table(rows, header)
    composer.paragraph("after")
    text = composer.text("x")
    for b in text.blocks:
        assert b.start <= b.header <= b.end
        assert text.text[b.start - 1] == "\n" == text.text[b.end]
        assert b.header == b.start or text.text[b.header - 1] == "\n"
        assert "\n\n" not in text.text[b.start : b.end]
    assert text.text.startswith("before\n\n")
    assert text.text.endswith("after\n\n")


@pytest.mark.long
@pytest.mark.parametrize(
    ("made", "name"),
    [
        (deck(), "a.pptx"),
        (workbook(A=[["a", 1], ["b", 2]]), "a.xlsx"),
        (open_document("<office:text><text:p>x</text:p></office:text>"), "a.odt"),
        (epub("<p>x"), "a.epub"),
        (hwpx("><hp:run><hp:t>x</hp:t></hp:run>"), "a.hwpx"),
        (zip_file({"a.txt": "x"}), "a.zip"),
    ],
)
@given(data=st.data())
@settings(deadline=None)
def test_a_damaged_container_ends_in_text_or_a_named_error(
    data: st.DataObject, made: bytes, name: str
) -> None:
    at = data.draw(st.integers(0, len(made) - 1))
    damaged = (
        made[:at] + data.draw(st.binary(max_size=8)) + made[at + data.draw(st.integers(0, 8)) :]
    )
    with contextlib.suppress(DocumentError):
        read(damaged, name)
