"""The originals of documents and the pages of PDFs over HTTP."""

import hashlib
import io
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlencode

import numpy as np
import pypdfium2 as pdfium
import pytest
from context_parts import app_over
from flask.testing import FlaskClient
from ledger_moves import store_chunks, taken
from own_messy import pdf
from page_parts import blobs_in, make_collection, shelved
from PIL import Image
from werkzeug.http import parse_options_header

from callslip.api.v1 import files
from callslip.callers import Caller
from callslip.cli.commands.documents.status import _tell_document
from callslip.config.settings import ExtractSettings
from callslip.ingestion.artifacts import EXTRACTED
from callslip.ingestion.corrections.applying import with_corrections
from callslip.ingestion.corrections.text_edits import TextEdit, corrections_of
from callslip.ingestion.extract import extract
from callslip.ingestion.extract.readers.pdf.drawing import MOST_PIXELS
from callslip.messages.options import Options
from callslip.stores.blobs import original_name
from callslip.stores.ledger import Ledger, Submission

HTML = b"<script>alert(1)</script><p>Rates</p>"
SVG = b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'
YELLOW = (255, 231, 140)


def encrypted(content: bytes) -> bytes:
    """A PDF that opens only with a password."""
    keys = f"/O <{'5a' * 32}> /U <{'a5' * 32}>".encode()
    lock = b"/Encrypt << /Filter /Standard /V 1 /R 2 /P -4 " + keys + b" >> /ID [<00> <00>]"
    return content.replace(b"/Root 1 0 R", b"/Root 1 0 R " + lock)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with shelved(tmp_path) as made:
        yield make_collection(made)


@pytest.fixture
def client(ledger: Ledger, tmp_path: Path) -> Iterator[FlaskClient]:
    app = app_over(ledger=ledger, blobs=blobs_in(tmp_path))
    yield app.test_client()
    app.extensions["callslip"].close()


def live(ledger: Ledger, tmp_path: Path, content: bytes, filename: str) -> str:
    """A live document with this file; its id."""
    digest = hashlib.sha256(content).hexdigest()
    known = ledger.documents.id_of("papers", filename, tenant="")
    document_id, blobs = known or uuid.uuid4().hex, blobs_in(tmp_path)
    sent = Submission(filename, filename, "", digest, len(content), {})
    item = ledger.documents.submit("papers", sent, document_id)
    blobs.write(document_id, original_name(digest), content)
    ledger.leases.go_live(store_chunks(ledger, item, [document_id]), [document_id], {})
    return document_id


def live_text(ledger: Ledger, tmp_path: Path, content: bytes, filename: str = "a.pdf") -> str:
    """The same with the text of the file."""
    document_id = live(ledger, tmp_path, content, filename)
    text = extract(content, filename, ExtractSettings())
    blobs_in(tmp_path).write(document_id, "extract-artifact", EXTRACTED.dump(text))
    return document_id


@pytest.mark.long
@pytest.mark.parametrize(
    ("filename", "content", "media_type"),
    [
        ("rates.html", HTML, "text/html"),
        ("drawing.svg", SVG, "application/octet-stream"),
        ("scan.tiff", b"II*\0" + HTML, "image/tiff"),
        ("fees.xls", HTML, "application/vnd.ms-excel"),
        ("page.pdf", pdf("One"), "application/pdf"),
        ("no ending", pdf("One"), "application/pdf"),
        ("notes.txt", HTML, "text/plain"),
        ("휴가 규정.pdf", pdf("One"), "application/pdf"),
    ],
)
@pytest.mark.parametrize("show", [False, True])
def test_an_original_is_as_it_was_sent_and_runs_nowhere(
    client: FlaskClient,
    ledger: Ledger,
    tmp_path: Path,
    filename: str,
    content: bytes,
    media_type: str,
    show: bool,
) -> None:
    document_id = live(ledger, tmp_path, content, filename)
    response = client.get(f"/v1/documents/{document_id}/file?show={show}")
    assert response.status_code == 200
    assert response.data == content
    assert response.content_type == media_type
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    disposition, policy = (
        response.headers[name] for name in ("Content-Disposition", "Content-Security-Policy")
    )
    harmless = media_type in ("application/pdf", "text/plain")
    assert disposition.startswith("inline" if show and harmless else "attachment")
    assert policy.startswith("default-src 'none'" if show and "pdf" in media_type else "sandbox;")
    assert "script-src" not in policy
    assert response.headers["Cache-Control"] == "no-store"


