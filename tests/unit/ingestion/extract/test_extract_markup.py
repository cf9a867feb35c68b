"""Markup that is no text is cut from Markdown and reStructuredText, and every span follows."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callslip.config.settings import ExtractSettings
from callslip.ingestion.extract.cuts import Cut, cut
from callslip.ingestion.extract.readers.text import markdown, restructured
from callslip.ingestion.values import Block, ExtractedText, Heading, Link


def md(source: str) -> ExtractedText:
    return markdown.read(source.encode(), ExtractSettings())


def rst(source: str) -> ExtractedText:
    return restructured.read(source.encode(), ExtractSettings())


def links(text: ExtractedText) -> list[tuple[str, str]]:
    return [(text.text[link.start : link.end], link.target) for link in text.links]


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("See [the policy](/leave/#a) now.", "See the policy now."),
        ('See [the\npolicy](<a b> "Title").', "See the\npolicy."),
        ('Read [it]({% page "/travel/a" %}), please.', "Read it, please."),
        ('Ask in {% slack_channel "people-ops" %} first.', "Ask in people-ops first."),
        ("{% include 'a.html'\n  steps: x %}\nText {{ page.title }} here.", "Text  here."),
        ("{% raw %}kept{% endraw %}", "kept"),
        ("# Title {#the-id}\n\ntext", "# Title\n\ntext"),
        ("Text\n{: .note }\nmore", "Text\nmore"),
        ("![the logo](a.png) by us", "the logo by us"),
        ("[![build](https://shields.io/b.svg)](https://ci)\n\ntext", "\ntext"),
        ("[![a plan](plan.png)](full.png)", "a plan"),
        ("[Guide][g] and [g].\n\n[g]: https://x.org/a 'T'\n", "Guide and [g].\n\n"),
        ("Mail <https://x.org> or <a@b.c>", "Mail https://x.org or <a@b.c>"),
        ("<!-- hidden\n[a](b) -->shown", "shown"),
        ("a<br/>b <b>c</b> <VueSchoolLink href='x'>d</VueSchoolLink> 1 <2", "ab c d 1 <2"),
        ("<script setup>\nimport x\n</script>\n\ntext", "\ntext"),
        ("::: warning 주의\n조심\n:::\n", " 주의\n조심\n"),
        ("- [A](#a)\n- [B](#b)\n- [C](#c)\n\ntext", "\ntext"),
        ("- [A](#a)\n- [B](x.md)\n", "- A\n- B\n"),
        ("http://x.org/%EC%84%A4%20%EC%A0%95 end", "http://x.org/설%20정 end"),
        ("[[toc]]\ntext", "text"),
    ],
)
def test_markup_of_markdown_does_not_reach_the_text(source: str, text: str) -> None:
    assert md(source).text == text


@pytest.mark.parametrize(
    "source",
    [
        "```\n[a](b) {{ c }} <b>\n```",
        "Use `[a](b)` and ``{{ c }}`` or `<br>`.",
        "    {% code %}\n",
        "| a | b |\n|---|---|\n| 1 | 2 |\n",
        "- [ ] open\n- [x] done\n",
        "[Note]: This applies to all employees from 2024.",
        "[별표 1](제5조 관련)과 [별표 2](제6조), [Applicant](see section 4)",
        "\\[text](url) and values {.05, .01}",
        "A footnote[^1] and List<String>, x[0](1).\n\n[^1]: its text",
        "**bold** _it_ > 1\n\n1. one\n2. two\n",
        "<!-- without an end [a]",
    ],
)
def test_code_lists_and_tables_of_markdown_stay(source: str) -> None:
    kept = md(source).text
    assert kept == source.replace("x[0](1)", "x0") or kept == source


def test_front_matter_is_properties_and_no_text() -> None:
    text = md("---\ntitle: 휴가\nquestions:\n  - leave\n---\n\n# Body\n\ntext")
    assert text.text == "\n# Body\n\ntext"
    assert text.properties == {"title": "휴가", "questions": "leave"}
    assert [text.text[h.start : h.end] for h in text.headings] == ["Body"]


def test_a_page_of_front_matter_alone_has_its_title_as_text() -> None:
    text = md("---\ntitle: Open source\nredirect_to: /a\n---\n<!-- moved -->\n")
    assert (text.text, text.title) == ("Open source", "Open source")


def test_links_keep_their_words_and_targets() -> None:
    text = md(
        '# See [A](a.md) {#x}\n\n[B `c`](https://x.org "T") and <https://y.org>, [d][e]\n\n[e]: f'
    )
    assert links(text) == [
        ("A", "a.md"),
        ("B `c`", "https://x.org"),
        ("d", "f"),
        ("https://y.org", "https://y.org"),
    ]
    assert text.title == "See A"
    assert [text.text[h.start : h.end] for h in text.headings] == ["See A"]


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("Title\n=====\ntext\n", "Title\n\ntext\n"),
        ("=====\nTitle\n=====\n\ntext\n", "Title\n\n\ntext\n"),
        (
            ".. _label:\n\ntext :ref:`here <label>` and :class:`~flask.Flask`\\는",
            "\ntext here and Flask는",
        ),
        ("`the site <https://x.org>`_ and `other words`_.", "the site and other words."),
        (".. toctree::\n   :maxdepth: 2\n\n   a\n   b\n\ntext", "\ntext"),
        (
            ".. note:: Mind\n   this.\n\n.. versionadded:: 0.7\n",
            "Mind\n   this.\n\nNew in version 0.7\n",
        ),
        (".. a comment\n   of lines\n\ntext", "\ntext"),
        ("So::\n\n    x = `a`_\n\nDone.::\n\n    y\n", "So:\n\n    x = `a`_\n\nDone.\n\n    y\n"),
        (".. code-block:: python\n   :linenos:\n\n   x :ref:`x`\n", "\n   x :ref:`x`\n"),
        ("Literal ``:ref:`a` \\n`` stays", "Literal ``:ref:`a` \\n`` stays"),
        (
            ".. math:: x\n\n   \\frac{a}{b}\n\n:math:`\\frac{c}{d}` a\\\\b\\*",
            "\n   \\frac{a}{b}\n\n\\frac{c}{d} a\\b*",
        ),
        ("..\n\n   a quotation\n", "\n   a quotation\n"),
        ("IO\n==\ntext", "IO\n\ntext"),
        (".. [1] A footnote\n.. |x| image:: y.png\n", "[1] A footnote\n"),
        (
            "Use |The name|, |the  name|_ and ``|the name|``, |other| or a|the name|.\n\n"
            ".. |the name| replace:: *Call* :ref:`slip <x>`\n   and `more <https://x.org>`_\n",
            "Use *Call* slip and more, *Call* slip and more and ``|the name|``, |other|"
            " or a|the name|.\n\n",
        ),
        (
            "3\\ |nbsp|\\ km, a|--|b, |Call TM|, |bad|\n\n.. |nbsp| unicode:: 0xA0 .. no break\n"
            ".. |Call TM| unicode:: Call U+2122\n   .. trademark\n   :ltrim:\n"
            ".. |bad| unicode:: U+D800 x110000 &#x2014; 65\n",
            "3\u00a0km, a|--|b, Call™, —A\n\n",
        ),
        (
            "|Y| or |N|, |now|.\n\n.. |Y| image:: y.png\n   :width: 3\n   :alt: Yes,\n      all\n"
            "   :target: x\n.. |N| image:: n.png\n.. |now| date:: %Y\n",
            "Yes, all or , .\n\n",
        ),
        ("|T|\n===\n\n:math:`|T|`\n\n.. |T| replace:: Title\n", "Title\n\n\n|T|\n\n"),
        ("- |a|\n- |b|\n\n.. |a| replace:: |b|\n.. |b| replace:: |a|\n", "- |b|\n- |a|\n\n"),
        (
            "====  ====\nName  Text\n====  ====\n|x|   :ref:`a <b>` and :class:`~m.C`\\s\n"
            "====  ====\n\n.. |x| replace:: y\n",
            "====  ====\nName  Text\n====  ====\ny   a and Cs\n====  ====\n\n",
        ),
        (
            "+------------+---+\n| :ref:`long | b |\n| words <l>` | c |\n+------------+---+\n",
            "+------------+---+\n| long | b |\n| words | c |\n+------------+---+\n",
        ),
    ],
)
def test_markup_of_rst_does_not_reach_the_text(source: str, text: str) -> None:
    assert rst(source).text == text


def test_links_of_rst_keep_their_words_and_targets() -> None:
    text = rst("Title\n-----\n\n:doc:`/a/b`, `the site <https://x.org>`_, :func:`run <m.run>`\n")
    assert sorted(links(text)) == [
        ("/a/b", "/a/b"),
        ("run", "m.run"),
        ("the site", "https://x.org"),
    ]
    assert text.title == "Title"


def test_a_table_of_rst_is_whole_without_its_roles() -> None:
    text = rst(
        "+---+---+\n| A | B |\n+===+===+\n| :doc:`C <c>` | |x| |\n+---+---+\n\n.. |x| replace:: D\n"
    )
    (block,) = text.blocks
    assert (
        text.text[block.start : block.end]
        == "+---+---+\n| A | B |\n+===+===+\n| C | D |\n+---+---+"
    )
    assert text.text[block.start : block.header] == "+---+---+\n| A | B |\n+===+===+\n"
    assert links(text) == [("C", "c")]


def test_substitutions_at_most_double_a_text() -> None:
    size = 20_000
    text = rst(f".. |x| replace:: {'y' * size}\n\n" + "|x| " * size)
    assert len(text.text) < 10 * size


PIECES = st.lists(
    st.sampled_from(
        [
            *("[", "]", "(", ")", "](x)", "![a](b)", "{%", "%}", "{{ x }}", "`", "```\n", "\n"),
            *("# H {#i}\n", "<b>", "<!--", "-->", "| a | b |\n|--|--|\n", "가", "word ", "::\n"),
            *(
                "===\n",
                ":ref:`a <b>`",
                ".. note::",
                "   ",
                "- [a](#b)\n",
                "%41",
                "http://x/%EA%B0%80",
                "|x|",
                "\n.. |x| replace:: y\n",
                "\n+---+\n| :ref:`",
            ),
        ]
    ),
    max_size=40,
).map("".join)


@given(PIECES)
def test_spans_of_any_source_lie_in_its_text(source: str) -> None:
    for text in (md(source), rst(source)):
        size = len(text.text)
        assert all(0 <= h.start < h.end <= size for h in text.headings)
        assert all(
            text.text[h.start : h.end].strip() == text.text[h.start : h.end] for h in text.headings
        )
        assert all(0 <= b.start <= b.header <= b.end <= size for b in text.blocks)
        assert all(0 <= link.start < link.end <= size for link in text.links)


@given(st.text("ab \n", max_size=40), st.data())
def test_spans_follow_cuts(source: str, data: st.DataObject) -> None:
    offsets = st.integers(0, len(source))
    ends = sorted(data.draw(st.lists(offsets, max_size=8, unique=True)))
    cuts = [Cut(a, b) for a, b in zip(ends[::2], ends[1::2], strict=False)]
    start, end = sorted(data.draw(st.tuples(offsets, offsets)))
    link = Link(start, end, "t")
    kept = "".join(
        c
        for i, c in enumerate(source)
        if start <= i < end and not any(a <= i < b for a, b, _ in cuts)
    )
    found = cut(ExtractedText(source, "text/plain", links=(link,)), cuts)
    if found.links:
        (moved,) = found.links
        assert found.text[moved.start : moved.end].split() == kept.split()
    else:
        assert not kept.strip() or start == end


def test_headings_and_blocks_that_are_cut_whole() -> None:
    source = "gone\nhead\ncode\n"
    raw = ExtractedText(
        source,
        "x",
        headings=(Heading(0, 4, 1), Heading(5, 9, 2)),
        blocks=(Block(10, 14, "code", 10),),
    )
    found = cut(raw, [Cut(0, 4), Cut(5, 6, "H")])
    assert found.text == "Head\ncode\n"
    assert [found.text[h.start : h.end] for h in found.headings] == ["Head"]
    assert [found.text[b.start : b.end] for b in found.blocks] == ["code"]


@pytest.mark.parametrize("start", ["![a]( ", "!["])
@pytest.mark.parametrize("unit", ["{%a%}", "{{a}}", "(a)", "[a](b)"])
def test_what_is_almost_a_link_takes_no_exponential_time(start: str, unit: str) -> None:
    text = start + unit * 60
    assert md(text).text.startswith("!")
