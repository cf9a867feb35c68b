"""Scanned pages: read where tesseract is installed, a plain answer where it is not."""

import shutil

import pytest
from messy import MESSY

from callslip.errors import NoTextLayer
from config.settings import ExtractSettings
from ingestion.isolation import Extractor

SCAN = MESSY / "rotated_skew.pdf"

pytestmark = pytest.mark.skipif(not SCAN.exists(), reason="the messy files are not on this machine")
installed = pytest.mark.skipif(not shutil.which("tesseract"), reason="tesseract is not installed")


@installed
def test_a_scan_is_read_page_by_page_though_it_takes_longer_than_other_files() -> None:
    limits = ExtractSettings(timeout_seconds=2, ocr_languages="eng")
    with Extractor(limits) as extractor:
        text = extractor.extract(SCAN.read_bytes(), "scan.pdf")
        assert "LinnSequencer" in text.text
        assert len(text.pages) == 1
        assert text.warnings == ("read by OCR",)
        assert extractor.extract(b"fine", "a.txt").text == "fine"


@installed
def test_a_language_that_is_not_installed_is_named() -> None:
    unknown = pytest.raises(NoTextLayer, match="none of the languages tlh")
    with Extractor(ExtractSettings(ocr_languages="tlh")) as extractor, unknown:
        extractor.extract(SCAN.read_bytes(), "scan.pdf")


def test_without_tesseract_the_advice_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with Extractor(ExtractSettings()) as extractor, pytest.raises(NoTextLayer) as raised:
        extractor.extract(SCAN.read_bytes(), "scan.pdf")
    assert "Install tesseract" in raised.value.advice


def test_scans_are_left_alone_where_the_settings_say_so() -> None:
    with Extractor(ExtractSettings(ocr="off")) as extractor, pytest.raises(NoTextLayer):
        extractor.extract(SCAN.read_bytes(), "scan.pdf")
