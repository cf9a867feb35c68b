"""Hangul: HWP 5 (records in an OLE container) and HWPX (XML in a ZIP, OWPML KS X 6101).

No library with a permissive licence reads HWP 5. Hancom publishes the format ("Hangul document file
structure 5.0"); this module reads its text, tables and styles.
"""

import io
import re
import struct
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import olefile
from lxml import etree

from callslip.config.settings import MEGABYTE, ExtractSettings
from callslip.errors import ExtractionLimit, NeedsPassword
from callslip.ingestion.extract.composer import Composer
from callslip.ingestion.extract.container import open_package
from callslip.ingestion.extract.readers.office.ole_title import title_of
from callslip.ingestion.extract.sniff import HWP, HWPX
from callslip.ingestion.left_out import left_out
from callslip.ingestion.values import ExtractedText

_COMPRESSED, _PASSWORD, _DISTRIBUTION = 1, 2, 4
_STYLE, _PARAGRAPH, _TEXT, _CONTROL, _LIST = 26, 66, 67, 71, 72
_LEFT_OUT = {84: "embedded objects", 85: "pictures", 88: "formulas"}
_X_LEFT_OUT = {"ole": "embedded objects", "pic": "pictures", "equation": "formulas"}
_TABLE_ID = b" lbt"
_SECTION = re.compile(r"Section(\d+)$")
_OUTLINE = re.compile(r"(?:개요|Outline) ?([1-9])$", re.I)
_SINGLE = {0, 10, 13, *range(24, 32)}
"""Control characters of one UTF-16 unit; all others below 32 take eight units."""

_SHOWN = {9: "\t", 10: "\n", 24: "-", 30: " ", 31: " "}

_PARSER = etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=True)


@dataclass
class _Table:
    """A table that is being read: the level of its control record; row and lines of each cell."""

    level: int
    cells: list[tuple[int, list[str]]] = field(default_factory=list)

    def rows(self) -> Iterator[list[str]]:
        by_key: dict[int, list[str]] = {}
        for row, lines in self.cells:
            by_key.setdefault(row, []).append(" ".join(lines))
        return iter(by_key.values())


def read(data: bytes, limits: ExtractSettings) -> ExtractedText:
    """Read HWP 5.

    Raises NeedsPassword if the document has a password or is protected for distribution.
    """
    with olefile.OleFileIO(io.BytesIO(data)) as ole:
        flags = struct.unpack_from("<I", ole.openstream("FileHeader").read(40), 36)[0]
        if flags & (_PASSWORD | _DISTRIBUTION):
            raise NeedsPassword("the Hangul document is protected")
        packed = bool(flags & _COMPRESSED)
        levels = _outline_levels(_unpacked(ole, "DocInfo", packed, limits))
        composer = Composer(limits)
        counts: Counter[str] = Counter()
        names = ["/".join(entry) for entry in ole.listdir() if entry[0] == "BodyText"]
        for name in sorted(filter(_SECTION.search, names), key=_number):
            content = _unpacked(ole, name, packed, limits)
            _section(content, levels, composer)
            counts.update(_LEFT_OUT[tag] for tag, _, _ in _records(content) if tag in _LEFT_OUT)
        title = title_of(ole)
    return composer.text(HWP, title, warnings=left_out(counts))


def _number(name: str) -> int:
    match = _SECTION.search(name)
    return int(match[1]) if match else 0


