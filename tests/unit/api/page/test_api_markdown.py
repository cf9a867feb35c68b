"""Passages of Markdown documents as markup: what it has, its marks, and all that it cannot have."""

import html
import re
import time
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urlencode

import pytest
from context_parts import app_over
from hypothesis import given
from hypothesis import strategies as st
from ledger_moves import publish
from page_parts import answer, blobs_in, hit, make_collection, shelved

from callslip.api.page import pages
from callslip.api.page.markdown import LONGEST, inline, is_markdown, markup, passage_of
from callslip.api.page.marking import Passage
from callslip.ingestion.artifacts import EXTRACTED
from callslip.ingestion.values import Block, ExtractedText

ATTRIBUTES = {
    "a": {"href", "rel"},
    "ol": {"start"},
    "p": {"class"},
    "mark": {"class", "id"},
}
TAGS = {
    *("p", "ul", "ol", "li", "blockquote", "pre", "code", "hr", "br", "em", "strong", "a", "mark"),
    *("table", "thead", "tbody", "tr", "th", "td"),
}


class Elements(HTMLParser):
    """The elements of a markup as a browser would read them; raises at any that is not allowed."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.links: list[str | None] = []
        self.feed(str(source))
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in TAGS, tag
        assert {name for name, _ in attrs} <= ATTRIBUTES.get(tag, set()), (tag, attrs)
        for name, value in attrs:
            if name == "href":
                assert value is not None
                assert value.startswith(("http://", "https://", "mailto:")), value
                assert ("rel", "noopener nofollow") in attrs
                self.links.append(value)
            assert name != "class" or value in ("sentence", "heading", "around"), value
            assert name != "start" or (value or "").isdecimal(), value

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data}")

    def handle_decl(self, decl: str) -> None:
        raise AssertionError(f"a declaration: {decl}")

    def handle_pi(self, data: str) -> None:
        raise AssertionError(f"an instruction: {data}")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Run **`callslip up`** first.", "Run <strong><code>callslip up</code></strong> first."),
        ("Of 2 * 3 * 4 and snake_case_name.", "Of 2 * 3 * 4 and snake_case_name."),
        ("# No heading, - no list.", "# No heading, - no list."),
        ("See [the page](/x) <b>&amp;</b>.", "See <a>the page</a> &lt;b&gt;&amp;&lt;/b&gt;."),
    ],
)
def test_a_sentence_has_its_code_and_emphasis(text: str, shown: str) -> None:
    assert inline(text) == shown


HOSTILE = [
    "<script>alert(1)</script>",
    "<SCRIPT\n>alert(1)</SCRIPT >",
    '<img src=x onerror="alert(1)">',
    "<svg/onload=alert(1)><svg><script>alert(1)</script></svg>",
    "<a href='javascript:alert(1)'>x</a>",
    "[x](javascript:alert(1))",
    "[x](JaVaScRiPt:alert(1) 'title')",
    "[x](  javascript&#58;alert(1))",
    "[x](&#x6A;avascript:alert(1))",
    "[x](java\nscript:alert(1))",
    "[x](<java\tscript:alert(1)>)",
    "[x](vbscript:x) [x](file:///etc/passwd) [x](data:text/html;base64,PHNjcmlwdD4=)",
    "<javascript:alert(1)> <data:text/html,x>",
    "[x][1]\n\n[1]: javascript:alert(1)",
    "![x](https://evil.org/a.png) ![x](data:image/svg+xml,<svg/onload=alert(1)>)",
    "![<img src=x onerror=alert(1)>](x)",
    "[![x](data:image/png;base64,AA)](javascript:alert(1))",
    '[a"onmouseover="alert(1)](https://x.org/"onmouseover="alert(1))',
    "[x](https://x.org 'a\" onclick=\"alert(1)')",
    '<https://x.org/"onclick=alert(1)>',
    '```"><script>alert(1)</script>\n</code></pre><script>alert(1)</script>\n```',
    '``` js" onclick="alert(1)\nx\n```',
    "`</code><script>alert(1)</script>`",
    "    </pre><script>alert(1)</script>",
    "> > - 1. > <iframe src=//evil.org>\n> > - <style>*{}</style>",
    "| <b onclick=x> | ![x](y) |\n|:--|--:|\n| <object data=x> | [x](javascript:a) |",
    "# <h1 id=cited onclick=x> {onclick=x}\n\n<h1>\n===",
    "<!-- --><!DOCTYPE x><?php x ?><![CDATA[x]]>",
    "<form action=//evil.org><input name=q></form><base href=//evil.org><meta http-equiv=refresh>",
    "&lt;script&gt;alert(1)&lt;/script&gt; &#60;script&#62;",
    "[x](//evil.org) [x](/v1/documents) [x](#cited)",
    "**<b>__*`~~ [[[![](( <a <b",
    "\\<script>alert(1)\\</script> \x00 \x0b \x1b \ufffd",
    "4294967295. a\n\n999999999. b\n\n-1. c",
    "<details open ontoggle=alert(1)><math href='javascript:alert(1)'>x</math>",
]


@pytest.mark.parametrize("source", HOSTILE)
def test_markup_has_nothing_but_the_elements_of_markdown(source: str) -> None:
    for text in (source, f"x {source} y", f"- a\n\n  > {source}\n"):
        Elements(inline(text))
        made = markup(text, "alert script x")
        if made is not None:
            Elements(made)


@given(st.lists(st.sampled_from([*HOSTILE, "\n", "- ", "> ", "word "]), max_size=6).map("".join))
def test_no_mixture_has_anything_else(source: str) -> None:
    Elements(inline(source))
    made = markup(source, "word alert")
    if made is not None:
        Elements(made)


def test_links_lead_to_the_web_or_to_a_mailbox() -> None:
    made = markup("[a](https://x.org/?a=1&b=2 't') <http://y.org> <mailto:a@b.org> [c](d.md)", "")
    assert made is not None
    assert Elements(made).links == [
        *("https://x.org/?a=1&b=2", "http://y.org", "mailto:a@b.org"),
    ]
    assert "<a>c</a>" in made


def test_lists_code_tables_and_emphasis_are_rendered_with_the_words_marked() -> None:
    made = passage_of(
        "# Leave\n\nIt is **paid**:\n\n1. for `14` months\n\n"
        "| A | B |\n|---|--:|\n| leave | 2 |\n\n```sh\nls <leave>\n```\n![the plan](plan.png)",
        "Leave",
        "a.MD",
        "leave",
    )
    assert made == (
        "<p>It is <strong>paid</strong>:</p>\n<ol>\n<li>for <code>14</code> months</li>\n</ol>\n"
        "<table>\n<thead>\n<tr>\n<th>A</th>\n<th>B</th>\n</tr>\n</thead>\n<tbody>\n<tr>\n"
        "<td><mark>leave</mark></td>\n<td>2</td>\n</tr>\n</tbody>\n</table>\n"
        "<pre><code>ls &lt;<mark>leave</mark>&gt;\n</code></pre>\n<p>the plan</p>\n"
    )


@pytest.mark.parametrize("filename", ["a.txt", "a.rst", "a.md.html", "", "md"])
def test_other_text_stays_plain(filename: str) -> None:
    assert not is_markdown(filename)
    assert isinstance(passage_of("- **a**", "", filename, "a"), Passage)


TEXT = (
    '## Steps\n\nIt is *paid* in full. See:\n\n1. **Apply** early, "in writing".\n2. Wait.\n\n'
    "| Years | Days |\n|---|---|\n| 1 | 20 |\n\nIt is *paid* in full.\n\nA &amp; B.\n"
)


@pytest.mark.parametrize(
    ("sentence", "marked"),
    [
        ("It is *paid* in full.", "It is paid in full."),
        ('1. **Apply** early, "in writing".', 'Apply early, "in writing".'),
        (
            'See:\n\n1. **Apply** early, "in writing".\n2. Wait.',
            'See:Apply early, "in writing".Wait.',
        ),
        ("| 1 | 20 |", "120"),
        ("Steps", "Steps"),
    ],
)
def test_the_cited_sentence_is_marked_in_the_markup(sentence: str, marked: str) -> None:
    start = TEXT.index(sentence)
    made = markup(TEXT, "", sentence=(start, start + len(sentence)))
    assert made is not None
    assert "".join(re.findall("<mark class=[^>]*>(.*?)</mark>", html.unescape(made))) == marked
    assert made.count('id="cited"') == 1


def test_of_equal_sentences_the_cited_one_is_marked() -> None:
    made = markup("It is *so*.\n\nNo.\n\nIt is *so*.", "is", sentence=(18, 29))
    assert made is not None
    assert made.index("No.") < made.index('<mark class="sentence" id="cited">It <mark>is</mark> ')


def test_where_a_sentence_cannot_be_marked_exactly_the_text_is_plain() -> None:
    start = TEXT.index("A &amp; B")
    assert markup(TEXT, "", sentence=(start, start + 9)) is None
    assert markup("a\n```\ncut within code", "") is None
    assert markup("a" * (LONGEST + 1), "") is None


def test_a_long_passage_is_shown_by_the_blocks_with_the_marks() -> None:
    text = "# H\n\n" + "Nothing of it.\n\n" * 60 + "- Leave lasts.\n- Long.\n\n" + "More.\n\n" * 60
    made = passage_of(text, "H", "a.md", "leave", 200)
    assert not isinstance(made, Passage)
    assert "<li><mark>Leave</mark> lasts.</li>" in made
    assert made.startswith('<p class="around">…</p>')
    assert made.endswith('<p class="around">…</p>\n')
    assert len(made) < 700
    assert isinstance(passage_of("a word " * 200, "", "a.md", "leave", 200), Passage)


@pytest.mark.long
@pytest.mark.parametrize("unit", ["[", "*a ", "![", "> ", "1. a\n", "*_", "a\n", "|", "    - a\n"])
def test_hostile_markdown_is_rendered_in_bounded_time(unit: str) -> None:
    started = time.process_time()
    markup((unit * LONGEST)[:LONGEST], "a", sentence=(0, 1))
    assert time.process_time() - started < 5


def test_hits_of_markdown_are_rendered_without_their_extract_and_passages_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = "| Years | Days |\n|---|---|\n| 1 | 20 |\n| 2 | 25 |\n"
    text = f"# Leave\n\n{rows}\n- **Fourteen** months.\n\nAfter."
    with shelved(tmp_path) as ledger:
        make_collection(ledger)
        blobs = blobs_in(tmp_path)
        client = app_over(ledger=ledger, blobs=blobs).test_client()
        item = publish(ledger, text, ["c1"])
        table = Block(text.index("|"), text.index("\n\n-"), "table", text.index("| 1"))
        parts = ExtractedText(text, "text/markdown", blocks=(table,))
        blobs.write(item.document_id, "extract-artifact", EXTRACTED.dump(parts))
        header = text[table.start : table.header].strip()
        shown = hit("| 2 | 25 |\n\n- **Fourteen** months.").model_copy(
            update={
                **{"document_id": item.document_id, "filename": "leave.md"},
                "properties": {"table_header": header},
            }
        )
        monkeypatch.setattr(pages, "ask", lambda _, request: answer(request.query, shown))
        with monkeypatch.context() as unread:
            unread.delattr(type(blobs), "read")
            page = client.get("/?q=months").text
        assert '<div class="markdown excerpt" lang="en"><table>' in page
        assert "<li><strong>Fourteen</strong> <mark>months</mark>.</li>" in page
        start, cited = text.index("| 2"), text.index("**Fourteen")
        location = {"start": start, "end": text.index("\n\nAfter"), "from": cited}
        location |= {"to": text.index("\n\nAfter")}
        page = client.get(
            f"/page/passage?{urlencode({'document': item.document_id} | location)}"
        ).text
        assert "<th>Years</th>" in page.split('<div class="passage-text">')[1]
        assert '<strong><mark class="sentence" id="cited">Fourteen</mark></strong>' in page
        assert '<div class="around"><p>After.</p>' in page
