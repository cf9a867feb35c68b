"""Scanned pages: read where tesseract is installed, a plain answer where it is not."""

import os
import shutil
import time
from pathlib import Path

import pytest
from messy import MESSY
from own_messy import NOTICE, scan

from callslip.config.settings import ExtractSettings
from callslip.errors import NoTextLayer
from callslip.ingestion.isolation.process import Extractor

REAL = MESSY / "rotated_skew.pdf"

SECONDS = 6
"""The limit of other files; a busy machine starts a reader within it."""

installed = pytest.mark.skipif(not shutil.which("tesseract"), reason="tesseract is not installed")


@pytest.fixture(scope="module", params=["own", "real"])
def page(request: pytest.FixtureRequest) -> tuple[bytes, str]:
    """A scanned page and a word on it."""
    if request.param == "own":
        return scan(NOTICE), "harbour"
    if not REAL.exists():
        pytest.skip("the messy files are not on this machine")
    return REAL.read_bytes(), "LinnSequencer"


@pytest.mark.long
@installed
def test_a_scan_is_read_page_by_page_though_it_takes_longer_than_other_files(
    page: tuple[bytes, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = tmp_path / "tesseract"
    slow.write_text(f'#!/bin/sh\nsleep {SECONDS + 1}\nexec {shutil.which("tesseract")} "$@"\n')
    slow.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    limits = ExtractSettings(timeout_seconds=SECONDS, ocr_languages="eng")
    with Extractor(limits) as extractor:
        since = time.monotonic()
        text = extractor.extract(page[0], "scan.pdf")
        assert time.monotonic() - since > SECONDS
        assert page[1] in text.text
        assert len(text.pages) == 1
        assert text.warnings == ("read by OCR",)
        assert extractor.extract(b"fine", "a.txt").text == "fine"


@installed
def test_a_language_that_is_not_installed_is_named(page: tuple[bytes, str]) -> None:
    unknown = pytest.raises(NoTextLayer, match="none of the languages tlh")
    with Extractor(ExtractSettings(ocr_languages="tlh")) as extractor, unknown:
        extractor.extract(page[0], "scan.pdf")


def test_without_tesseract_the_advice_says_what_to_install(
    page: tuple[bytes, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    with Extractor(ExtractSettings()) as extractor, pytest.raises(NoTextLayer) as raised:
        extractor.extract(page[0], "scan.pdf")
    assert "Install tesseract" in raised.value.advice


def test_scans_are_left_alone_where_the_settings_say_so(page: tuple[bytes, str]) -> None:
    with Extractor(ExtractSettings(ocr="off")) as extractor, pytest.raises(NoTextLayer):
        extractor.extract(page[0], "scan.pdf")
