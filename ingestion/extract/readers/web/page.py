"""HTML: the text as a browser shows it, without navigation, and the headings h1 to h6."""

import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser

from inscriptis import Inscriptis
from inscriptis.css_profiles import CSS_PROFILES
from inscriptis.html_properties import Display, WhiteSpace
from inscriptis.model.config import ParserConfig
from inscriptis.model.html_element import HtmlElement
from lxml import etree, html

from callslip.config.settings import ExtractSettings
from callslip.ingestion.extract.composer import row_line
from callslip.ingestion.extract.decode import Decoded, decode
from callslip.ingestion.extract.readers.web.grid import columns_of
from callslip.ingestion.extract.readers.web.navigation import remove_navigation
from callslip.ingestion.left_out import read_otherwise
from callslip.ingestion.values import Block, ExtractedText, Heading

_LEVELS = {f"h{level}": level for level in range(1, 7)}
_GRID, _GRID_HEAD = "grid", "gridhead"
"""Private elements that replace a table of plain rows, and the header within this table."""

_BLOCKS = (
    *("center", "dd", "details", "dialog", "dir", "dl", "dt", "fieldset", "form", "hr"),
    *("legend", "menu", "optgroup", "option", "search", "section", "summary"),
)
"""Elements that browsers show as blocks and inscriptis within a line, with what follows."""

_CSS = CSS_PROFILES["strict"] | {
    tag: HtmlElement(tag=tag, display=Display.block) for tag in _BLOCKS
}
_LAYOUT = ParserConfig(
    css=_CSS
    | {
        _GRID: HtmlElement(tag=_GRID, display=Display.block, whitespace=WhiteSpace.pre),
        _GRID_HEAD: HtmlElement(tag=_GRID_HEAD, whitespace=WhiteSpace.pre),
    },
    annotation_rules={tag: [tag] for tag in (*_LEVELS, "pre", _GRID, _GRID_HEAD)},
)
_FLOW = {
    "table", "div", "ul", "ol", "dl", "pre", "blockquote", "article", "section", "form", "hr",
    *_LEVELS,
}  # fmt: skip
"""Elements that make their table a layout table, with cells that are more than words."""

_PARTS = ("section", "article", "div", "header", "hgroup", "dt", "li")
"""Elements whose id leads to the heading that is their first child."""

LONGEST_ID = 200
_BLANK = re.compile(r"\s").search

_CHARSET = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([\w.:-]{1,40})", re.I)
_XML_DECLARATION = re.compile(r"\s*<\?xml[^>]*\?>")
_CONTROL = re.compile("[\x00-\x08\x0b\x0e-\x1f]+")  # libxml2 ends the document at a NUL
_STRING = etree.XPath("string()")
_UNSEEN = ("script", "style", "title")
_TOO_DEEP = read_otherwise("without layout and headings", {"pages that are nested too deeply": 1})


def read(data: bytes, limits: ExtractSettings) -> ExtractedText:
    """Decode by byte order mark, UTF-8, `<meta charset>`, then detection; lay out the text."""
    decoded = decode_page(data)
    page = render(decoded.text)
    return replace(page, warnings=decoded.warnings + page.warnings)


def decode_page(data: bytes) -> Decoded:
    """Decode the bytes of a page."""
    declared = _CHARSET.search(data[:4096])
    return decode(data, declared[1].decode("ascii") if declared else None)


def render(source: str) -> ExtractedText:
    """Lay out the HTML of a page or an e-mail.

    HTML that is nested too deeply gives its text without layout and headings, and a warning.
    """
    source = _CONTROL.sub("", _XML_DECLARATION.sub("", source, count=1))
    if not source.strip():
        return ExtractedText("", "text/html")
    parser = html.HTMLParser(huge_tree=True)  # otherwise lxml drops nodes deeper than 255
    tree = html.document_fromstring(source, parser=parser, ensure_head_body=True)
    title = tree.findtext(".//title")
    try:
        if parser.error_log.filter_types(etree.ErrorTypes.ERR_RESOURCE_LIMIT):
            raise RecursionError  # lxml still drops nodes deeper than 2,048
        remove_navigation(tree)
        ids = list(_ids(tree))
        _mark_tables(tree)
        engine = Inscriptis(tree, _LAYOUT)
        text = engine.get_text()
    except RecursionError:
        text_only = _TextOnly()
        text_only.feed(source)
        text_only.close()
        return ExtractedText("\n".join(text_only.lines), "text/html", title, warnings=(_TOO_DEEP,))
    labels = sorted((a.start, a.end, a.metadata) for a in engine.get_annotations())
    headings = _headings(text, [label for label in labels if label[2] in _LEVELS])
    headings = _with_ids(text, headings, ids)
    if not (title and title.strip()) and headings:
        title = text[headings[0].start : headings[0].end]
    return ExtractedText(text, "text/html", title, headings, blocks=tuple(_blocks(text, labels)))


