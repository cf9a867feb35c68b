"""ODT, ODS and ODP: one XML schema for text, sheets and slides (OASIS OpenDocument 1.3)."""

from collections.abc import Iterator, Sequence

from lxml import etree

from callslip.config.settings import ExtractSettings
from callslip.ingestion.extract.composer import Composer
from callslip.ingestion.extract.container import open_package
from callslip.ingestion.left_out import left_out
from callslip.ingestion.values import ExtractedText

MOST_REPEATS = 100
"""The maximum repetitions of a cell or of a row with content, because a number of a few bytes could
stand for gigabytes. An empty row is not repeated."""

_ODF = "urn:oasis:names:tc:opendocument:xmlns:"
_TEXT, _TABLE, _OFFICE, _DRAW = (
    f"{{{_ODF}{name}:1.0}}" for name in ("text", "table", "office", "drawing")
)
_P, _H, _S = f"{_TEXT}p", f"{_TEXT}h", f"{_TEXT}s"
_BREAKS = {f"{_TEXT}tab": "\t", f"{_TEXT}line-break": "\n"}
_SKIPPED = {
    f"{_TEXT}tracked-changes", f"{_OFFICE}annotation", f"{_TEXT}note-citation",
    f"{_TEXT}sequence-decls", f"{_OFFICE}forms",
}  # fmt: skip
_LEFT_OUT = {
    "comments": f"{_OFFICE}annotation",
    "pictures": f"{_DRAW}image",
    "embedded objects": f"{_DRAW}object",
}
_STYLE = f"{{{_ODF}style:1.0}}"
_RUNNING = (f"{_STYLE}header", f"{_STYLE}footer")
_PARSER = etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=True)


def read(data: bytes, limits: ExtractSettings) -> ExtractedText:
    """Read the body; comments, pictures and deleted text are left out."""
    with open_package(data, limits) as archive:
        media_type = archive.read("mimetype").decode("ascii").strip()
        body = etree.fromstring(archive.read("content.xml"), _PARSER).find(f"{_OFFICE}body")
        title = None
        running = 0
        if "styles.xml" in archive.namelist():
            styles = etree.fromstring(archive.read("styles.xml"), _PARSER)
            running = sum(bool(each.xpath("normalize-space()")) for each in styles.iter(*_RUNNING))
        if "meta.xml" in archive.namelist():
            meta = etree.fromstring(archive.read("meta.xml"), _PARSER)
            title = meta.findtext(".//{http://purl.org/dc/elements/1.1/}title")
    composer = Composer(limits)
    counts = {"headers and footers": running}
    if body is not None:
        _walk(body, composer)
        counts |= {kind: sum(1 for _ in body.iter(tag)) for kind, tag in _LEFT_OUT.items()}
    return composer.text(media_type, title, warnings=left_out(counts))


def _walk(element: etree._Element, composer: Composer) -> None:
    for child in element:
        if child.tag == _H:
            composer.heading(_line(child), _level(child))
        elif child.tag == _P:
            composer.paragraph(_line(child))
            _framed(child, composer)
        elif child.tag == f"{_TABLE}table":
            if element.tag == f"{_OFFICE}spreadsheet":
                composer.sheet(child.get(f"{_TABLE}name", ""), _rows(child))
            else:
                heads = child.find(f"{_TABLE}table-header-rows")
                composer.table(_rows(child), None if heads is None else len(heads))
        elif isinstance(child.tag, str) and child.tag not in _SKIPPED:
            if child.tag == f"{_DRAW}page":
                composer.page()
            _walk(child, composer)


def _framed(paragraph: etree._Element, composer: Composer) -> None:
    """Add the text boxes that are anchored to a paragraph."""
    for box in paragraph.iter(f"{_DRAW}text-box"):
        _walk(box, composer)


def _line(element: etree._Element) -> str:
    parts: list[str] = [element.text or ""]
    for child in element:
        if child.tag == _S:
            parts.append(" " * min(int(child.get(f"{_TEXT}c", "1")), 80))
        elif child.tag in _BREAKS:
            parts.append(_BREAKS[child.tag])
        elif isinstance(child.tag, str) and child.tag not in _SKIPPED | {f"{_DRAW}frame"}:
            parts.append(_line(child))
        parts.append(child.tail or "")
    return "".join(parts)


def _level(heading: etree._Element) -> int:
    level = heading.get(f"{_TEXT}outline-level", "1")
    return max(1, int(level)) if level.isdecimal() else 1


def _rows(table: etree._Element) -> Iterator[Sequence[str]]:
    for row in table.iter(f"{_TABLE}table-row"):
        cells: list[str] = []
        for cell in row.iterchildren(f"{_TABLE}table-cell", f"{_TABLE}covered-table-cell"):
            text = " ".join(_line(p) for p in cell.iter(_P, _H))
            cells += [text] * _repeats(cell, "columns", text)
        filled = "".join(cells)
        for _ in range(_repeats(row, "rows", filled)):
            yield cells


def _repeats(element: etree._Element, what: str, filled: str) -> int:
    number = element.get(f"{_TABLE}number-{what}-repeated", "1")
    most = MOST_REPEATS if filled else 1 if what == "rows" else MOST_REPEATS
    return min(int(number), most) if number.isdecimal() else 1
