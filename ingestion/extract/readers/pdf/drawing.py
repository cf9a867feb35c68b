"""Draws a page of a PDF as a PNG image, with areas of it marked."""

import io
import math
from collections.abc import Iterable

from PIL import Image, ImageChops, ImageDraw

from callslip.errors import PageNotFound
from callslip.ingestion.boxes import Area
from callslip.ingestion.extract.readers.pdf.reader import opened

MOST_PIXELS = 8_000_000
"""The maximum for an image; a page of unusual proportions is drawn smaller."""

MARK = (255, 231, 140)
"""The color that marked areas are multiplied with, so that dark text stays dark."""

MARGIN = 1.0
"""Points by which a mark is larger than its area."""


def draw(data: bytes, number: int, areas: Iterable[Area], width: int) -> bytes:
    """Return the page with this number (from 1) as a PNG image of `width` pixels.

    Raises NeedsPassword, BrokenFile, or PageNotFound.
    """
    with opened(data) as document:
        if not 1 <= number <= len(document):
            raise PageNotFound(f"the file has {len(document)} pages, and no page {number}")
        page = document[number - 1]
        page_width, page_height = page.get_size()
        most = math.sqrt(MOST_PIXELS / max(1.0, page_width * page_height))
        scale = min(width / max(1.0, page_width), most)
        image = page.render(scale=scale).to_pil().convert("RGB")
        page.close()
    marks = Image.new("RGB", image.size, "white")
    pen = ImageDraw.Draw(marks)
    for area in areas:
        if area.page == number:
            left, top = (area.left - MARGIN) * scale, (area.top - MARGIN) * scale
            right, bottom = (area.right + MARGIN) * scale, (area.bottom + MARGIN) * scale
            pen.rectangle((left, top, right, bottom), fill=MARK)
    file = io.BytesIO()
    ImageChops.multiply(image, marks).save(file, "PNG")
    return file.getvalue()