def test_ranges_and_etags_of_an_original(
    client: FlaskClient, ledger: Ledger, tmp_path: Path
) -> None:
    url = f"/v1/documents/{live(ledger, tmp_path, b'0123456789', 'a.txt')}/file"
    part = client.get(url, headers={"Range": "bytes=3-5"})
    assert (part.status_code, part.data) == (206, b"345")
    assert part.headers["Content-Range"] == "bytes 3-5/10"
    beyond = client.get(url, headers={"Range": "bytes=90-"})
    assert beyond.status_code == 416
    etag = client.get(url).headers["ETag"]
    again = client.get(url, headers={"If-None-Match": etag})
    assert (again.status_code, again.data) == (304, b"")


def test_every_version_keeps_its_file(client: FlaskClient, ledger: Ledger, tmp_path: Path) -> None:
    document_id = live(ledger, tmp_path, b"first", "a.txt")
    assert live(ledger, tmp_path, b"second", "a.txt") == document_id
    url = f"/v1/documents/{document_id}/file"
    assert client.get(url).data == b"second"
    assert client.get(f"{url}?version=1").data == b"first"
    assert client.get(f"{url}?version=3").status_code == 404
    blobs_in(tmp_path).delete(document_id)
    gone = client.get(url)
    assert gone.status_code == 404
    assert "no file" in gone.text


def test_a_page_is_drawn_with_the_lines_of_a_text_marked(
    client: FlaskClient, ledger: Ledger, tmp_path: Path
) -> None:
    document_id = live_text(ledger, tmp_path, pdf("First page", "Second page"))
    url = f"/v1/documents/{document_id}/pages"
    plain = client.get(f"{url}/2.png?width=612")
    assert (plain.status_code, plain.content_type) == (200, "image/png")
    assert not marked(plain.data)
    text = "First page\n\nSecond page"
    start = text.index("page", 15)
    drawn = client.get(f"{url}/2.png?width=612&start={start}&end={start + 4}")
    left, top, right, bottom = marked(drawn.data) or (0, 0, 0, 0)
    assert 115 < left < right < 180
    assert 70 < top < bottom < 105
    other = client.get(f"{url}/1.png?width=612&start={start}&end={start + 4}")
    assert not marked(other.data)
    again = client.get(f"{url}/2.png?width=612", headers={"If-None-Match": plain.headers["ETag"]})
    assert (again.status_code, again.data) == (304, b"")
    any_of_it = client.get(f"{url}/2.png?width=612", headers={"If-None-Match": "*"})
    assert (any_of_it.status_code, any_of_it.data) == (304, b"")
    assert plain.headers["Cache-Control"].startswith("private")


@pytest.mark.long
def test_the_marks_of_a_corrected_version_are_those_of_its_text(
    client: FlaskClient, ledger: Ledger, tmp_path: Path
) -> None:
    content = pdf("First page", "Second page")
    document_id = live_text(ledger, tmp_path, content)
    url = f"/v1/documents/{document_id}/pages/2.png?width=612&start=12&end=18"
    before = client.get(url)
    sent = Submission("a.pdf", "a.pdf", "Renamed", hashlib.sha256(content).hexdigest(), 1, {})
    item = ledger.documents.submit("papers", sent, document_id)
    ledger.leases.go_live(store_chunks(ledger, item, [document_id]), [document_id], {})
    text = extract(content, "a.pdf", ExtractSettings())
    corrections, _ = corrections_of(text.text, [TextEdit(0, 5, "1st")])
    shifted = EXTRACTED.dump(with_corrections(text, corrections))
    blobs_in(tmp_path).write(document_id, "extract-artifact", shifted)
    after = client.get(url, headers={"If-None-Match": before.headers["ETag"]})
    assert after.status_code == 200
    assert marked(after.data) != marked(before.data)


