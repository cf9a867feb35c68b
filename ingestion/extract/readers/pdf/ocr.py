"""OCR of scanned PDFs: PDFium renders each page, the program `tesseract` reads the image."""

import math

import pypdfium2 as pdfium

from callslip.config.settings import ExtractSettings
from callslip.errors import NoTextLayer
from callslip.ingestion.extract.composer import Composer
from callslip.ingestion.extract.readers.pdf.left_out import Files
from callslip.ingestion.extract.readers.tesseract import DOTS_PER_INCH, MOST_PIXELS, Tesseract
from callslip.ingestion.extract.sniff import PDF
from callslip.ingestion.left_out import read_otherwise
from callslip.ingestion.values import ExtractedText


def read(data: bytes, limits: ExtractSettings) -> ExtractedText:
    """Read each page; a rotated page is read if tesseract can detect its orientation.

    Raises NoTextLayer if no text is recognized or none of the languages is installed,
    ExtractionLimit if OCR takes longer than `limits.ocr_timeout_seconds`.
    """
    tesseract = Tesseract(limits)
    composer = Composer(limits)
    has_text = False
    with pdfium.PdfDocument(data) as document:
        for number in range(len(document)):
            page = document[number]
            text = tesseract.text(*_drawn(page))
            page.close()
            composer.page()
            composer.paragraph(text)
            has_text = has_text or bool(text.strip())
        files = Files(limits)
        files.add_embedded(document)
    if not has_text:
        raise NoTextLayer("OCR found no text on its pages", hint="There may be none.")
    warnings = (read_otherwise("by OCR", {}), *files.warnings)
    return composer.text(PDF, warnings=warnings, attachments=files.all())


def _drawn(page: pdfium.PdfPage) -> tuple[int, int, bytes]:
    """Return the page as a grey-scale image: width, height, a byte per pixel."""
    width, height = page.get_size()
    scale = DOTS_PER_INCH / 72
    scale = min(scale, math.sqrt(MOST_PIXELS / max(1.0, width * height)))
    bitmap = page.render(scale=scale, grayscale=True)
    rows, stride = bytes(bitmap.buffer), bitmap.stride
    if stride != bitmap.width:
        rows = b"".join(
            rows[at : at + bitmap.width] for at in range(0, stride * bitmap.height, stride)
        )
    size = bitmap.width, bitmap.height
    bitmap.close()
    return *size, rows
