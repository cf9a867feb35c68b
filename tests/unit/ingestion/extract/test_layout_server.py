"""Files that a layout server reads: what is sent, what comes back, and what when it cannot."""

import dataclasses
import io
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from docling_server import DoclingServer, docling_document, item, table
from memory_store import MemoryStore
from own_messy import pdf
from pdf_files import shown, with_files
from PIL import Image
from pipeline_parts import make_context, submit, with_backend
from pydantic import SecretStr

from callslip.cli.commands.installation.doctor import examine
from callslip.config import Loaded
from callslip.config.settings import ExtractSettings, IngestSettings, LayoutSettings, Settings
from callslip.errors import (
    BrokenFile,
    EmptyFile,
    LayoutServerDown,
    NoTextLayer,
    SettingsError,
)
from callslip.ingestion.context import StepContext
from callslip.ingestion.isolation.process import Extractor
from callslip.ingestion.layout_server import LayoutServer
from callslip.ingestion.pipeline import StepReport, run_step
from callslip.ingestion.reading import BY_LAYOUT_SERVER, MOST_TRIES, read_original
from callslip.ingestion.values import ExtractedText
from callslip.stores.blobs import Blobs
from callslip.stores.ledger import Ledger
from callslip.stores.records import CollectionSchema, VectorSpec

ONE = pdf("Own text of page one", "Own text of page two")


@pytest.fixture
def server() -> Iterator[DoclingServer]:
    with closing(DoclingServer()) as made:
        yield made


@pytest.fixture(scope="module")
def extractor() -> Iterator[Extractor]:
    with Extractor(ExtractSettings(ocr="off")) as made:
        yield made


UNREAD = "read without the layout server, which could not read the file ("
Read = Callable[..., ExtractedText]


@pytest.fixture
def read(server: DoclingServer, extractor: Extractor, tmp_path: Path) -> Iterator[Read]:
    """Reads a file with the server, under these settings."""
    with closing(Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")) as ledger:
        ledger.create()
        context = make_context(ledger, Blobs(str(tmp_path / "blobs")), MemoryStore())

        def run(
            data: bytes, filename: str = "a.pdf", attempt: int = 1, **options: Any
        ) -> ExtractedText:
            settings = LayoutSettings(**{"base_url": server.url, **options})
            changed = _with(context, extractor, settings)
            try:
                return read_original(changed, data, filename, {}, attempt)
            finally:
                if changed.layout_server:
                    changed.layout_server.close()

        yield run


def _with(context: StepContext, extractor: Extractor, settings: LayoutSettings) -> StepContext:
    made = LayoutServer(settings) if settings.base_url else None
    return dataclasses.replace(context, extractor=extractor, layout_server=made)


def test_no_file_is_sent_unless_the_address_is_set(server: DoclingServer, read: Read) -> None:
    assert Settings().layout.base_url is None
    text = read(ONE, base_url=None)
    assert "Own text of page one" in text.text
    assert server.requests == []


def test_a_pdf_is_read_by_the_server_and_keeps_its_pages(server: DoclingServer, read: Read) -> None:
    server.key, server.polls = "the-key", 3
    server.document = docling_document(
        [
            item(0, "Harbour rules", "title"),
            item(1, "Fees", "section_header", level=1),
            item(2, "Fees are due monthly."),
            item(3, "page 1 of 2", "page_footer", content_layer="furniture"),
            item(4, "wharf", "list_item", page=2, marker="a)"),
            item(5, "x = 1\n  y = 2", "code", page=2),
        ],
        [table(("Ship", "Fee"), ("small", "10"), page=2)],
    )
    text = read(ONE, "secret name.pdf", api_key=SecretStr("the-key"))
    assert text.text.strip().split("\n\n") == [
        "Harbour rules",
        "Fees",
        "Fees are due monthly.",
        "a) wharf",
        "x = 1\n  y = 2",
        "Ship | Fee\nsmall | 10",
    ]
    assert [(text.text[h.start : h.end], h.level) for h in text.headings] == [
        ("Harbour rules", 1),
        ("Fees", 2),
    ]
    assert [(p.number, text.text[p.start : p.end].split()[0]) for p in text.pages] == [
        (1, "Harbour"),
        (2, "a)"),
    ]
    assert text.text[text.blocks[1].start : text.blocks[1].header] == "Ship | Fee\n"
    assert (text.media_type, text.title) == ("application/pdf", "Harbour rules")
    assert text.warnings == (BY_LAYOUT_SERVER, "left out: headers and footers of pages (1)")
    assert server.files == [("document.pdf", "application/pdf", ONE)]
    assert server.options == {"to_formats": "json", "image_export_mode": "placeholder"}
    boxes = {text.text[box.start : box.end]: box for box in text.boxes}
    fees = boxes["Fees are due monthly."]
    assert (fees.page, fees.left, fees.top, fees.right, fees.bottom) == (1, 50, 120, 500, 140)
    assert boxes["Ship | Fee\nsmall | 10"].page == 2


def test_an_image_is_sent_under_its_type(server: DoclingServer, read: Read) -> None:
    buffer = io.BytesIO()
    Image.new("L", (40, 40)).save(buffer, "PNG")
    text = read(buffer.getvalue(), "scan")
    assert text.text.strip() == "Read by models."
    assert text.media_type == "image/png"
    assert server.files[0][:2] == ("document.png", "image/png")


@pytest.mark.parametrize(
    ("data", "name", "formats"),
    [(b"plain text", "a.txt", "pdf,image"), (ONE, "a.pdf", "image"), (b"# T\n\nx", "a.md", "pdf")],
)
def test_other_files_stay_here(
    server: DoclingServer, read: Read, data: bytes, name: str, formats: str
) -> None:
    assert BY_LAYOUT_SERVER not in read(data, name, formats=formats).warnings
    assert server.requests == []


@pytest.mark.parametrize(
    ("data", "error"), [(b"%PDF-1.7 and no more", BrokenFile), (b"", EmptyFile)]
)
def test_a_damaged_file_is_not_sent(
    server: DoclingServer, read: Read, data: bytes, error: type[Exception]
) -> None:
    with pytest.raises(error):
        read(data)
    assert server.requests == []


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda s: setattr(s, "state", "failure"), "its task ended with failure"),
        (lambda s: setattr(s, "state", "Quoted Text!"), "an unknown state"),
        (lambda s: setattr(s, "status", "failure"), "its state is failure"),
        (lambda s: s.faults.update({"/async": lambda: (422, b"{}")}), "it answered status 422"),
        (lambda s: s.faults.update({"/async": lambda: (413, b"{}")}), "it answered status 413"),
        (lambda s: setattr(s, "document", docling_document([])), "no-text"),
        (lambda s: setattr(s, "document", {"schema_name": "Other"}), "broken-file"),
        (
            lambda s: setattr(s, "document", docling_document([item(0, "far", page=10**9)])),
            "extraction-limit",
        ),
    ],
)
def test_what_the_server_cannot_read_is_read_without_it(
    server: DoclingServer, read: Read, change: Callable[[DoclingServer], None], why: str
) -> None:
    change(server)
    text = read(ONE)
    assert "Own text of page two" in text.text
    assert text.warnings[0].startswith(UNREAD)
    assert why in text.warnings[0]


