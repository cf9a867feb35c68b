"""The time limits of a child that reads files and draws pages."""

import os
import threading
from types import SimpleNamespace

import pytest

from callslip.config.settings import ExtractSettings
from callslip.errors import ExtractionLimit, Overloaded
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


def test_a_child_that_reads_nothing_of_a_file_is_too_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    (requests, stdin), (stdout, replies) = os.pipe(), os.pipe()
    with (
        os.fdopen(requests, "rb"),
        os.fdopen(stdin, "wb", 0) as sent,
        os.fdopen(stdout, "rb", 0) as received,
        os.fdopen(replies, "wb", 0),
    ):
        extractor = process.Extractor(ExtractSettings(timeout_seconds=0.01))
        monkeypatch.setattr(process, "GRACE_SECONDS", 0)
        pipes = SimpleNamespace(stdin=sent, stdout=received)
        monkeypatch.setattr(extractor, "_ready_child", lambda: pipes)
        with pytest.raises(ExtractionLimit, match=r"a.txt took longer than 0\.01 s"):
            extractor.extract(b"x" * process.READ_SIZE, "a.txt")


def test_a_page_waits_a_moment_for_others_that_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "DRAW_WAIT_SECONDS", 0.05)
    drawing, go_on = threading.Event(), threading.Event()

    def slow_child() -> None:
        drawing.set()
        go_on.wait(10)
        raise ExtractionLimit("too slow")

    extractor = process.Extractor(ExtractSettings())
    monkeypatch.setattr(extractor, "_ready_child", slow_child)
    other = threading.Thread(target=_draws, args=(extractor,))
    other.start()
    assert drawing.wait(10)
    try:
        with pytest.raises(Overloaded, match="other pages are being drawn"):
            extractor.draw(b"%PDF", "a.pdf", 1, [], 100)
    finally:
        go_on.set()
        other.join()


def _draws(extractor: process.Extractor) -> None:
    with pytest.raises(ExtractionLimit, match="too slow"):
        extractor.draw(b"%PDF", "a.pdf", 1, [], 100)
