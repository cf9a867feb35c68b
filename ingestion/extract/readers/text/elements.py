"""XML: the text of its elements, without attributes, comments and processing instructions.

The names of elements mean something in one vocabulary alone. So an element between others, with
nothing but line ends around them, has lines of its own; an element among words belongs to their
line. A few names that several vocabularies share say more: titles of sections, rows, code.
"""

import html
import re

from lxml import etree

from callslip.config.settings import ExtractSettings
from callslip.ingestion.extract.composer import Composer
from callslip.ingestion.extract.decode import Decoded, decode
from callslip.ingestion.extract.sniff import PLAIN, XML
from callslip.ingestion.left_out import read_otherwise
from callslip.ingestion.values import ExtractedText

_PARSER = etree.XMLParser(
    encoding="utf-8",  # whatever the file declares: `decode` has done it
    resolve_entities=False,
    no_network=True,
    remove_comments=True,
    remove_pis=True,
)
"""Refuses elements that are nested deeper than 255, and entities that expand much."""

_DECLARED = re.compile(rb"<\?xml[^>]{0,200}?encoding\s{0,9}=\s{0,9}[\"']([\w.:-]{1,40})")
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f]+")  # no characters of XML
_BLANK_LINES = re.compile(r"\n[ \t]*\n")

_SECTIONS = {
    "section", "sec", "subsection", "sect1", "sect2", "sect3", "sect4", "sect5", "chapter", "part",
    "article", "appendix", "topic",
}  # fmt: skip
_FRONT = {"front", "info"}
"""Elements with the title of the section that they stand in."""

_TITLES = {"title", "name", "heading"}
_PARAGRAPHS = {"p", "para", "simpara"}
"""Elements that have a line of their own, and whose elements belong to it."""

_LINES = _PARAGRAPHS | {"li", "item", "listitem", "dt", "dd", "br"}
_CODE = {"pre", "programlisting", "screen", "literallayout", "sourcecode", "artwork"}
_ROWS = {"tr", "row"}
_PARTS_OF_TABLE = {"thead", "tbody", "tfoot"}


def read(data: bytes, limits: ExtractSettings) -> ExtractedText:
    """Read the text of the elements; XML that is broken, or has none, is read as plain text."""
    declared = _DECLARED.match(data.lstrip())
    decoded = decode(data, declared[1].decode("ascii") if declared else None)
    try:
        root = etree.fromstring(_CONTROL.sub("", decoded.text).encode("utf-8", "replace"), _PARSER)
    except etree.XMLSyntaxError as error:
        if getattr(error, "code", None) == etree.ErrorTypes.ERR_NO_MEMORY:
            raise
        return _plain(decoded, "XML that is not well-formed")
    document = _Document(root, limits)
    text = document.composer.text(XML, warnings=decoded.warnings)
    return text if text.text else _plain(decoded, "XML without text in its elements")


def _plain(decoded: Decoded, kind: str) -> ExtractedText:
    warning = read_otherwise("as plain text", {kind: 1})
    return ExtractedText(decoded.text, PLAIN, warnings=(*decoded.warnings, warning))


class _Document:
    """Adds the lines, rows, headings and code of all elements to its composer."""

    def __init__(self, root: etree._Element, limits: ExtractSettings) -> None:
        self.composer = Composer(limits)
        declarations = root.getroottree().docinfo.internalDTD
        entities = () if declarations is None else declarations.iterentities()  # type: ignore[attr-defined]  # unknown to the stubs
        self._entities = {entity.name: entity.content for entity in entities}
        self._line: list[str] = []
        self._rows: list[list[str]] = []
        self._add(root, 1, titled=True, inline=False)
        self._end_line()
        self._end_table()

    def _add(self, element: etree._Element, level: int, *, titled: bool, inline: bool) -> None:
        """Add an element; if it is `titled`, a title in it is a heading of this level."""
        inline = inline or _name(element) in _PARAGRAPHS
        separate = _are_separate(element, inline=inline)
        self._line.append(element.text or "")
        for child in element:
            name = _name(child)
            if isinstance(child, etree._Entity):
                self._line.append(self._of_entity(child))
            elif titled and name in _TITLES:
                self._end_line()
                self._end_table()
                self.composer.heading(self._text(child), level)
            elif name in _CODE:
                self._end_line()
                self._end_table()
                self.composer.code(self._text(child))
            elif name in _ROWS:
                self._end_line()
                self._rows.append([self._text(cell) for cell in child])
            elif separate or name in _LINES:
                self._end_line()
                deeper = level + (name in _SECTIONS)
                self._add(child, deeper, titled=name in _SECTIONS | _FRONT, inline=False)
                self._end_line()
                if name not in _PARTS_OF_TABLE:
                    self._end_table()
            else:
                self._add(child, level, titled=False, inline=True)
            self._line.append(child.tail or "")

    def _end_line(self) -> None:
        """Add the line if it has words; a blank line of it parts paragraphs."""
        words = "".join(self._line).strip()
        self._line = []
        if words:
            self._end_table()
        for paragraph in _BLANK_LINES.split(words):
            self.composer.paragraph(" ".join(paragraph.split()))

    def _end_table(self) -> None:
        if self._rows:
            self.composer.table(self._rows)
            self._rows = []

    def _text(self, element: etree._Element) -> str:
        parts: list[str] = []
        self._gather(element, parts)
        return "".join(parts)

    def _gather(self, element: etree._Element, parts: list[str]) -> None:
        if isinstance(element, etree._Entity):
            parts.append(self._of_entity(element))
            return
        parts.append(element.text or "")
        for child in element:
            self._gather(child, parts)
            parts.append(child.tail or "")

    def _of_entity(self, entity: etree._Entity) -> str:
        """Return the characters of an entity; one that is not known stays as written."""
        return self._entities.get(entity.name) or html.unescape(f"&{entity.name};")


def _are_separate(element: etree._Element, *, inline: bool) -> bool:
    """Whether the elements in an element have lines of their own: no words are between them.

    Blanks without a line end part words. Within a line, only line ends part elements.
    """
    gaps = [gap for gap in (element.text, *(child.tail for child in element)) if gap]
    lines = all("\n" in gap and not gap.strip() for gap in gaps)
    return lines and bool(gaps or not inline)


def _name(element: etree._Element) -> str:
    """Return the name without its namespace in lower case; empty for an entity."""
    return element.tag.rpartition("}")[2].lower() if isinstance(element.tag, str) else ""
