"""PPTX: a page for each slide, with its title as a heading, then text, tables and notes."""

import io
from collections import Counter
from collections.abc import Iterable
from typing import Any

import pptx
from lxml import etree
from pptx.oxml.ns import qn
from pptx.shapes.base import BaseShape
from pptx.shapes.graphfrm import GraphicFrame
from pptx.shapes.group import GroupShape

from callslip.config.settings import ExtractSettings
from callslip.ingestion.extract.composer import Composer
from callslip.ingestion.extract.container import open_package
from callslip.ingestion.extract.package_parts import parts_left_out
from callslip.ingestion.extract.readers.office.formulas import FORMULA, linear
from callslip.ingestion.extract.sniff import PPTX
from callslip.ingestion.left_out import left_out
from callslip.ingestion.values import ExtractedText

_PLACEHOLDER = qn("p:ph")
_TITLES = ("title", "ctrTitle")
_PICTURE, _PARAGRAPH, _TEXT, _BREAK = qn("p:pic"), qn("a:p"), qn("a:t"), qn("a:br")
_COMPATIBLE = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
_LEFT_OUT = {"comments": r"ppt/comments/.", "embedded files": r"ppt/embeddings/."}


def read(data: bytes, limits: ExtractSettings) -> ExtractedText:
    """Read every slide; the text of the slide master is left out."""
    with open_package(data, limits) as archive:
        counts = parts_left_out(archive, _LEFT_OUT)
    deck = pptx.Presentation(io.BytesIO(data))
    composer = Composer(limits)
    for slide in deck.slides:
        composer.page()
        _choose(slide.shapes.element)
        shapes: list[Any] = list(slide.shapes)
        # `slide.shapes.title` would search all shapes once more.
        marks = (mark for mark in slide.element.iter(_PLACEHOLDER) if mark.get("type") in _TITLES)
        titles = [mark.getparent().getparent().getparent() for mark in marks]
        for shape in shapes:
            if shape.element in titles:
                composer.heading(_text(shape), 1)
        _shapes((shape for shape in shapes if shape.element not in titles), composer, counts)
        if slide.has_notes_slide and (notes := slide.notes_slide.notes_text_frame) is not None:
            composer.paragraph(notes.text)
    return composer.text(PPTX, deck.core_properties.title, warnings=left_out(counts))


def _choose(shapes: etree._Element) -> None:
    """Put the first choice in the place of alternatives; python-pptx would leave out both.

    PowerPoint saves a shape with a formula as such, and a picture of it as the alternative.
    """
    for alternatives in list(shapes.iter(f"{_COMPATIBLE}AlternateContent")):
        choice, parent = alternatives.find(f"{_COMPATIBLE}Choice"), alternatives.getparent()
        if choice is not None and parent is not None:
            for child in choice:
                alternatives.addprevious(child)
            parent.remove(alternatives)


def _shapes(shapes: Iterable[BaseShape], composer: Composer, counts: Counter[str]) -> None:
    """Add the text of shapes, and count those that are left out."""
    for shape in shapes:
        any_shape: Any = shape  # the library's types do not show which shapes have text
        if isinstance(shape, GroupShape):
            _shapes(shape.shapes, composer, counts)
        elif shape.has_text_frame:
            composer.paragraph(_text(any_shape))
        elif getattr(shape, "has_table", False):
            table = any_shape.table
            rows = ([cell.text for cell in row.cells] for row in table.rows)
            composer.table(rows, header=1 if table.first_row else None)
        elif getattr(shape, "has_chart", False):
            counts["charts"] += 1
        elif shape.element.tag == _PICTURE:
            counts["pictures"] += 1
        elif isinstance(shape, GraphicFrame):
            counts["diagrams and embedded objects"] += 1


def _text(shape: Any) -> str:
    """Return the text of a shape; a formula is linear text in place."""
    if next(shape.element.iter(FORMULA), None) is None:
        return str(shape.text_frame.text)
    lines = []
    for paragraph in shape.element.iter(_PARAGRAPH):
        parts = []
        for node in paragraph.iter(_TEXT, _BREAK, FORMULA):
            if node.tag == FORMULA:
                parts.append(linear(node))
            else:
                parts.append("\n" if node.tag == _BREAK else node.text or "")
        lines.append("".join(parts))
    return "\n".join(lines)
