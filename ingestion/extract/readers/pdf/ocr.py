"""OCR of scanned PDFs: PDFium renders each page, the program `tesseract` reads the image."""

import math
import os
import shutil
import subprocess
import time

import pypdfium2 as pdfium

from callslip.config.settings import ExtractSettings
from callslip.errors import ExtractionLimit, NoTextLayer
from callslip.ingestion.extract.composer import Composer
from callslip.ingestion.extract.readers.pdf.left_out import Files
from callslip.ingestion.extract.sniff import PDF
from callslip.ingestion.values import ExtractedText

PROGRAM = "tesseract"
DOTS_PER_INCH = 300
"""The resolution of the images that tesseract was trained on."""

MOST_PIXELS = 40_000_000
"""The maximum for a rendered page; a larger page is rendered at a lower resolution."""


def available(limits: ExtractSettings) -> bool:
    """Whether the settings allow OCR and tesseract is installed."""
    return limits.ocr == "auto" and shutil.which(PROGRAM) is not None


def read(data: bytes, limits: ExtractSettings) -> ExtractedText:
    """Read each page; a rotated page is read if tesseract can detect its orientation.

    Raises NoTextLayer if no text is recognized or none of the languages is installed,
    ExtractionLimit if OCR takes longer than `limits.ocr_timeout_seconds`.
    """
    deadline = time.monotonic() + limits.ocr_timeout_seconds
    options = _options(limits)
    composer = Composer(limits)
    has_text = False
    with pdfium.PdfDocument(data) as document:
        for number in range(len(document)):
            page = document[number]
            text = _recognized(_drawn(page), options, deadline)
            page.close()
            composer.page()
            composer.paragraph(text)
            has_text = has_text or bool(text.strip())
        files = Files(limits)
        files.add_embedded(document)
    if not has_text:
        raise NoTextLayer("OCR found no text on its pages", hint="There may be none.")
    warnings = ("read by OCR", *files.warnings)
    return composer.text(PDF, warnings=warnings, attachments=files.all())


def _options(limits: ExtractSettings) -> list[str]:
    """Return tesseract's options: the configured languages that are installed, the page mode.

    The page mode detects the orientation of pages if the data `osd` is installed.
    """
    listed = _run(["--list-langs"], b"", 60.0)
    installed = set(listed.split())
    languages = [name for name in limits.ocr_languages.split("+") if name in installed]
    if not languages:
        raise NoTextLayer(
            f"tesseract has none of the languages {limits.ocr_languages}",
            hint="Install them, for example tesseract-ocr-kor, or set extract.ocr_languages.",
        )
    return ["-l", "+".join(languages), "--psm", "1" if "osd" in installed else "3"]


def _drawn(page: pdfium.PdfPage) -> bytes:
    """Return the page as a grey-scale image in PGM format."""
    width, height = page.get_size()
    scale = DOTS_PER_INCH / 72
    scale = min(scale, math.sqrt(MOST_PIXELS / max(1.0, width * height)))
    bitmap = page.render(scale=scale, grayscale=True)
    rows, stride = bytes(bitmap.buffer), bitmap.stride
    if stride != bitmap.width:
        rows = b"".join(
            rows[at : at + bitmap.width] for at in range(0, stride * bitmap.height, stride)
        )
    head = b"P5 %d %d 255\n" % (bitmap.width, bitmap.height)
    bitmap.close()
    return head + rows


def _recognized(picture: bytes, options: list[str], deadline: float) -> str:
    return _run(["stdin", "stdout", *options], picture, deadline - time.monotonic())


def _run(arguments: list[str], content: bytes, seconds: float) -> str:
    """Return the output of tesseract, which is empty for an image that it cannot read.

    Raises ExtractionLimit after `seconds`.
    """
    try:
        done = subprocess.run(
            [PROGRAM, *arguments],
            input=content,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=max(0.1, seconds),
            env=os.environ | {"OMP_THREAD_LIMIT": "1"},  # the worker processes use the other cores
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise ExtractionLimit(
            "its pages took too long to read by OCR",
            hint="Split the file, or raise extract.ocr_timeout_seconds.",
        ) from None
    return done.stdout.decode("utf-8", "replace")
