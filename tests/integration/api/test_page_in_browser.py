"""The page at / in headless Chromium, over a running stack."""

import re
import uuid
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from api_calls import Api
from context_parts import LoneBroker, app_over
from playwright.sync_api import Browser, Dialog, FilePayload, Page, Route, expect, sync_playwright
from pydantic import SecretStr
from served import served
from stack import Stack

from callslip.api.identity.sessions import COOKIE
from callslip.api.identity.state import identity_of
from callslip.config.settings import ApiSettings, Settings
from callslip.stores.ledger import Ledger

CHROMIUM = Path("/usr/bin/chromium")
LIVE_MS, WAIT_MS = 120_000, 30_000

LEAVE = "Parental leave lasts fourteen months. The request is made eight weeks before it begins."
GRANT = "출산장려금은 첫째 자녀에게 이백만 원을 지급한다. 신청은 출생일부터 육십 일 이내에 한다."
TWINS = "For twins parental leave lasts twenty months."
OTHERS = [
    "The library opens at nine on weekdays and lends books for four weeks.",
    "Passwords have sixteen characters and are changed after an incident.",
    "Bulky waste is collected on the first Monday of each month.",
    "A parking permit for residents costs forty francs a year.",
    "The canteen serves two warm meals at noon.",
    "여권은 신청한 날부터 사 일 뒤에 받을 수 있다.",
    "Dogs are registered within ten days at the town hall.",
    "도서관은 월요일에 쉰다.",
]
"""So that a passage can stand out: an answer is told by how far it does."""

HOSTILE = "<img src=x onerror=alert(1)>"

