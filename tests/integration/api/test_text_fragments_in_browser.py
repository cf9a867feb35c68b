"""A browser finds the sentences of a web page by the links of citations."""

from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

from callslip.agent.text_fragments import with_text
from callslip.ingestion.extract.readers.web.page import render
from callslip.retrieval.evidence.sentences import sentences

CHROMIUM = Path("/usr/bin/chromium")

PAGE = "http://pages.test/leave"
BEFORE = "<p>Of mastery and grades: 405 rules of trust.</p>"
FAR = "<div style='height: 4000px'></div>"

TEXTS = [
    "<p>Costs of 1,200 francs, 12.5% – or 30&nbsp;% with a well-founded request – are paid, e.g. by"
    " e-mail &amp; post; see “rules” (§ 4).</p>",
    "<p>This is <b>a sentence</b> with <a href='#x'>a link</a> and <code>code_of(x)</code>, that is"
    " so long, with one subordinate clause after the other, that a link has no more of it than the"
    " words at <i>both</i> of its ends.</p>",
    "<p>출산장려금은 첫째 자녀에게 200만 원을 지급한다. 신청은 출생일부터 60일 이내에, 관할"
    " 읍·면사무소(동 주민센터)에 한다.</p>",
    "<ol><li>An occasional gig for someone you know.<li>A speech on days off.</ol>",
    "<table><tr><th>Grades</th><th>Trust</th></tr><tr><td>Mastery</td><td>Work is reviewed.</td>"
    "</tr><tr><td>405</td><td>Not allowed</td></tr></table>",
    "<dl><dt>Lease</dt><dd>A right that ends.</dd><dt>Sweep</dt><dd>A task that repeats.</dd></dl>",
    "<p>The order is this.<a href='#order' style='visibility: hidden'>¶</a></p>",
    "<pre>A line of text that was wrapped at a\nfixed width goes on in the next line.</pre>",
]


@pytest.mark.long
def test_the_links_of_citations_lead_to_their_sentences() -> None:
    if not CHROMIUM.exists():
        pytest.skip(f"{CHROMIUM} is not installed")
    source = f"<!doctype html><meta charset=utf-8>{BEFORE}{FAR}{''.join(TEXTS)}{FAR}"
    text = render(source).text
    quotes = [text[span.start : span.end] for span in sentences(text)][1:]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM)
        page = browser.new_page()
        page.route(f"{PAGE}*", lambda route: route.fulfill(body=source, content_type="text/html"))
        for number, quote in enumerate(quotes):
            page.goto(with_text(f"{PAGE}?{number}", quote))
            page.wait_for_function("scrollY > 2000", timeout=10_000)
        browser.close()
    assert len(quotes) >= 14
