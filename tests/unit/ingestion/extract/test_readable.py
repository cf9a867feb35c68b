"""The readable form of passages, and the anchors of headings in Markdown and HTML."""

import pytest

from callslip.config.settings import ExtractSettings
from callslip.ingestion.extract import extract
from callslip.ingestion.extract.readers.text.slugs import slug
from callslip.ingestion.readable import Readable
from callslip.ingestion.values import Block, Chunk, ExtractedText, Heading


def anchors(source: str, name: str) -> dict[str, str]:
    """The anchor of each heading by its words."""
    text = extract(source.encode(), name, ExtractSettings())
    return {text.text[h.start : h.end]: h.anchor for h in text.headings}


def pretty(text: ExtractedText, start: int, end: int, header: tuple[int, int] = (0, 0)) -> str:
    return Readable(text).pretty(Chunk("c", "", "", 0, 0, start, end, 1, header=header))


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("Hello, World!", "hello-world"),
        ("제2조 (출산 장려금)", "제2조-출산-장려금"),
        ("`a_b` and **bold** & more", "a_b-and-bold--more"),
        ("_Emphasis_ of snake_case", "emphasis-of-snake_case"),
        ("What's new in 3.11?", "whats-new-in-311"),
        ("Ünïcode – naïve", "ünïcode--naïve"),
        ("!?", ""),
    ],
)
def test_slugs_are_those_of_github(words: str, expected: str) -> None:
    assert slug(words) == expected


def test_headings_of_markdown_have_slugs_that_no_other_has() -> None:
    source = (
        "# Setup\n\n## Run `it`\n\nx\n\n## Run it\n\n## Run it-1\n\n## Run it\n\n## Own {#mine}\n"
    )
    text = extract(source.encode(), "a.md", ExtractSettings())
    assert [h.anchor for h in text.headings] == [
        *("setup", "run-it", "run-it-1", "run-it-1-1", "run-it-2", "mine"),
    ]


def test_headings_of_html_have_the_id_that_leads_to_them() -> None:
    page = """<html><body><main><h1>Guide</h1><p>Text of the guide.</p>
    <h2 id="scope">Scope <b>of</b> it</h2><p>x</p>
    <h2><span id="Terms">Terms</span></h2><p>x</p>
    <section id="rates"><h2>Rates</h2><p>x</p><h3>Deep</h3><p>x</p></section>
    <a name="old"></a><h2>Old</h2><p>x</p>
    <h2 id="two words">Spaced</h2><p>x</p><h2></h2><h2 id="again">Terms</h2><p>x</p>
    </main></body></html>"""
    text = extract(page.encode(), "a.html", ExtractSettings())
    assert [(text.text[h.start : h.end], h.anchor) for h in text.headings] == [
        ("Guide", ""),
        ("Scope of it", "scope"),
        ("Terms", "Terms"),
        ("Rates", "rates"),
        ("Deep", ""),
        ("Old", "old"),
        ("Spaced", ""),
        ("Terms", "again"),
    ]
    source = Readable(text)
    at = {
        word: source.anchor(text.text.index(word)) for word in ("Guide", "Scope", "Rates", "Deep")
    }
    assert at == {"Guide": "", "Scope": "scope", "Rates": "rates", "Deep": "rates"}
    assert source.anchor(len(text.text)) == "again"


def test_an_anchor_is_of_the_heading_above_or_of_one_that_encloses_it() -> None:
    text = "intro\nA\none\nB\ntwo\nC\nthree"
    headings = (Heading(6, 7, 1, "a"), Heading(12, 13, 2), Heading(18, 19, 1))
    source = Readable(ExtractedText(text, "text/html", headings=headings))
    words = ("intro", "A", "one", "B", "two", "C", "three")
    assert [source.anchor(text.index(word)) for word in words] == ["", *["a"] * 4, "", ""]


def test_a_passage_of_html_has_its_table_its_code_and_its_heading_in_markdown() -> None:
    page = (
        "<html><body><main><h2>Rates</h2><p>The rates are these.</p>"
        "<table><tr><th>Kind</th><th>Won</th></tr><tr><td>first</td><td>1,000</td></tr>"
        "<tr><td>sec|ond</td><td>2,000</td></tr></table><p>Run:</p><pre>a = 1\n  b = `2`</pre>"
        "</main></body></html>"
    )
    text = extract(page.encode(), "a.html", ExtractSettings())
    assert pretty(text, 0, len(text.text)).split("\n") == [
        *("## Rates", "", "The rates are these.", ""),
        *("| Kind | Won |", "| --- | --- |", "| first | 1,000 |", r"| sec\|ond | 2,000 |", ""),
        *("Run:", "", "```", "a = 1", "  b = `2`", "```"),
    ]
    start = text.text.index("The rates")
    assert pretty(text, start, text.text.index("Kind")) == ""


def test_empty_cells_of_a_row_keep_the_others_in_their_columns() -> None:
    text = "| Won\nfirst | | 1\n| | 2\n| 3"
    table = ExtractedText(text, "text/html", blocks=(Block(0, len(text), "table", 6),))
    assert pretty(table, 0, len(text)).split("\n") == [
        *("|  | Won |  |", "| --- | --- | --- |"),
        *("| first |  | 1 |", "|  |  | 2 |", "|  | 3 |  |"),
    ]
    last = len(text) - 3
    assert pretty(table, last, len(text), header=(0, 6)).split("\n")[-1] == "|  | 3 |"


def test_a_passage_that_continues_a_table_begins_with_its_header() -> None:
    text = "Kind | Won\nfirst | 1\nsecond | 2\n"
    table = Block(0, len(text) - 1, "table", 11)
    rows = text.index("second"), len(text)
    html = ExtractedText(text, "text/html", blocks=(table,))
    assert pretty(html, *rows, header=(0, 11)) == "| Kind | Won |\n| --- | --- |\n| second | 2 |\n"
    assert pretty(html, *rows) == "|  |  |\n| --- | --- |\n| second | 2 |\n"
    markdown = ExtractedText(text, "text/markdown", blocks=(table,))
    assert pretty(markdown, *rows, header=(0, 11)) == "Kind | Won\nsecond | 2\n"
    assert pretty(markdown, *rows) == ""


def test_a_form_that_is_the_same_as_the_text_is_never_made() -> None:
    for media_type in ("text/plain", "application/pdf"):
        assert pretty(ExtractedText("a\nb", media_type), 0, 3) == ""
    lines = ExtractedText("a   1\nb   2", "application/pdf", blocks=(Block(0, 11, "table", 0),))
    assert pretty(lines, 0, 11) == ""


def test_a_fence_is_longer_than_those_in_the_code() -> None:
    code = "````\nx\n````"
    text = ExtractedText(code, "text/html", blocks=(Block(0, len(code), "code", 0),))
    assert pretty(text, 0, len(code)) == f"`````\n{code}\n`````"
