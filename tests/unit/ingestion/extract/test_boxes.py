"""Where the lines of PDFs are: packed, cut to a span, and held against what PDFium has there."""

import base64
import io
import json
import re
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pypdfium2 as pdfium
import pytest
from hypothesis import given
from hypothesis import strategies as st
from own_messy import pdf

from callslip.config.settings import ExtractSettings
from callslip.errors import DocumentError
from callslip.ingestion import boxes as packing
from callslip.ingestion.artifacts import EXTRACTED
from callslip.ingestion.boxes import Area, Box, PackedBoxes, areas, pack, unpack
from callslip.ingestion.extract import extract
from callslip.ingestion.isolation.frames import LENGTHS, outcome, text_frame
from callslip.ingestion.values import ExtractedText

ROOT = Path(__file__).resolve().parents[4]
MESSY = ROOT.parent / "shared" / "data" / "messy"
PDFS = sorted((*(ROOT / "examples").rglob("*.pdf"), *MESSY.glob("*.pdf")))

WORDS_PER_SPAN = 70
INSET = 0.3
"""Points by which a character may reach over the edge of its box, or the next word into it."""

MIDDLE = 0.45
"""The share of a line's height above and below its middle, which parts of other lines reach."""

MOST_OTHERS = 0.03
"""The letters of other lines in the middle of boxes: a link is a line in a gap of another one."""


class Page(NamedTuple):
    """A page as it stays open until its document is closed."""

    bbox: tuple[float, float, float, float]
    """Left, bottom, right and top in points."""

    text: pdfium.PdfTextPage


tenths = st.integers(-300_000, 300_000).map(lambda n: n / 10)
lines = st.builds(
    lambda start, length, page, edges, words: Box(start, start + length, page, *edges, words),
    st.integers(0, 10**6),
    st.integers(0, 500),
    st.integers(1, 5000),
    st.tuples(tenths, tenths, tenths, tenths),
    st.none() | st.lists(tenths, max_size=5).map(tuple),
)


@given(st.lists(lines, max_size=20))
def test_packed_boxes_are_the_same_when_unpacked(boxes: list[Box]) -> None:
    assert unpack(pack(boxes)) == tuple(boxes)


