"""DOCX: paragraphs, tables and notes in the order of the body, headings by style or outline level.

Formulas are linear text in place. A footnote or endnote follows the paragraph or table that has its
mark.
"""

import io
import re
from collections.abc import Iterable, Iterator

import docx
from docx.opc.part import Part
from docx.oxml.ns import qn
from lxml import etree

from callslip.config.settings import ExtractSettings
from callslip.ingestion.extract.composer import Composer
from callslip.ingestion.extract.container import open_package
from callslip.ingestion.extract.package_parts import parts_left_out
from callslip.ingestion.extract.readers.office.formulas import FORMULA, MATH, linear
from callslip.ingestion.extract.sniff import DOCX
from callslip.ingestion.left_out import left_out
from callslip.ingestion.values import ExtractedText

_P, _TABLE, _ROW, _CELL = qn("w:p"), qn("w:tbl"), qn("w:tr"), qn("w:tc")
_ROW_PROPERTIES, _REPEATED = qn("w:trPr"), qn("w:tblHeader")
_TEXT, _OUTLINE, _STYLE = qn("w:t"), qn("w:outlineLvl"), qn("w:pStyle")
_VALUE, _ID = qn("w:val"), qn("w:styleId")
_BREAKS = {qn("w:tab"): "\t", qn("w:br"): "\n", qn("w:cr"): "\n", qn("w:noBreakHyphen"): "-"}
_LINES = {_P, f"{MATH}oMathPara"}
_FALLBACK = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"
_SKIPPED = {qn("w:pPr"), qn("w:rPr"), qn("w:del"), qn("w:moveFrom"), _FALLBACK}
_NOTE, _NOTE_KIND = (qn("w:footnote"), qn("w:endnote")), qn("w:type")
_NOTE_MARK = {qn("w:footnoteReference"): "footnotes", qn("w:endnoteReference"): "endnotes"}
_NOTE_ID = qn("w:id")
_NOTE_PARTS = re.compile(r"/word/(footnotes|endnotes)\d*\.xml$")
_PARSER = etree.XMLParser(resolve_entities=False, no_network=True)

_LEFT_OUT = {
    "pictures": r"word/media/.",
    "charts": r"word/charts/chart",
    "diagrams": r"word/diagrams/data",
    "embedded files": r"word/embeddings/.",
}
_MARKS_LEFT_OUT = {
    "comments": (r"word/comments\.xml$", rb"<w:comment\s"),
    "headers and footers": (r"word/(header|footer)\d*\.xml$", rb"\A(?s:.*?)<w:t[ >]"),
}

_HEADING_NAME = re.compile(r"heading ([1-9])", re.I)


def read(data: bytes, limits: ExtractSettings) -> ExtractedText:
    """Read the body and its notes; comments, headers, footers and pictures are left out.

    Raises ExtractionLimit if the container unpacks to more than a quarter of `limits.memory_mb`.
    """
    with open_package(data, limits) as archive:
        counts = parts_left_out(archive, _LEFT_OUT, _MARKS_LEFT_OUT)
    document = docx.Document(io.BytesIO(data))
    notes = _notes(document.part.package.iter_parts())
    body = _Body(_style_levels(document.styles.element), notes, Composer(limits))
    body.read(document.element.body)
    title = document.core_properties.title
    return body.composer.text(DOCX, title, warnings=left_out(counts))


class _Body:
    """Reads the body of a document into a composer."""

    def __init__(
        self, levels: dict[str, int], notes: dict[tuple[str, str], str], composer: Composer
    ) -> None:
        self._levels, self._notes, self.composer = levels, notes, composer

    def read(self, parent: etree._Element) -> None:
        """Add the paragraphs and tables of an element, each with its notes."""
        for element in parent:
            if element.tag == _P:
                if level := _level(element, self._levels):
                    self.composer.heading(_text(element), level)
                else:
                    self.composer.paragraph(_text(element))
                self._add_notes(element)
            elif element.tag == _TABLE:
                self.composer.table(_rows(element), _header_rows(element))
                self._add_notes(element)
            elif isinstance(element.tag, str) and element.tag not in _SKIPPED:
                self.read(element)  # content controls and the like

    def _add_notes(self, element: etree._Element) -> None:
        for mark in element.iter(*_NOTE_MARK):
            note = self._notes.get((_NOTE_MARK[mark.tag], mark.get(_NOTE_ID, "")))
            if note:
                self.composer.paragraph(note)


def _notes(parts: Iterable[Part]) -> dict[tuple[str, str], str]:
    """Return the text of each note by its kind and id; separators are not notes."""
    return {
        (match[1], note.get(_NOTE_ID, "")): _text(note)
        for part in parts
        if (match := _NOTE_PARTS.match(str(part.partname)))
        for note in etree.fromstring(part.blob, _PARSER).iter(*_NOTE)
        if note.get(_NOTE_KIND) is None
    }


def _rows(table: etree._Element) -> Iterator[list[str]]:
    for row in table.iterchildren(_ROW):
        yield [_text(cell) for cell in row.iter(_CELL)]


def _header_rows(table: etree._Element) -> int | None:
    """Return the number of first rows that are marked to repeat on each page; None for none."""
    marked = 0
    for row in table.iterchildren(_ROW):
        if row.find(f"{_ROW_PROPERTIES}/{_REPEATED}") is None:
            break
        marked += 1
    return marked or None


def _text(element: etree._Element) -> str:
    """Return the visible text without deleted and fallback runs.

    Each paragraph and each formula that stands by itself has a line.
    """
    parts: list[str] = []
    stack = [element]
    while stack:
        node = stack.pop()
        if node.tag == _TEXT:
            parts.append(node.text or "")
        elif node.tag in _BREAKS:
            parts.append(_BREAKS[node.tag])
        elif node.tag == FORMULA:
            parts.append(linear(node))
        elif node.tag not in _SKIPPED:
            if node.tag in _LINES and parts:
                parts.append("\n")
            stack.extend(reversed(node))
    return "".join(parts)


def _level(paragraph: etree._Element, levels: dict[str, int]) -> int:
    properties = paragraph.find(qn("w:pPr"))
    if properties is None:
        return 0
    outline = properties.find(_OUTLINE)
    if outline is not None:
        return _outline(outline)
    style = properties.find(_STYLE)
    return levels.get(style.get(_VALUE, ""), 0) if style is not None else 0


def _outline(element: etree._Element) -> int:
    """Return the heading level of an outline level; Word counts from 0, and 9 is body text."""
    value = element.get(_VALUE, "9")
    return int(value) + 1 if value.isdecimal() and int(value) < 9 else 0


def _style_levels(styles: etree._Element) -> dict[str, int]:
    """Return the heading level of each style: by its name, its outline level or its base style."""
    own: dict[str, int] = {}
    base: dict[str, str] = {}
    for style in styles.iterchildren(qn("w:style")):
        name = style.find(qn("w:name"))
        label = name.get(_VALUE, "") if name is not None else ""
        ident = style.get(_ID, "")
        outline = style.find(f"{qn('w:pPr')}/{_OUTLINE}")
        parent = style.find(qn("w:basedOn"))
        if label.lower() == "title":
            own[ident] = 1
        elif match := _HEADING_NAME.fullmatch(label):
            own[ident] = int(match[1])
        elif outline is not None:
            own[ident] = _outline(outline)
        elif parent is not None:
            base[ident] = parent.get(_VALUE, "")
    for ident in base:
        seen, at = {ident}, base[ident]
        while at in base and at not in seen:
            seen.add(at)
            at = base[at]
        own[ident] = own.get(at, 0)
    return own