DROP = """
(zone, [name, text]) => {
  const carried = new DataTransfer();
  carried.items.add(new File([text], name, { type: "text/plain" }));
  const told = { dataTransfer: carried, bubbles: true, cancelable: true };
  zone.dispatchEvent(new DragEvent("dragover", told));
  zone.dispatchEvent(new DragEvent("drop", told));
}
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if not CHROMIUM.exists():
        pytest.skip(f"{CHROMIUM} is not installed")
    expect.set_options(timeout=WAIT_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM)
        yield browser
        browser.close()


@pytest.fixture
def page(browser: Browser, stack: Stack) -> Iterator[Page]:
    """A page that fails the test on a script error, a breach of its policy or a foreign address."""
    context = browser.new_context(base_url=stack.url)
    context.set_default_timeout(WAIT_MS)
    page = context.new_page()
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda m: wrong.append(m.text) if "Content Security" in m.text else None)
    api = urlsplit(stack.url).netloc
    page.on("request", lambda r: wrong.append(r.url) if urlsplit(r.url).netloc != api else None)
    yield page
    context.close()
    assert not wrong


@pytest.fixture
def api(stack: Stack) -> Iterator[Api]:
    api = Api(stack)
    yield api
    api.http.close()


@pytest.fixture(scope="module")
def library(stack: Stack) -> Iterator[Api]:
    """A collection that answers questions about leave and the grant; tests leave it as it is."""
    with Api(stack) as api:
        sent = [api.send(text=text, name=f"{n}.txt") for n, text in enumerate(OTHERS)]
        sent += [
            api.send(text=f"{LEAVE} {TWINS}", name="leave.txt"),
            api.send(text=GRANT, name="grant.txt", title="출산장려금 조례"),
        ]
        for answer in sent:
            assert api.settled(answer.json()["document_id"])["state"] == "live"
        yield api


def file(name: str, text: str) -> FilePayload:
    return {"name": name, "mimeType": "text/plain", "buffer": text.encode()}


def is_live(page: Page, name: str) -> None:
    expect(page.locator("#document-list .slip.live").filter(has_text=name)).to_be_visible(
        timeout=LIVE_MS
    )


@pytest.mark.long
def test_files_that_are_chosen_before_the_script_runs_are_sent(page: Page, api: Api) -> None:
    waiting: list[Route] = []
    page.route("**/page.js*", lambda route: waiting.append(route))
    page.goto(f"/?collection={api.collection}", wait_until="commit")
    page.set_input_files("#files", [file("early.txt", "The canteen opens at nine.")])
    waiting[0].continue_()
    is_live(page, "early.txt")


@pytest.mark.long
def test_from_a_new_collection_to_a_passage_in_its_context(page: Page) -> None:
    name = f"page-{uuid.uuid4().hex[:8]}"
    page.goto("/")
    if page.get_by_text("New collection", exact=True).is_visible():
        page.get_by_text("New collection", exact=True).click()
    page.get_by_label("Name of the new collection").fill(name)
    page.get_by_role("button", name="Create").click()
    expect(page).to_have_url(re.compile(f"collection={name}$"))  # not an empty one before it
    expect(page.get_by_text("This collection is empty")).to_be_visible()

    surrounding = "\n\n".join(f"Paragraph {n} is about the canteen." for n in range(60))
    long = f"{surrounding}\n\n# Leave\n\n{LEAVE}\n\n# More\n\n{surrounding}"
    page.set_input_files("#files", [file("long.md", long), file("grant.txt", GRANT)])
    is_live(page, "long.md")
    is_live(page, "grant.txt")
    expect(page.locator("#tally")).to_have_text("2 live")
    expect(page.locator("#uploads li")).to_have_count(0)
    slip = page.locator("#document-list .slip").filter(has_text="grant.txt")
    slip.locator("summary").click()
    steps = slip.locator(".steps li")
    if not steps.first.is_visible():  # it had just unfolded by itself
        slip.locator("summary").click()
    expect(steps.locator(".word")).to_have_text(["done"] * 6)
    expect(steps.locator(".took").filter(has_text=" s")).to_have_count(6)

    page.get_by_label("Question", exact=True).fill("how long is parental leave?")
    page.get_by_label("Question", exact=True).press("Enter")
    hit = page.locator(".hit").first
    expect(hit.locator("mark").first).to_be_visible()
    assert "Parental" in hit.locator(".excerpt mark").all_text_contents()
    assert page.url.endswith(f"/?collection={name}&q=how+long+is+parental+leave%3F")
    link = hit.locator("a.in-context")
    link.press("Enter")
    expect(hit.locator(".passage-text")).to_contain_text(LEAVE)
    expect(hit.locator(".around").first).to_contain_text("…")
    expect(link).to_have_attribute("aria-expanded", "true")
    link.press("Enter")
    expect(hit.locator(".passage-text")).to_have_count(0)


@pytest.mark.long
def test_files_that_come_together_are_counted_together(page: Page, api: Api) -> None:
    api.live(text=LEAVE, name="first.txt")
    page.goto(f"/?collection={api.collection}")
    expect(page.locator(".batch")).to_have_count(0)
    files = [file(f"{n}.txt", f"{LEAVE} Number {n}.") for n in range(4)]
    page.set_input_files("#files", [*files, file("copy.txt", LEAVE)])
    shown = page.locator(".batch")
    expect(shown).to_contain_text("of 5 done", timeout=LIVE_MS)
    expect(shown).to_contain_text("4 of 4 done", timeout=LIVE_MS)  # the copy was refused
    expect(shown).to_contain_text("took ")
    expect(shown.locator("progress")).to_have_js_property("position", 1)
    expect(page.locator("#tally")).to_have_text("5 live")


@pytest.mark.long
def test_what_is_wrong_with_a_file_is_said_at_once_and_kindly(page: Page, api: Api) -> None:
    api.live(text=LEAVE, name="leave.txt")
    page.goto(f"/?collection={api.collection}")
    files = [file("leave.txt", LEAVE), file("copy.txt", LEAVE), file("empty.txt", "")]
    page.set_input_files("#files", files)
    uploads = page.locator("#uploads li")
    expect(uploads).to_have_count(3)
    expect(uploads.locator(".state")).to_have_text(["unchanged", "duplicate", "failed"])
    expect(uploads.nth(0)).to_contain_text("It is here already")
    expect(uploads.nth(1)).to_contain_text("already under another name")
    expect(uploads.nth(2)).to_contain_text("Empty file: 'empty.txt' has no bytes")
    expect(uploads.nth(2)).to_contain_text("Upload a file that has content.")
    uploads.nth(2).get_by_role("button", name="Dismiss").click()
    uploads.nth(1).get_by_role("button", name="Keep both").click()
    is_live(page, "copy.txt")
    expect(uploads).to_have_count(1)


@pytest.mark.long
def test_a_new_version_without_the_properties_of_the_one_before_is_said(
    page: Page, api: Api
) -> None:
    properties = {"doc_type": "policy", "year": 2026}
    document_id = api.live(text=LEAVE, name="leave.txt", properties=properties)
    page.goto(f"/?collection={api.collection}")
    slips = page.locator("#uploads li")
    page.set_input_files("#files", [file("leave.txt", TWINS)])
    expect(slips).to_contain_text(
        "Version 1 had properties that the new version has not: doc_type, year."
    )
    assert slips.locator("a").get_attribute("href") == f"/page/documents/{document_id}"
    slips.get_by_role("button", name="Dismiss").click()
    is_live(page, "leave.txt")
    page.set_input_files("#files", [file("leave.txt", LEAVE)])
    expect(slips).to_have_count(0)


@pytest.mark.long
def test_a_file_that_cannot_be_read_shows_its_error_and_advice(page: Page, api: Api) -> None:
    page.goto(f"/?collection={api.collection}")
    broken: FilePayload = {"name": "x.pdf", "mimeType": "", "buffer": b"%PDF-1.7 no pages at all"}
    page.set_input_files("#files", [broken])
    slip = page.locator("#document-list .slip.failed")
    expect(slip.locator(".steps .failed .step")).to_have_text("extract", timeout=LIVE_MS)
    expect(slip.locator(".problem .advice")).not_to_be_empty()
    expect(slip.locator(".problem")).to_be_visible()
    slip.get_by_role("link", name="Edit").click()
    sign = page.locator(".source .file").first.evaluate(
        "e => getComputedStyle(e, '::before').content"
    )
    assert sign == "none"


def test_a_text_that_is_dragged_stays_the_browsers(page: Page, api: Api) -> None:
    page.goto(f"/?collection={api.collection}")
    taken = page.locator("#q").evaluate(
        """(field) => {
          const carried = new DataTransfer();
          carried.setData("text/plain", "leave");
          const dropped = { dataTransfer: carried, bubbles: true, cancelable: true };
          return !field.dispatchEvent(new DragEvent("drop", dropped));
        }"""
    )
    assert not taken


@pytest.mark.long
def test_a_dropped_file_with_a_hostile_name_and_text_stays_text(page: Page, api: Api) -> None:
    dialogs: list[Dialog] = []
    page.on("dialog", lambda dialog: (dialogs.append(dialog), dialog.dismiss()))
    page.goto(f"/?collection={api.collection}")
    name = f"{HOSTILE}.txt"
    text = f"Parental leave {HOSTILE} <script>alert(2)</script> lasts fourteen months."
    page.locator("#drop").evaluate(DROP, [name, text])
    is_live(page, name)
    page.locator("#drop").evaluate(DROP, [name, ""])  # its error is written by the script
    expect(page.locator("#uploads .problem")).to_contain_text(HOSTILE)
    page.goto(f"/?collection={api.collection}&q=parental+{HOSTILE}")
    hit = page.locator(".hit").first
    expect(hit).to_contain_text(HOSTILE)
    hit.get_by_text("In context").click()
    expect(hit.locator(".passage-text")).to_contain_text("<script>alert(2)</script>")
    expect(page.locator("img")).to_have_count(0)
    assert not dialogs


def test_a_passage_that_takes_long_says_so_and_opens_once(page: Page, api: Api) -> None:
    api.live(text=LEAVE, name="leave.txt")
    page.goto(f"/?collection={api.collection}&q=parental+leave")
    routes: list[Route] = []

    def wait(route: Route) -> None:
        routes.append(route)

    page.route("**/page/passage?*", wait)
    link = page.locator(".hit a.in-context").first
    with page.expect_request("**/page/passage?*"):
        link.click()
    expect(link).to_have_text("Opening …")
    link.click()
    routes[0].continue_()
    expect(link).to_have_text("Close context")
    expect(page.locator(".hit .passage-text")).to_have_count(1)
    assert len(routes) == 1


def test_a_document_is_deleted_after_a_question(page: Page, api: Api) -> None:
    api.live(text=LEAVE, name="leave.txt")
    page.on("dialog", lambda dialog: dialog.accept())
    page.goto(f"/?collection={api.collection}")
    page.locator("#document-list summary").press("Enter")
    page.get_by_role("button", name="Delete leave.txt").click()
    expect(page.locator("#document-list .slip")).to_have_count(0)
    expect(page.locator("#tally")).to_have_text("No documents yet")


@pytest.mark.long
def test_a_filter_is_written_in_rows(page: Page, api: Api) -> None:
    api.live(text=LEAVE, name="a.txt", properties={"year": 2024})
    api.live(text=f"{LEAVE} Since 2026.", name="b.txt", properties={"year": 2026})
    page.goto(f"/?collection={api.collection}")
    page.get_by_label("Question", exact=True).fill("parental leave")
    page.locator("summary").filter(has_text="Options").click()
    page.get_by_label("Property").fill("year")
    page.get_by_label("Operator").select_option(">")
    page.get_by_label("Value").fill("2025")
    page.get_by_role("button", name="Add a line").click()
    expect(page.locator("#filters li")).to_have_count(2)
    page.get_by_label("Property").nth(1).fill("lang")
    page.get_by_label("Value").nth(1).fill("en")
    page.get_by_role("button", name="Search").click()
    expect(page.locator(".hit .source")).to_have_text(["b.txt"])


LAST = "how long does parental leave last?"

WATCH = """
() => {
  window.told = [];
  const look = () => window.told.push(document.querySelector(".doing")?.textContent);
  new MutationObserver(look).observe(document.body, { childList: true, subtree: true });
}
"""


def ask(page: Page, question: str, box: str = "Question") -> None:
    """Ask, and wait for what is answered to this question."""
    page.get_by_label(box, exact=True).fill(question)
    page.get_by_role("button", name="Answer" if box == "Question" else "Ask", exact=True).click()
    expect(page.locator("#answer-heading")).to_have_text(question)


@pytest.mark.long
def test_an_answer_opens_its_citation_with_the_sentence_marked(page: Page, library: Api) -> None:
    page.goto(f"/?collection={library.collection}")
    page.evaluate(WATCH)
    ask(page, LAST)
    assert "Searching …" in page.evaluate("window.told")
    answer = page.locator(".answer .answer-text")
    expect(answer).to_contain_text("Parental leave lasts fourteen months.")
    answer.get_by_text("[1]").click()
    sentence = page.locator("#citation-1 .sentence")
    expect(sentence).to_have_text("Parental leave lasts fourteen months.")
    expect(sentence).to_be_in_viewport()
    page.get_by_role("button", name="Helpful", exact=True).click()
    expect(page.locator(".feedback")).to_contain_text("Noted: helpful.")
    page.goto(page.locator("#citation-1 a.in-context").get_attribute("href") or "")
    expect(page.locator("#cited")).to_have_text("Parental leave lasts fourteen months.")


@pytest.mark.long
def test_further_hits_are_added_below_and_the_answer_stays(page: Page, library: Api) -> None:
    page.goto(f"/?collection={library.collection}")
    page.get_by_label("Question", exact=True).fill(LAST)
    page.evaluate(
        "document.querySelector('form.search').insertAdjacentHTML("
        "'beforeend', '<input type=hidden name=top value=3>')"
    )
    page.get_by_role("button", name="Answer", exact=True).click()
    expect(page.locator("#answer-heading")).to_have_text(LAST)
    expect(page.locator(".hits > li")).to_have_count(3)
    first = page.locator(".hits > li h3").all_inner_texts()
    page.get_by_role("link", name="More passages").click()
    expect(page.locator(".hits > li")).to_have_count(len(OTHERS) + 2)
    assert page.locator(".hits > li h3").all_inner_texts()[:3] == first
    expect(page.locator(".result-count")).to_contain_text(f"{len(OTHERS) + 2} passages")
    expect(page.locator("#hit-4 a.in-context")).to_be_focused()
    expect(page.get_by_role("link", name="More passages")).to_have_count(0)
    expect(page.locator("#answer-heading")).to_have_text(LAST)
    ask(page, "and for twins?", box="Ask further")
    more = page.get_by_role("link", name="More passages").get_attribute("href") or ""
    assert parse_qs(urlsplit(more).query)["q"] != ["and for twins?"], "of the whole question"


@pytest.mark.long
def test_a_conversation_stays_as_it_is_when_it_is_opened_again(page: Page, library: Api) -> None:
    page.goto(f"/?collection={library.collection}")
    ask(page, LAST)
    expect(page).to_have_url(re.compile("thread=[0-9a-f]{24}"))
    ask(page, "and for twins?", box="Ask further")
    for _ in range(2):
        expect(page.locator(".answer .answer-text")).to_contain_text("twenty months")
        expect(page.locator(".earlier .question-text")).to_have_text([LAST])
        page.reload()
    page.go_back()
    expect(page.locator("#answer-heading")).to_have_text(LAST)
    expect(page.locator(".earlier")).to_have_count(0)


@pytest.mark.long
def test_what_is_not_in_the_documents_is_not_answered(page: Page, library: Api) -> None:
    page.goto(f"/?collection={library.collection}")
    ask(page, "몽골의 수도는 어디인가요?")
    expect(page.locator(".answer .answer-text")).to_contain_text("확실한 답을 찾지 못했습니다.")
    expect(page.locator(".citation").first).to_be_visible()
    expect(page.locator(".feedback")).to_have_count(0)


@pytest.mark.long
def test_an_answer_that_cannot_be_is_told_with_advice(page: Page, library: Api) -> None:
    page.goto(f"/?collection={library.collection}&q=leave")
    page.route("**/page/answer", lambda route: route.continue_(post_data="collection=none"))
    page.get_by_role("button", name="Answer", exact=True).click()
    expect(page.locator("#outcome .problem")).to_contain_text("does not exist")
    page.unroute("**/page/answer")
    page.route("**/page/answer", lambda route: route.abort())
    page.get_by_role("button", name="Answer", exact=True).click()
    expect(page.locator("#outcome .problem")).to_contain_text("The server does not answer")
    page.unroute("**/page/answer")
    ask(page, LAST)


@pytest.mark.long
def test_asking_needs_no_script(browser: Browser, stack: Stack, library: Api) -> None:
    with browser.new_context(base_url=stack.url, java_script_enabled=False) as context:
        page = context.new_page()
        page.goto(f"/?collection={library.collection}")
        page.get_by_label("Question", exact=True).fill("출산 장려금은 얼마인가요?")
        page.get_by_role("button", name="Answer", exact=True).click()
        expect(page.locator(".answer .answer-text")).to_contain_text("이백만 원")
        expect(page.locator(".feedback")).to_be_hidden()
        page.locator("#citation-1").get_by_text("In context").click()
        expect(page.locator("#cited")).to_contain_text("이백만 원")
        expect(page.locator("#cited")).to_be_in_viewport()


@pytest.mark.long
def test_searching_and_reading_need_no_script(browser: Browser, stack: Stack, api: Api) -> None:
    api.live(text=GRANT, name="grant.txt", title="출산장려금 조례")
    with browser.new_context(base_url=stack.url, java_script_enabled=False) as context:
        page = context.new_page()
        page.goto(f"/?collection={api.collection}")
        expect(page.locator("#documents .without-script")).to_be_visible()
        expect(page.locator("#drop")).to_be_hidden()
        page.get_by_label("Question", exact=True).fill("출산 장려금은 얼마인가요?")
        page.get_by_role("button", name="Search").click()
        expect(page.locator(".hit mark").first).to_be_visible()
        page.get_by_text("In context").click()
        expect(page.locator(".passage-text")).to_contain_text("이백만 원")


@pytest.mark.parametrize("width", [320, 400, 1200])
def test_nothing_is_wider_than_the_window(page: Page, api: Api, width: int) -> None:
    properties = {"k" * 90: 2}
    api.live(text=f"{LEAVE} {'W' * 300}", name=f"{'n' * 200}.txt", properties=properties)
    page.set_viewport_size({"width": width, "height": 800})
    page.goto(f"/?collection={api.collection}&q=leave&key={'k' * 90}&operator=!%3D&value=1")
    expect(page.locator(".hits .hit")).to_have_count(1)
    page.get_by_role("button", name="Answer", exact=True).click()
    page.locator("#document-list summary").click()
    page.locator(".citation a.in-context").click()
    expect(page.locator(".citation .passage-text")).to_be_visible()  # it moves what is below it
    page.locator(".hits a.in-context").click()
    expect(page.locator(".hits .passage-text")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.long
def test_a_key_logs_in_uses_the_page_and_logs_out(browser: Browser, tmp_path: Path) -> None:
    api = ApiSettings(key=SecretStr("the-right-key"))
    settings = Settings(data_dir=tmp_path, store="tfidf", api=api)
    with closing(Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")) as ledger:
        ledger.create()
        app = app_over(settings, ledger=ledger, broker=LoneBroker())
        with (
            served(app, settings.api) as server,
            browser.new_context(base_url=f"http://127.0.0.1:{server.address[1]}") as context,
        ):
            page = context.new_page()
            page.goto("/")
            expect(page).to_have_title("Log in · Callslip")
            page.get_by_label("Key").fill("a wrong key")
            page.get_by_role("button", name="Log in").click()
            expect(page.get_by_role("alert")).to_contain_text(
                "the server does not know this key, or it is revoked or expired"
            )
            page.get_by_label("Key").fill("the-right-key")
            page.get_by_label("Key").press("Enter")
            page.get_by_label("Name of the new collection").fill("papers")
            page.get_by_role("button", name="Create").click()
            expect(page).to_have_url(re.compile("collection=papers$"))
            session = [c for c in context.cookies() if c["name"] == COOKIE]
            context.clear_cookies(name=COOKIE)
            page.locator("#files").set_input_files(file("a.txt", "A text."))
            expect(page.locator("#uploads .problem")).to_contain_text("Your login has ended")
            page.get_by_label("Question", exact=True).fill("leave")
            page.get_by_role("button", name="Answer", exact=True).click()
            expect(page.locator("#outcome .problem")).to_contain_text("Your login has ended")
            page.evaluate("document.querySelector('form.search').method = 'post'")
            page.evaluate("document.querySelector('form.search').action = '/page/corrections'")
            page.get_by_role("button", name="Search", exact=True).click()
            expect(page.get_by_role("alert")).to_contain_text("Nothing was changed.")
            with context.expect_page() as opened:
                page.get_by_role("link", name="Log in in another tab").click()
            expect(opened.value).to_have_title("Log in · Callslip")
            context.add_cookies(session)  # type: ignore[arg-type]  # as the browser gave them
            page.reload()
            expect(page.get_by_role("alert")).not_to_contain_text("Your login has ended")
            page.goto("/?collection=papers&q=leave")
            page.get_by_role("button", name="Log out").click()
            expect(page).to_have_title("Log in · Callslip")
            page.goto("/?collection=papers")
            expect(page).to_have_title("Log in · Callslip")
            page.get_by_label("Key").fill("the-right-key")
            page.get_by_label("Key").press("Enter")
            expect(page).to_have_url(re.compile("collection=papers$"))
        identity_of(app).close()
