"""PPTX: a page for each slide, with its title as a heading, then text, tables and notes."""

import io
from collections.abc import Iterable
from typing import Any

import pptx
from pptx.oxml.ns import qn
from pptx.shapes.base import BaseShape
from pptx.shapes.group import GroupShape

from callslip.config.settings import ExtractSettings
from callslip.ingestion.extract.composer import Composer
from callslip.ingestion.extract.container import open_package
from callslip.ingestion.extract.sniff import PPTX
from callslip.ingestion.values import ExtractedText

_PLACEHOLDER = qn("p:ph")
_TITLES = ("title", "ctrTitle")


def read(data: bytes, limits: ExtractSettings) -> ExtractedText:
    """Read every slide; the text of the slide master is left out."""
    open_package(data, limits).close()
    deck = pptx.Presentation(io.BytesIO(data))
    composer = Composer(limits)
    for slide in deck.slides:
        composer.page()
        shapes: list[Any] = list(slide.shapes)
        # `slide.shapes.title` would search all shapes once more.
        marks = (mark for mark in slide.element.iter(_PLACEHOLDER) if mark.get("type") in _TITLES)
        titles = [mark.getparent().getparent().getparent() for mark in marks]
        for shape in shapes:
            if shape.element in titles:
                composer.heading(shape.text_frame.text, 1)
        _shapes((shape for shape in shapes if shape.element not in titles), composer)
        if slide.has_notes_slide and (notes := slide.notes_slide.notes_text_frame) is not None:
            composer.paragraph(notes.text)
    return composer.text(PPTX, deck.core_properties.title)


def _shapes(shapes: Iterable[BaseShape], composer: Composer) -> None:
    for shape in shapes:
        any_shape: Any = shape  # the library's types do not show which shapes have text
        if isinstance(shape, GroupShape):
            _shapes(shape.shapes, composer)
        elif shape.has_text_frame:
            composer.paragraph(any_shape.text_frame.text)
        elif getattr(shape, "has_table", False):
            table = any_shape.table
            rows = ([cell.text for cell in row.cells] for row in table.rows)
            composer.table(rows, header=1 if table.first_row else None)