def marked(png: bytes) -> tuple[int, int, int, int] | None:
    """The box around what has the color of marks."""
    pixels = np.asarray(Image.open(io.BytesIO(png)).convert("RGB"))
    return Image.fromarray((pixels == YELLOW).all(axis=-1)).getbbox()


@pytest.mark.long
@pytest.mark.parametrize("number", ["0", "3", "99999999999999999999", "-1", "1.5", "one", "²"])
def test_a_page_that_is_not_there_is_named(
    client: FlaskClient, ledger: Ledger, tmp_path: Path, number: str
) -> None:
    document_id = live_text(ledger, tmp_path, pdf("First", "Second"))
    for headers in ({}, {"If-None-Match": "*"}):
        response = client.get(f"/v1/documents/{document_id}/pages/{number}.png", headers=headers)
        assert response.status_code == 404
        assert "page-not-found" in response.json["type"]  # type: ignore[index]


@pytest.mark.long
@pytest.mark.parametrize(
    ("content", "filename", "slug"),
    [
        (b"Some text.", "a.txt", "page-not-found"),
        (pdf("One")[:200], "cut.pdf", "broken-file"),
        (b"%PDF-1.7 and nothing more", "empty.pdf", "broken-file"),
        (encrypted(pdf("One")), "secret.pdf", "needs-password"),
    ],
)
def test_what_cannot_be_drawn_is_named(
    client: FlaskClient, ledger: Ledger, tmp_path: Path, content: bytes, filename: str, slug: str
) -> None:
    document_id = live(ledger, tmp_path, content, filename)
    response = client.get(f"/v1/documents/{document_id}/pages/1.png")
    assert 400 <= response.status_code < 500
    assert slug in response.json["type"]  # type: ignore[index]


@pytest.mark.long
@pytest.mark.parametrize("size", [(28_346, 28_346), (28_346, 10), (10, 28_346), (1, 1)])
def test_a_page_of_any_size_is_an_image_of_bounded_size(
    client: FlaskClient, ledger: Ledger, tmp_path: Path, size: tuple[int, int]
) -> None:
    file = io.BytesIO()
    with pdfium.PdfDocument(pdf("One")) as document:
        page = document[0]
        page.set_mediabox(0, 0, *size)
        document.save(file)
        page.close()
    document_id = live(ledger, tmp_path, file.getvalue(), "large.pdf")
    response = client.get(f"/v1/documents/{document_id}/pages/1.png?width=3000")
    assert response.status_code == 200
    width, height = Image.open(io.BytesIO(response.data)).size
    assert 1 <= width * height <= MOST_PIXELS * 1.05
    assert width <= 3000


@pytest.mark.long
@pytest.mark.parametrize(
    "query",
    [
        *("width=1", "width=99999", "start=-1", "version=0", "other=1"),
        *("start=1_0", "end=+5", "width=%D9%A3%D9%A0%D9%A0", "version=%201"),
    ],
)
def test_an_invalid_query_is_named(
    client: FlaskClient, ledger: Ledger, tmp_path: Path, query: str
) -> None:
    document_id = live_text(ledger, tmp_path, pdf("One"))
    response = client.get(f"/v1/documents/{document_id}/pages/1.png?{query}")
    assert response.status_code == 400
    assert query.partition("=")[0] in response.text


@pytest.mark.long
def test_the_passage_of_a_pdf_is_shown_on_its_page(
    client: FlaskClient, ledger: Ledger, tmp_path: Path
) -> None:
    document_id = live_text(ledger, tmp_path, pdf("First page", "Second page"))
    where = {"document": document_id, "start": 12, "end": 23, "from": 12, "to": 18}
    page = client.get(f"/page/passage?{urlencode(where)}")
    assert page.status_code == 200
    image = f"/v1/documents/{document_id}/pages/2.png?version=1&amp;start=12&amp;end=18"
    assert f'src="{image}"' in page.text
    assert "p. 2 of" in page.text
    assert f"/v1/documents/{document_id}/file?show=True&amp;version=1#page=2" in page.text
    assert client.get(image.replace("&amp;", "&")).status_code == 200