@pytest.mark.parametrize(
    "packed",
    [
        "no base64!",
        base64.b64encode(b"not deflated").decode(),
        base64.b64encode(zlib.compress(b"abc")).decode(),
        base64.b64encode(zlib.compress(b"")).decode(),
    ],
)
def test_damaged_boxes_are_an_error(packed: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        unpack(packed)
    assert not PackedBoxes(packed)


def test_boxes_that_are_no_text_are_an_error() -> None:
    with pytest.raises(ValueError, match="no text"):
        packing.packed([1, 2])


def test_the_boxes_of_a_text_that_is_stored_or_sent_stay_packed_until_they_are_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    boxes = (Box(0, 4, 1, 10.0, 0.0, 100.0, 12.0, ()),)
    text = ExtractedText("word", "application/pdf", boxes=boxes)
    stored, unpacked = EXTRACTED.dump(text), list[str]()

    def counted(packed: str) -> tuple[Box, ...]:
        unpacked.append(packed)
        return unpack(packed)

    monkeypatch.setattr(packing, "unpack", counted)
    loaded = EXTRACTED.load(stored)
    assert EXTRACTED.dump(replace(loaded, title="Other")) != stored
    head, body = text_frame(text)
    sent = outcome(json.loads(head[LENGTHS.size :]), body, ())
    assert EXTRACTED.dump(sent) == stored
    assert unpacked == []
    assert (loaded, loaded.boxes[0], len(loaded.boxes)) == (text, boxes[0], 1)
    assert areas(loaded.boxes, "word", 0, 4) == areas(boxes, "word", 0, 4)
    assert len(unpacked) == 1


def test_a_span_within_a_line_is_cut_at_its_words() -> None:
    text = "one two three\nfour"
    boxes = [
        Box(0, 13, 1, 10.0, 0.0, 100.0, 12.0, (40.0, 70.0)),
        Box(14, 18, 2, 10.0, 0.0, 50.0, 12.0, ()),
    ]
    assert areas(boxes, text, 4, 7) == [Area(1, 40.0, 0.0, 70.0, 12.0)]
    assert areas(boxes, text, 8, 18) == [
        Area(1, 70.0, 0.0, 100.0, 12.0),
        Area(2, 10.0, 0.0, 50.0, 12.0),
    ]
    assert areas(boxes, text, 16, 18) == [Area(2, 30.0, 0.0, 50.0, 12.0)]
    assert areas(boxes, text, 13, 14) == []


def test_a_line_whose_words_are_unknown_is_whole() -> None:
    boxes = [Box(0, 13, 1, 10.0, 0.0, 100.0, 12.0)]
    assert areas(boxes, "one two three", 4, 7) == [Area(1, 10.0, 0.0, 100.0, 12.0)]


@pytest.mark.long
@pytest.mark.parametrize("path", PDFS, ids=lambda path: path.name)
def test_the_text_inside_the_boxes_of_a_span_is_the_text_of_the_span(path: Path) -> None:
    try:
        extracted = extract(path.read_bytes(), path.name, ExtractSettings())
    except DocumentError as error:
        pytest.skip(f"it has no text: {error.slug}")
    if not extracted.boxes:
        pytest.skip("it was read by OCR")
    ends = [m.end() for m in re.finditer(r"(?<=[\w.])(?=\s)", extracted.text)]
    marks = [0, *ends[WORDS_PER_SPAN::WORDS_PER_SPAN], len(extracted.text)]
    known = [box for box in extracted.boxes if box.words is not None]  # others are not cut
    letters = others = 0
    with pdfium.PdfDocument(path.read_bytes()) as document:
        if any(page.get_rotation() for page in document):
            pytest.skip("PDFium reads areas of pages as they are before they are turned")
        pages = [Page(page.get_bbox(), page.get_textpage()) for page in document]
        for start, end in pairwise(marks):
            wanted = _letters(extracted.text[start:end])
            cut = _areas(extracted, start, end)
            whole = sum((_inside(pages, area, 0.0) for area in cut), Counter())
            parts = areas(known, extracted.text, start, end)
            middle = sum((_inside(pages, area, MIDDLE) for area in parts), Counter())
            assert not wanted - whole
            others += (middle - wanted).total()
            letters += wanted.total()
    assert others <= MOST_OTHERS * letters


def test_every_turn_of_a_page_shows_a_line_where_it_is() -> None:
    shown = [extract(turned(turn), "a.pdf", ExtractSettings()) for turn in TURNS]
    for turn, extracted in zip(TURNS, shown, strict=True):
        with pdfium.PdfDocument(turned(turn)) as document:
            (area,) = _areas(extracted, 0, len(extracted.text))
            page = document[0]
            image = page.render(scale=1).to_pil().convert("L")
            ink = image.point(lambda value: 255 if value < 128 else 0).getbbox()
            page.close()
        assert ink is not None
        for edge, drawn in zip(area[1:], ink, strict=True):
            assert abs(edge - drawn) < 4, turn


TURNS = (0, 90, 180, 270)


def turned(turn: int) -> bytes:
    """A PDF whose only page is shown with this turn, clockwise."""
    file = io.BytesIO()
    with pdfium.PdfDocument(pdf("Turned")) as document:
        page = document[0]
        page.set_rotation(turn)
        document.save(file)
        page.close()
    return file.getvalue()


def _areas(extracted: ExtractedText, start: int, end: int) -> list[Area]:
    return areas(extracted.boxes, extracted.text, start, end)


def _letters(text: str) -> Counter[str]:
    return Counter(c for c in text if c.isalnum())


def _inside(pages: Sequence[Page], area: Area, cut: float) -> Counter[str]:
    """The letters that PDFium reads inside an area, without this share of its height at each side.

    Of a line that runs down the page, nothing is cut.
    """
    (left, _, _, top), textpage = pages[area.page - 1]
    height = area.bottom - area.top
    if height > area.right - area.left:
        cut = 0.0
    inset = INSET if cut else -INSET
    text: str = textpage.get_text_bounded(
        left + area.left + inset,
        top - area.bottom + (cut * height or inset),
        left + area.right - inset,
        top - area.top - (cut * height or inset),
    )
    return _letters(text)
