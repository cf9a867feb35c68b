"""Scanned PDFs by OCR: PDFium draws each page, the program `tesseract` reads it."""

import math
import os
import shutil
import subprocess
import time

import pypdfium2 as pdfium

from callslip.errors import ExtractionLimit, NoTextLayer
from config.settings import ExtractSettings
from ingestion.extract.composer import Composer
from ingestion.extract.sniff import PDF
from ingestion.parts import ExtractedText

PROGRAM = "tesseract"
DOTS_PER_INCH = 300
"""What tesseract was trained on."""

MOST_PIXELS = 40_000_000
"""Of a drawn page: a larger one is drawn coarser."""


def available(limits: ExtractSettings) -> bool:
    """Whether scanned pages are to be read, and can be."""
    return limits.ocr == "auto" and shutil.which(PROGRAM) is not None


def read(data: bytes, limits: ExtractSettings) -> ExtractedText:
    """Read each page, turned upright where tesseract sees how it lies.

    Raises NoTextLayer where nothing was recognized or no language is installed, ExtractionLimit
    where it takes longer than `limits.ocr_timeout_seconds`.
    """
    deadline = time.monotonic() + limits.ocr_timeout_seconds
    options = _options(limits)
    composer = Composer(limits)
    found = False
    with pdfium.PdfDocument(data) as document:
        for number in range(len(document)):
            page = document[number]
            text = _recognized(_drawn(page), options, deadline)
            page.close()
            composer.page()
            composer.paragraph(text)
            found = found or bool(text.strip())
    if not found:
        raise NoTextLayer("OCR found no text on its pages", hint="There may be none.")
    return composer.text(PDF, warnings=("read by OCR",))


def _options(limits: ExtractSettings) -> list[str]:
    """The languages that are wanted and installed; how pages lie is found where it can be."""
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
    """The page in shades of grey, as PGM."""
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


def _run(arguments: list[str], given: bytes, seconds: float) -> str:
    """What tesseract prints; nothing for a picture that it cannot read."""
    try:
        done = subprocess.run(
            [PROGRAM, *arguments],
            input=given,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=max(0.1, seconds),
            env=os.environ | {"OMP_THREAD_LIMIT": "1"},  # the workers share the cores out
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise ExtractionLimit(
            "its pages took too long to read by OCR",
            hint="Split the file, or raise extract.ocr_timeout_seconds.",
        ) from None
    return done.stdout.decode("utf-8", "replace")
