"""The time limits of a child that reads files: the error names the one that was reached."""

import os
from types import SimpleNamespace

import pytest

from callslip.config.settings import ExtractSettings
from callslip.errors import ExtractionLimit
from callslip.ingestion.isolation import process
from callslip.ingestion.isolation.frames import more_time_frame


@pytest.mark.parametrize(("ocr", "limit"), [(False, "0.01"), (True, "0.02")])
def test_the_error_names_the_limit_that_was_reached(
    monkeypatch: pytest.MonkeyPatch, ocr: bool, limit: str
) -> None:
    (requests, stdin), (stdout, replies) = os.pipe(), os.pipe()
    with (
        os.fdopen(requests, "rb"),
        os.fdopen(stdin, "wb", 0) as sent,
        os.fdopen(stdout, "rb", 0) as received,
        os.fdopen(replies, "wb", 0) as child,
    ):
        if ocr:
            child.write(b"".join(more_time_frame()))
        extractor = process.Extractor(
            ExtractSettings(timeout_seconds=0.01, ocr_timeout_seconds=0.02)
        )
        monkeypatch.setattr(process, "GRACE_SECONDS", 0)
        pipes = SimpleNamespace(stdin=sent, stdout=received)
        monkeypatch.setattr(extractor, "_ready_child", lambda: pipes)
        with pytest.raises(ExtractionLimit, match=f"scan.pdf took longer than {limit} s"):
            extractor.extract(b"%PDF", "scan.pdf")