def _unpacked(ole: olefile.OleFileIO, name: str, packed: bool, limits: ExtractSettings) -> bytes:
    content: bytes = ole.openstream(name).read()
    if not packed:
        return content
    inflate = zlib.decompressobj(-zlib.MAX_WBITS)
    content = inflate.decompress(content, limits.memory_mb * MEGABYTE // 4)
    if inflate.unconsumed_tail:
        raise ExtractionLimit("the document unpacks to more than a quarter of the memory")
    return content


def _records(content: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Yield each record's tag, level and payload."""
    at = 0
    while at + 4 <= len(content):
        head = struct.unpack_from("<I", content, at)[0]
        tag, level, size = head & 0x3FF, head >> 10 & 0x3FF, head >> 20
        at += 4
        if size == 0xFFF:
            size = struct.unpack_from("<I", content, at)[0]
            at += 4
        yield tag, level, content[at : at + size]
        at += size


def _outline_levels(info: bytes) -> list[int]:
    """Return the heading level of each style by its number; 0 for styles of body text."""
    levels = []
    for tag, _, payload in _records(info):
        if tag == _STYLE:
            length = struct.unpack_from("<H", payload)[0]
            match = _OUTLINE.match(payload[2 : 2 + 2 * length].decode("utf-16-le", "replace"))
            levels.append(int(match[1]) if match else 0)
    return levels


def _section(content: bytes, levels: list[int], composer: Composer) -> None:
    tables: list[_Table] = []
    heading = 0
    for tag, level, payload in _records(content):
        while tables and level <= tables[-1].level:
            _close(tables, composer)
        if tag == _CONTROL and payload[:4] == _TABLE_ID:
            tables.append(_Table(level))
        elif tag == _LIST and tables and level == tables[-1].level + 1 and len(payload) >= 12:
            tables[-1].cells.append((struct.unpack_from("<H", payload, 10)[0], []))
        elif tag == _PARAGRAPH and len(payload) > 10:
            heading = levels[payload[10]] if payload[10] < len(levels) else 0
        elif tag == _TEXT:
            text = _characters(payload)
            if tables and tables[-1].cells:
                tables[-1].cells[-1][1].append(text)
            elif heading:
                composer.heading(text, heading)
            else:
                composer.paragraph(text)
    while tables:
        _close(tables, composer)


def _close(tables: list[_Table], composer: Composer) -> None:
    """End the innermost table; a table within a cell becomes words of that cell."""
    table = tables.pop()
    if tables and tables[-1].cells:
        tables[-1].cells[-1][1].extend(" ".join(row) for row in table.rows())
    else:
        composer.table(table.rows())


def _characters(payload: bytes) -> str:
    units = struct.unpack(f"<{len(payload) // 2}H", payload[: len(payload) & ~1])
    characters: list[int] = []
    at = 0
    while at < len(units):
        unit = units[at]
        if unit >= 32:
            characters.append(unit)
        elif shown := _SHOWN.get(unit):
            characters.append(ord(shown))
        at += 1 if unit >= 32 or unit in _SINGLE else 8
    return struct.pack(f"<{len(characters)}H", *characters).decode("utf-16-le", "replace")


def read_x(data: bytes, limits: ExtractSettings) -> ExtractedText:
    """Read HWPX."""
    composer = Composer(limits)
    counts: Counter[str] = Counter()
    with open_package(data, limits) as archive:
        names = [n for n in archive.namelist() if n.startswith("Contents/")]
        stems = {name: name.removesuffix(".xml").title() for name in names}
        levels: dict[str, int] = {}
        if "Contents/header.xml" in names:
            levels = _styles(etree.fromstring(archive.read("Contents/header.xml"), _PARSER))
        for name in sorted((n for n in names if _SECTION.search(stems[n])), key=_x_number):
            section = etree.fromstring(archive.read(name), _PARSER)
            for paragraph in section:
                _paragraph(paragraph, levels, composer)
            for tag, kind in _X_LEFT_OUT.items():
                counts[kind] += sum(1 for _ in section.iter(f"{{*}}{tag}"))
    return composer.text(HWPX, warnings=left_out(counts))


def _x_number(name: str) -> int:
    return _number(name.removesuffix(".xml").title())


def _styles(header: etree._Element) -> dict[str, int]:
    by_key = {}
    for style in header.iter("{*}style"):
        if match := _OUTLINE.match(style.get("name", "")):
            by_key[style.get("id", "")] = int(match[1])
    return by_key


def _paragraph(paragraph: etree._Element, levels: dict[str, int], composer: Composer) -> None:
    """Add the paragraph's own text, then the tables that are anchored to the paragraph."""
    text = _own_text(paragraph)
    if level := levels.get(paragraph.get("styleIDRef", ""), 0):
        composer.heading(text, level)
    else:
        composer.paragraph(text)
    for table in paragraph.iterfind("{*}run/{*}tbl"):
        composer.table(
            [
                " ".join(_own_text(p, deep=True) for p in cell.iterfind("{*}subList/{*}p"))
                for cell in row.iterfind("{*}tc")
            ]
            for row in table.iterfind("{*}tr")
        )


def _own_text(paragraph: etree._Element, *, deep: bool = False) -> str:
    runs = paragraph.iter("{*}t") if deep else paragraph.iterfind("{*}run/{*}t")
    return "".join(_run(run) for run in runs)


def _run(run: etree._Element) -> str:
    parts = [run.text or ""]
    for child in run:
        name = etree.QName(child).localname if isinstance(child.tag, str) else ""
        parts += {"lineBreak": "\n", "tab": "\t"}.get(name, ""), child.tail or ""
    return "".join(parts)
