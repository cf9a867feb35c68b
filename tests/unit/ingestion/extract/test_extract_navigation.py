"""The navigation of a web page does not reach its text; lists of links that are content do."""

import io
import re
import time
import zipfile

import pytest

from callslip.config.settings import ExtractSettings
from callslip.ingestion.extract import extract
from callslip.ingestion.extract.readers.web.page import render

PROSE = "<p>Leave lasts fourteen months.</p>"
WORDS = ("Leave", "lasts", "fourteen", "months.")
LINKS = (
    "<li><a href='/a'>Alpha</a></li><li><a href='/b'>Beta</a></li><li><a href='/c'>Gamma</a></li>"
)


def words(body: str) -> list[str]:
    return render(f"<html><head><title>T</title></head><body>{body}</body></html>").text.split()


@pytest.mark.parametrize(
    "navigation",
    [
        f"<nav><h2>Menu</h2><ul>{LINKS}</ul>and words</nav>",
        f"<div role='navigation'><ul>{LINKS}</ul></div>",
        f"<header><ul>{LINKS}</ul></header>",
        "<header><a href='/'>Home</a> | <a href='/a'>Alpha</a> | <a href='/b'>Beta</a></header>",
        f"<footer><div><h4>Product</h4><ul>{LINKS}</ul></div></footer>",
        f"<div role='contentinfo'><ul>{LINKS}</ul></div>",
        "<ol class='breadcrumb'><li><a href='/'>Home</a> » <li aria-current='page'>Leave</ol>",
        "<ol itemtype='https://schema.org/BreadcrumbList'><li><a href='/'>Home</a></ol>",
        f"<div id='toc' class='toc'><p class='toctitle'>Contents</p><ul>{LINKS}</ul></div>",
        f"<ul class='mainMenu'>{LINKS}</ul>",
        "<ul><li><a href='#a'>1. One</a><li><a href='#b'>2. Two</a>"
        "<ol><li><a href='#c'>2.1 Deep</a></ol></ul>",
    ],
)
def test_navigation_does_not_reach_the_text(navigation: str) -> None:
    assert words(f"before {navigation} after {PROSE}") == [
        *("before", "after"),
        *WORDS,
    ]


@pytest.mark.parametrize(
    "content",
    [
        f"<article>{PROSE}<ul>{LINKS}</ul></article>",
        f"<article>{PROSE}<footer><ul>{LINKS}</ul></footer></article>",
        f"<div id='content'><ul>{LINKS}</ul></div>",
        "<ul class='menu'><li>Kimchi, <a href='/a'>more</a></ul>",
        "<header><h1><a href='/'>The title</a></h1></header>",
        "<header><h1>The title</h1> by <a href='/j'>J. Kim</a></header>",
        "<footer><p>Written in 2024 by the <a href='/board'>board</a>.</p></footer>",
        "<ul><li><a href='#a'>One</a><li><a href='#b'>Two</a></ul>",
        f"<div class='breadcrumb'><a href='/'>Home</a>{PROSE * 8}</div>",
    ],
)
def test_content_with_links_stays(content: str) -> None:
    def letters(text: str) -> str:
        return "".join(filter(str.isalpha, text))

    assert letters("".join(words(content))) == letters(re.sub("<[^>]*>", "", content))


@pytest.mark.parametrize(
    "links",
    [
        "<a href='#main-content'>Skip to main content</a>",
        "<a href='#start-of-content'>Skip to content</a>",
        "<!-- top --><div><a href='#contents'>본문 바로가기</a> <a href='#gnb'>주메뉴</a></div>",
        f"<nav><ul>{LINKS}</ul></nav><a class='mw-jump-link' href='#bodyContent'>Jump</a>",
        "<p>We use cookies.</p><a class='md-skip' href='#leave'>Skip to content</a>",
        "<p>We use cookies.</p><div id='skipNavigation'><a href='#a'>본문으로</a></div>",
    ],
)
def test_links_that_skip_to_the_content_do_not_reach_the_text(links: str) -> None:
    before = ["We", "use", "cookies."] if "cookies" in links else []
    assert words(f"{links}<main>{PROSE}</main>") == [*before, *WORDS]


@pytest.mark.parametrize(
    "start",
    [
        "<p><a href='#contents'>Contents</a> of the box:</p>",
        "<h1><a href='#content'>Leave</a></h1>",
        "<p><a href='#leave'>Parental leave</a></p>",
        "<p><a href='#main-dishes'>Main dishes</a></p>",
        "<p><a href='#bodyParts'>Body parts</a></p>",
        "<p>The box.</p><p><a href='#content'>Its contents</a></p>",
    ],
)
def test_links_to_the_same_page_that_are_content_stay(start: str) -> None:
    shown = re.sub("<[^>]*>", " ", start).split()
    assert words(f"{start}<main>{PROSE}</main>") == [*shown, *WORDS]


def test_marks_that_link_a_paragraph_to_itself_do_not_reach_the_text() -> None:
    marks = "<h2>Rules<a class='headerlink' href='#rules'>¶</a></h2><p>C# <a href='#c'>#</a>.</p>"
    assert words(f"{marks}{PROSE}") == ["Rules", "C#", ".", *WORDS]
    assert words(f"<p>See <a href='/law'>§</a>, <a href='#n'>§ 4</a>.</p>{PROSE}") == [
        *("See", "§,", "§", "4."),
        *WORDS,
    ]


def test_a_page_of_navigation_alone_keeps_its_text() -> None:
    assert words("<nav><a href='/a'>Alpha</a> <a href='/b'>Beta</a></nav>") == ["Alpha", "Beta"]


def test_the_navigation_of_a_book_is_no_chapter() -> None:
    container = (
        "<container xmlns='urn:oasis:names:tc:opendocument:xmlns:container'><rootfiles>"
        "<rootfile full-path='b.opf'/></rootfiles></container>"
    )
    package = (
        "<package xmlns='http://www.idpf.org/2007/opf'><manifest>"
        "<item id='n' href='n.xhtml' properties='nav'/><item id='c' href='c.xhtml'/></manifest>"
        "<spine><itemref idref='n'/><itemref idref='c'/></spine></package>"
    )
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("mimetype", "application/epub+zip")
        archive.writestr("META-INF/container.xml", container)
        archive.writestr("b.opf", package)
        archive.writestr("n.xhtml", f"<html><body><nav><ol>{LINKS}</ol></nav></body></html>")
        archive.writestr("c.xhtml", f"<html><body><h1>Leave</h1>{PROSE}</body></html>")
    text = extract(file.getvalue(), "book.epub", ExtractSettings()).text
    assert text.split() == ["Leave", *WORDS]


@pytest.mark.parametrize("unit", ["<ul class=toc><li>", "<li><a href='#a'>x</a>", "<nav>x</nav>y"])
def test_navigation_is_removed_in_linear_time(unit: str) -> None:
    def seconds(times: int) -> float:
        started = time.process_time()
        render(f"<p>text</p><ul class='toc'>{unit * times}</ul>")
        return time.process_time() - started

    seconds(100)
    assert seconds(16_000) < 80 * max(seconds(1_000), 0.01)
