"""DOCX: paragraphs and tables in the order of the body, headings by style or outline level."""

import io
import re
from collections.abc import Iterator

import docx
from docx.oxml.ns import qn
from lxml import etree

from callslip.config.settings import ExtractSettings
from callslip.ingestion.extract.composer import Composer
from callslip.ingestion.extract.container import open_package
from callslip.ingestion.extract.sniff import DOCX
from callslip.ingestion.values import ExtractedText

_P, _TABLE, _ROW, _CELL = qn("w:p"), qn("w:tbl"), qn("w:tr"), qn("w:tc")
_ROW_PROPERTIES, _REPEATED = qn("w:trPr"), qn("w:tblHeader")
_TEXT, _OUTLINE, _STYLE = qn("w:t"), qn("w:outlineLvl"), qn("w:pStyle")
_VALUE, _ID = qn("w:val"), qn("w:styleId")
_BREAKS = {qn("w:tab"): "\t", qn("w:br"): "\n", qn("w:cr"): "\n", qn("w:noBreakHyphen"): "-"}
_FALLBACK = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"
_SKIPPED = {qn("w:pPr"), qn("w:rPr"), qn("w:del"), qn("w:moveFrom"), _FALLBACK}
_HEADING_NAME = re.compile(r"heading ([1-9])", re.I)


def read(data: bytes, limits: ExtractSettings) -> ExtractedText:
    """Read the body; comments, headers and footers are left out.

    Raises ExtractionLimit if the container unpacks to more than a quarter of `limits.memory_mb`.
    """
    open_package(data, limits).close()
    document = docx.Document(io.BytesIO(data))
    levels = _style_levels(document.styles.element)
    composer = Composer(limits)
    _blocks(document.element.body, levels, composer)
    return composer.text(DOCX, document.core_properties.title)


def _blocks(body: etree._Element, levels: dict[str, int], composer: Composer) -> None:
    for element in body:
        if element.tag == _P:
            if level := _level(element, levels):
                composer.heading(_text(element), level)
            else:
                composer.paragraph(_text(element))
        elif element.tag == _TABLE:
            composer.table(_rows(element), _header_rows(element))
        elif isinstance(element.tag, str) and element.tag not in _SKIPPED:
            _blocks(element, levels, composer)  # content controls and the like


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
    """Return the visible text without deleted and fallback runs; each paragraph has a line."""
    parts: list[str] = []
    stack = [element]
    while stack:
        node = stack.pop()
        if node.tag == _TEXT:
            parts.append(node.text or "")
        elif node.tag in _BREAKS:
            parts.append(_BREAKS[node.tag])
        elif node.tag not in _SKIPPED:
            if node.tag == _P and parts:
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