def _mark_tables(tree: etree._Element) -> None:
    """Replace each table of plain cells by lines, one per row; its layout is mostly blanks."""
    for table in list(tree.iter("table")):
        if any(inner is not table and inner.tag in _FLOW for inner in table.iter()):
            continue
        if next(table.iterancestors("table"), None) is not None:
            continue
        etree.strip_elements(table, *_UNSEEN, with_tail=False)
        rows = list(table.iter("tr"))
        grid = columns_of(rows)
        if sum(len(cells) > 1 for cells in grid) < 2:
            continue
        lines = [_line(cells) for cells in grid]
        heads = 0
        for row, cells in zip(rows, grid, strict=True):
            within = next(row.iterancestors("thead", "table")).tag
            if within != "thead" and any(cell.tag == "td" for _, cell in cells):
                break
            heads += 1
        heads = heads if heads < len(rows) else 0
        caption = table.find("caption")
        if caption is not None and (words := _words(caption)):
            above = etree.Element("p")
            above.text = words
            table.addprevious(above)
        table.clear(keep_tail=True)  # type: ignore[call-arg]  # unknown to the stubs
        table.tag = _GRID
        if head := [line for line in lines[:heads] if line]:
            etree.SubElement(table, _GRID_HEAD).text = "\n".join(head) + "\n"
            table[0].tail = "\n".join(filter(None, lines[heads:]))
        else:
            table.text = "\n".join(filter(None, lines))


def _line(cells: list[tuple[int, etree._Element]]) -> str:
    """Return a row on one line; columns in which no cell begins are empty."""
    row = [""] * (cells[-1][0] + 1) if cells else []
    for column, cell in cells:
        row[column] = _words(cell)
    return row_line(row)


def _words(cell: etree._Element) -> str:
    """Return the words of a cell on one line."""
    for inner in cell.iter("br", "p", "li"):
        inner.tail = f" {inner.tail or ''}"
    return " ".join(str(_STRING(cell)).split())


def _blocks(text: str, labels: list[tuple[int, int, str]]) -> Iterator[Block]:
    """Yield tables and `<pre>` as whole lines; leave out a block within another one."""
    heads = iter([end for _, end, tag in labels if tag == _GRID_HEAD])
    last = 0
    for start, end, tag in labels:
        if tag not in ("pre", _GRID):
            continue
        inner = text[start:end]
        first = start + len(inner) - len(inner.lstrip())
        first = text.rfind("\n", 0, first) + 1
        end = start + len(inner.rstrip())
        if first >= end or first < last:
            continue
        header = first
        if tag == _GRID:
            header = next((h for h in heads if first < h), first)
            header = header if header < end else first
        yield Block(first, end, "code" if tag == "pre" else "table", header)
        last = end


class _TextOnly(HTMLParser):
    """Collects the text without layout, for HTML that is nested too deeply for a tree."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self._unseen = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._unseen += tag in _UNSEEN

    def handle_endtag(self, tag: str) -> None:
        self._unseen -= tag in _UNSEEN and self._unseen > 0

    def handle_data(self, data: str) -> None:
        if not self._unseen and data.strip():
            self.lines.append(data.strip())


def _headings(text: str, labels: list[tuple[int, int, str]]) -> tuple[Heading, ...]:
    """Return the labelled spans without outer blanks, unless the line has other text (a table)."""
    outline: list[Heading] = []
    for start, end, tag in sorted(labels):
        inner = text[start:end]
        start += len(inner) - len(inner.lstrip())
        end = start + len(inner.strip())
        alone = (
            not text[text.rfind("\n", 0, start) + 1 : start].strip()
            and not text[end : _line_end(text, end)].strip()
        )
        if start < end and alone and (not outline or outline[-1].end <= start):
            outline.append(Heading(start, end, _LEVELS[tag]))
    return tuple(outline)


def _ids(tree: etree._Element) -> Iterator[tuple[str, str]]:
    """Yield the letters of each heading in order, and the id that leads to it; often empty."""
    for heading in tree.iter(*_LEVELS):
        own = (heading.get(name) for name in ("id", "name"))
        inner = (each.get(name) for each in heading.iterdescendants() for name in ("id", "name"))
        before, around = heading.getprevious(), heading.getparent()
        outer = []
        if before is not None and before.tag == "a" and not str(_STRING(before)).strip():
            outer = [before.get("id"), before.get("name")]
        elif before is None and around is not None and around.tag in _PARTS:
            outer = [around.get("id")]
        named = (n for n in (*own, *inner, *outer) if n and len(n) <= LONGEST_ID and not _BLANK(n))
        yield "".join(str(_STRING(heading)).split()), next(named, "")


def _with_ids(
    text: str, headings: tuple[Heading, ...], ids: list[tuple[str, str]]
) -> tuple[Heading, ...]:
    """Return the headings with their ids; `ids` also has headings that the layout left out."""
    positions: dict[str, list[int]] = {}
    for position, (letters, _) in enumerate(ids):
        positions.setdefault(letters, []).append(position)
    named: list[Heading] = []
    at = 0
    for heading in headings:
        same = positions.get("".join(text[heading.start : heading.end].split()), [])
        if (nth := bisect_left(same, at)) < len(same):
            at = same[nth] + 1
            heading = replace(heading, anchor=ids[same[nth]][1])
        named.append(heading)
    return tuple(named)


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end