def test_a_scan_that_neither_reads_says_what_to_install(server: DoclingServer, read: Read) -> None:
    server.state = "failure"
    buffer = io.BytesIO()
    Image.new("L", (40, 40)).save(buffer, "PNG")
    with pytest.raises(NoTextLayer):
        read(buffer.getvalue(), "scan.png")


def test_a_server_that_takes_too_long_is_left(server: DoclingServer, read: Read) -> None:
    server.polls = 1000
    text = read(ONE, timeout_seconds=1)
    assert text.warnings[0] == f"{UNREAD}it took longer than 1 s)"


def test_a_response_that_is_too_large_is_not_kept(server: DoclingServer, read: Read) -> None:
    server.document = docling_document([item(0, "x" * 2_000_000)])
    text = read(ONE, max_mb=1)
    assert "more than 1 MB" in text.warnings[0]


@pytest.mark.parametrize(
    ("path", "answer"),
    [
        ("/async", (500, b"")),
        ("/async", (429, b"")),
        ("/async", (200, b"<html>")),
        ("/async", (200, b"[]")),
        ("/async", (200, b'{"task_id": "../../admin", "task_status": "pending"}')),
        ("/poll", (503, b"")),
        ("/poll", (404, b"{}")),
        ("/result", (404, b"{}")),
        ("/result", (200, b'{"status": "success", "document": null}')),
    ],
)
def test_a_server_that_is_out_of_order_puts_the_document_off(
    server: DoclingServer, read: Read, path: str, answer: tuple[int, bytes]
) -> None:
    server.faults[path] = lambda: answer
    with pytest.raises(LayoutServerDown):
        read(ONE)
    assert not any("admin" in each for each in server.requests)


@pytest.mark.parametrize("path", ["/async", "/poll", "/result"])
def test_a_file_for_which_the_server_always_fails_is_read_without_it(
    server: DoclingServer, read: Read, path: str
) -> None:
    server.faults[path] = lambda: (500, b"")
    for attempt in range(1, MOST_TRIES):
        with pytest.raises(LayoutServerDown):
            read(ONE, attempt=attempt)
    text = read(ONE, attempt=MOST_TRIES)
    assert "Own text of page one" in text.text
    (note,) = [each for each in text.warnings if "layout server" in each]
    assert "status 500 at attempt 5" in note
    server.faults["/health"] = lambda: (500, b"")
    with pytest.raises(LayoutServerDown):
        read(ONE, attempt=MOST_TRIES)


