"""Pages in headless Chromium over a ledger alone, without a stack: scripts and layout."""

import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from context_parts import LoneBroker, app_over
from ledger_moves import publish
from page_parts import blobs_in, make_collection
from playwright.sync_api import FloatRect, Locator, Page, expect, sync_playwright
from served import served

from callslip.api.adapters import compare_page
from callslip.api.identity.sessions import COOKIE
from callslip.api.identity.state import identity_of
from callslip.compat.faq.compare import Comparison
from callslip.config.settings import ApiSettings, Settings
from callslip.stores.ledger import Ledger

CHROMIUM = Path("/usr/bin/chromium")


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with closing(Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")) as ledger:
        ledger.create()
        publish(make_collection(ledger), "leave", ["c1"])
        yield ledger


@pytest.fixture
def page(ledger: Ledger, tmp_path: Path) -> Iterator[Page]:
    """A page that fails the test on a script error."""
    if not CHROMIUM.exists():
        pytest.skip(f"{CHROMIUM} is not installed")
    settings = Settings(data_dir=tmp_path, store="tfidf", api=ApiSettings(open=True))
    app = app_over(settings, ledger=ledger, broker=LoneBroker(), blobs=blobs_in(tmp_path))
    wrong: list[str] = []
    with served(app, settings.api) as server, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM)
        page = browser.new_page(base_url=f"http://127.0.0.1:{server.address[1]}")
        page.on("pageerror", lambda error: wrong.append(str(error)))
        yield page
        browser.close()
    identity_of(app).close()
    assert not wrong


def test_a_comparison_has_a_short_address(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    nothing = Comparison(query="leave", top_k=2, threshold=0, collections={}, merged=[])
    monkeypatch.setattr(compare_page, "compare", lambda *_: nothing)
    page.goto("/page/compare")
    page.get_by_label("Question").fill("leave")
    page.get_by_role("button", name="Compare").click()
    expect(page).to_have_url(re.compile(r"/page/compare\?q=leave&collection=papers$"))


@pytest.mark.long
@pytest.mark.parametrize("width", [390, 700, 1280])
def test_the_head_of_each_page_keeps_its_order(page: Page, ledger: Ledger, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    page.goto("/")
    page.context.add_cookies([{"name": COOKIE, "value": "x", "url": page.url}])  # as logged in
    page.goto("/")
    leave = page.get_by_role("button", name="Log out")
    page.get_by_text("New collection", exact=True).click()
    assert box(page.locator(".new-collection"))["y"] >= bottom(leave)
    assert box(page.locator(".collections li").first)["height"] < 40  # its name is on one line
    (document,) = ledger.documents.find("papers")
    for path in ("/page/compare", f"/page/documents/{document.document_id}"):
        page.goto(path)
        assert box(leave)["x"] + box(leave)["width"] > width - 60 - max(0, width - 1200) / 2
        page.get_by_role("link", name="Search and documents").click()
        expect(page).to_have_title("Callslip")
    page.goto("/login")
    assert box(page.get_by_role("button", name="Log in"))["y"] > bottom(page.get_by_label("Key"))


def box(element: Locator) -> FloatRect:
    """Where an element is, in pixels."""
    there = element.bounding_box()
    assert there is not None
    return there


def bottom(element: Locator) -> float:
    there = box(element)
    return there["y"] + there["height"]
