"""Awkward files that are made here, and how each must end, in the words of messy.OUTCOMES."""

import io
import zlib
from collections.abc import Callable, Mapping, Sequence
from email.message import EmailMessage

import docx
import pypdfium2
from office_files import deck, epub, hwpx, open_document, workbook, zip_file
from pdf_files import written
from PIL import Image

NOTICE = "The harbour office is closed on the first Monday of every month."
KOREAN = "항만 사무소는 매월 첫째 월요일에 문을 닫습니다. 문의는 전화로만 받습니다.\n"


def pdf(*pages: str) -> bytes:
    """A line of text on each page."""
    streams = [f"BT /F1 18 Tf 60 700 Td ({page}) Tj ET".encode() for page in pages]
    font = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"
    return _pdf([(stream, b"/Font << /F1 5 0 R >>") for stream in streams], [font])


def scan_image(page: str) -> Image.Image:
    """A picture of a page with this text."""
    with pypdfium2.PdfDocument(pdf(page)) as document:
        return document[0].render(scale=3, grayscale=True).to_pil().convert("L")


def scan(page: str) -> bytes:
    """A page that is a picture of this text."""
    with pypdfium2.PdfDocument(pdf(page)) as document:
        pixels = document[0].render(scale=3, grayscale=True).to_numpy()
    height, width = pixels.shape[:2]
    picture = zlib.compress(pixels.tobytes())
    image = (
        f"<< /Type /XObject /Subtype /Image /Width {width} /Height {height} /ColorSpace /DeviceGray"
        f" /BitsPerComponent 8 /Filter /FlateDecode /Length {len(picture)} >>\nstream\n"
    ).encode()
    drawing = b"q 612 0 0 792 0 0 cm /I Do Q"
    return _pdf([(drawing, b"/XObject << /I 5 0 R >>")], [image + picture + b"\nendstream"])


def _pdf(pages: Sequence[tuple[bytes, bytes]], shared: Sequence[bytes]) -> bytes:
    """Pages of content and resources; what they share has the numbers from 5."""
    first = 5 + len(shared)
    kids = b" ".join(b"%d 0 R" % (first + 2 * n) for n in range(len(pages)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [%s] /Count %d >>" % (kids, len(pages)),
        b"<< /Producer (by hand) >>",
        b"null",
        *shared,
    ]
    for number, (content, resources) in enumerate(pages):
        objects += [
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << %s >>"
            b" /Contents %d 0 R >>" % (resources, first + 2 * number + 1),
            b"<< /Length %d >>\nstream\n%s\nendstream" % (len(content), content),
        ]
    return written(objects, info=3)


def letter(*paragraphs: str) -> bytes:
    """A Word file."""
    document = docx.Document()
    for paragraph in paragraphs:
        document.add_paragraph(paragraph)
    buffer = io.BytesIO()
    document.save(buffer)
    return buffer.getvalue()


def mail() -> bytes:
    """A message with an attachment."""
    message = EmailMessage()
    message["Subject"], message["From"] = "Harbour", "office@example.org"
    message.set_content(NOTICE)
    message.add_attachment(KOREAN.encode(), "text", "plain", filename="notice.txt")
    return message.as_bytes()


def locked() -> bytes:
    """An OpenDocument file whose parts are encrypted."""
    return zip_file(
        {
            "mimetype": b"application/vnd.oasis.opendocument.text",
            "content.xml": b"\x93\x1f\x88",
            "META-INF/manifest.xml": b"<manifest:encryption-data/>",
        }
    )


FILES: Mapping[str, tuple[str, Callable[[], bytes]]] = {
    "own-two-pages.pdf": ("text", lambda: pdf(NOTICE, "Ships report one day ahead.")),
    "own-scan.pdf": ("no-text-layer", lambda: scan(NOTICE)),
    "own-cut-off.pdf": ("reject", lambda: b"%PDF-1.7 and no more"),
    "own-empty.txt": ("empty", lambda: b""),
    "own-blank.txt": ("empty", lambda: b" \n\t\n" * 20),
    "own-blank.docx": ("empty", letter),
    "own-cp949.txt": ("text", lambda: (KOREAN * 5).encode("cp949")),
    "own-utf16.txt": ("text", lambda: KOREAN.encode("utf-16")),
    "own-bom.csv": ("text", lambda: "\ufeffship,berth\nAurora,7\n하늘호,12\n".encode()),
    "own-letter.docx": ("text", lambda: letter(NOTICE, KOREAN)),
    "own-letter-named-as.pdf": ("text", lambda: letter(NOTICE)),
    "own-locked.odt": ("needs-password", locked),
    "own-note.odt": (
        "text",
        lambda: open_document(f"<office:text><text:p>{NOTICE}</text:p></office:text>"),
    ),
    "own-sheet.xlsx": ("text", lambda: workbook(Berths=[["ship", "berth"], ["Aurora", 7]])),
    "own-slides.pptx": ("text", deck),
    "own-book.epub": ("text", lambda: epub(f"<p>{NOTICE}</p>", f"<p>{KOREAN}</p>")),
    "own-report.hwpx": ("text", lambda: hwpx(f"><hp:run><hp:t>{KOREAN}</hp:t></hp:run>")),
    "own-page.html": ("text", lambda: f"<h1>Harbour<p>{NOTICE}<table><tr><td>1".encode()),
    "own-mail.eml": ("text", mail),
    "own-files.zip": ("text", lambda: zip_file({"a.txt": NOTICE, "folder/b.txt": KOREAN})),
    "own-cut-off.docx": ("reject", lambda: letter(NOTICE)[:300]),
    "own-program.exe": ("reject", lambda: b"MZ\x90\x00" + bytes(range(256)) * 8),
}
"""Of each its expectation, and what makes it."""