def test_a_server_that_is_away_puts_the_document_off(read: Read) -> None:
    with pytest.raises(LayoutServerDown, match=r"http://127\.0\.0\.1:9 does not answer") as raised:
        read(ONE, base_url="http://user:secret@127.0.0.1:9")
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize("status", [401, 403, 404, 302])
def test_a_wrong_address_or_key_is_named(server: DoclingServer, read: Read, status: int) -> None:
    server.faults["/async"] = lambda: (status, b"")
    with pytest.raises(SettingsError, match=str(status)) as raised:
        read(ONE)
    assert "layout.api_key" in raised.value.advice


@pytest.mark.parametrize("url", ["ftp://a", "localhost:5001", "http://", "//", "http://xn--/"])
def test_an_address_that_is_none_is_refused_at_once(url: str) -> None:
    with pytest.raises(SettingsError, match=r"layout\.base_url"):
        LayoutServer(LayoutSettings(base_url=url))


def test_a_hostile_document_ends(server: DoclingServer, read: Read) -> None:
    loop = item(0, "once", children=[{"$ref": "#/texts/0"}, {"$ref": "#/texts/1"}])
    server.document = docling_document([loop, item(1, "twice", page=3)])
    text = read(ONE)
    assert text.text.split() == ["once", "twice"]
    assert [page.number for page in text.pages] == [1, 2, 3]
    huge = table(("a", "b"))
    huge["data"] |= {"num_rows": 10**9, "num_cols": 10**9}
    server.document = docling_document([], [huge])
    began = time.monotonic()
    assert "extraction-limit" in read(ONE).warnings[0]
    assert time.monotonic() - began < 30


def test_pages_that_the_server_could_not_read_are_named(server: DoclingServer, read: Read) -> None:
    server.status = "partial_success"
    assert "left out: pages that the layout server could not read" in read(ONE).warnings


def test_files_in_a_pdf_stay_documents(server: DoclingServer, read: Read) -> None:
    text = read(with_files(shown("Own text"), {"fees.txt": b"Fees are due."}))
    assert text.text.strip() == "Read by models."
    assert [(each.name, each.content) for each in text.attachments] == [
        ("fees.txt", b"Fees are due.")
    ]


@pytest.mark.parametrize("back", [True, False])
def test_a_document_waits_until_the_server_is_back_or_is_read_without_it(
    server: DoclingServer, extractor: Extractor, tmp_path: Path, back: bool
) -> None:
    store = MemoryStore()
    schema = CollectionSchema("papers", VectorSpec(4))
    store.ensure_schema(schema)
    with closing(Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")) as ledger:
        ledger.create()
        ledger.collections.create(schema, store="memory", embedder="tiny", analyzer="")
        made = make_context(ledger, Blobs(str(tmp_path / "blobs")), store)
        soon = made.settings.model_copy(update={"ingest": IngestSettings(retry_base_seconds=0.1)})
        made = with_backend(made, settings=soon)
        context = _with(made, extractor, LayoutSettings(base_url=server.url))
        assert context.layout_server is not None
        accepted = submit(context, ONE.decode(), "a.pdf")
        server.faults["/async"] = lambda: (503, b"")
        reports: list[StepReport] = []
        run_step(context, "extract", accepted.document_id, 1, reports.append)
        assert [each.outcome for each in reports] == ["retry"]
        assert isinstance(reports[0].error, LayoutServerDown)
        if back:
            server.faults.clear()
        until = time.monotonic() + 30
        while run_step(context, "extract", accepted.document_id, 1, reports.append) == "stop":
            assert time.monotonic() < until, reports[-1]
            time.sleep(0.1)
        retries = 1 if back else MOST_TRIES - 1
        assert [each.outcome for each in reports] == ["retry"] * retries + ["done"]
        (note,) = ledger.versions.of(accepted.document_id)[0].warnings
        assert (note == BY_LAYOUT_SERVER) is back
        assert (UNREAD in note) is not back
        context.layout_server.close()


@pytest.mark.long
def test_the_doctor_asks_whether_the_server_answers(server: DoclingServer) -> None:
    settings = Settings(layout=LayoutSettings(base_url=server.url))
    findings = examine(Loaded(settings, {}), "http://127.0.0.1:9")
    found = next(each for each in findings if each.part == "layout server")
    assert (found.ok, found.detail) == (True, server.url)
    lost = LayoutServer(LayoutSettings(base_url="http://127.0.0.1:9"))
    with closing(lost), pytest.raises(LayoutServerDown):
        lost.ping()
