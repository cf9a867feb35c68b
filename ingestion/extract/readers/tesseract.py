"""The program `tesseract`, which reads the text of an image."""

import os
import shutil
import subprocess
import time

from callslip.config.settings import ExtractSettings
from callslip.errors import ExtractionLimit, NoTextLayer

PROGRAM = "tesseract"
DOTS_PER_INCH = 300
"""The resolution of the images that tesseract was trained on."""

MOST_PIXELS = 40_000_000
"""The maximum for an image that is read; a larger one is read at a lower resolution."""


def available(limits: ExtractSettings) -> bool:
    """Whether the settings allow OCR and tesseract is installed."""
    return limits.ocr == "auto" and shutil.which(PROGRAM) is not None


class Tesseract:
    """Reads the images of one file, all of them within `limits.ocr_timeout_seconds`."""

    def __init__(self, limits: ExtractSettings) -> None:
        """Raise NoTextLayer if none of the configured languages is installed."""
        self._deadline = time.monotonic() + limits.ocr_timeout_seconds
        self._options = _options(limits)

    def text(self, width: int, height: int, rows: bytes) -> str:
        """Return the text of a grey-scale image, a byte per pixel.

        The text is empty for an image that tesseract cannot read. Raises ExtractionLimit.
        """
        picture = b"P5 %d %d 255\n" % (width, height) + rows
        left = self._deadline - time.monotonic()
        return _run(["stdin", "stdout", *self._options], picture, left)


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