@pytest.mark.long
@pytest.mark.parametrize("damage", [encrypted, lambda content: content[:200]])
def test_the_text_stands_in_for_a_page_that_cannot_be_drawn_any_more(
    client: FlaskClient, ledger: Ledger, tmp_path: Path, damage: Callable[[bytes], bytes]
) -> None:
    content = pdf("First page", "Second page")
    document_id = live_text(ledger, tmp_path, content)
    name = original_name(hashlib.sha256(content).hexdigest())
    blobs_in(tmp_path).write(document_id, name, damage(content))
    assert client.get(f"/v1/documents/{document_id}/pages/2.png").status_code >= 400
    where = {"document": document_id, "start": 12, "end": 23, "from": 12, "to": 18}
    page = client.get(f"/page/passage?{urlencode(where)}")
    assert page.status_code == 200
    assert "Second" in page.text
    assert 'alt="p. 2, with the passage marked"' in page.text


def test_a_table_is_csv_that_a_browser_saves(
    client: FlaskClient, ledger: Ledger, tmp_path: Path
) -> None:
    document_id = live_text(
        ledger, tmp_path, "ship,sum\nAurora,=1+1\n하늘호,12\n".encode(), "선박.csv"
    )
    response = client.get(f"/v1/documents/{document_id}/tables/1.csv")
    assert response.status_code == 200
    assert response.content_type == "text/csv; charset=utf-8"
    assert response.text == "ship,sum\r\nAurora,=1+1\r\n하늘호,12\r\n"
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert response.headers["Content-Disposition"].startswith("attachment")
    assert client.get(f"/v1/documents/{document_id}/tables/1.csv?version=1").text == response.text


@pytest.mark.parametrize("number", ["0", "2", "99999999999999999999", "-1", "one"])
def test_a_table_that_is_not_there_is_named(
    client: FlaskClient, ledger: Ledger, tmp_path: Path, number: str
) -> None:
    document_id = live_text(ledger, tmp_path, b"ship,sum\nAurora,1\n", "a.csv")
    response = client.get(f"/v1/documents/{document_id}/tables/{number}.csv")
    assert response.status_code == 404
    assert "document-table-not-found" in response.json["type"]  # type: ignore[index]


def test_what_a_reader_leaves_out_is_shown_of_the_document_and_of_the_version(
    client: FlaskClient, ledger: Ledger, capsys: pytest.CaptureFixture[str]
) -> None:
    item = ledger.documents.submit("papers", Submission("a", "a", "", "0" * 64, 1, {}), "d" * 32)
    left_out = "left out: comments on pages (2)"
    ledger.leases.finish(taken(ledger, item), "artifact", {}, (left_out,))
    url = f"/v1/documents/{item.document_id}"
    document, history = (client.get(path).json for path in (url, f"{url}/versions"))
    assert document["warnings"] == history["versions"][0]["warnings"] == [left_out]  # type: ignore[index]
    assert isinstance(document, dict)
    _tell_document(document)
    assert left_out in capsys.readouterr().out


@pytest.mark.parametrize("name", ["휴가 규정.txt", "a“b”.txt", "é.txt", 'a"b;c.txt', "a%41.txt"])
def test_a_name_in_any_letters_is_in_a_header_in_ascii(
    client: FlaskClient, ledger: Ledger, tmp_path: Path, name: str
) -> None:
    document_id = live(ledger, tmp_path, b"Some text.", name)
    header = client.get(f"/v1/documents/{document_id}/file").headers["Content-Disposition"]
    assert header.isascii()
    assert parse_options_header(header)[1]["filename"] == name


def test_the_original_of_a_masked_text_is_for_those_who_may_write(
    client: FlaskClient, ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    document_id = live_text(ledger, tmp_path, pdf("Call 010-1234-5678"))
    ledger.collections.set_options("papers", Options(scrub="text"))
    paths = [f"/v1/documents/{document_id}/{each}" for each in ("file", "pages/1.png")]
    assert [client.get(path).status_code for path in paths] == [200, 200]
    reader = Caller("reader", "key", frozenset({"read"}))
    monkeypatch.setattr(files, "caller", lambda: reader)
    for path in paths:
        refused = client.get(path)
        assert (refused.status_code, "masks personal data" in refused.text) == (403, True)
