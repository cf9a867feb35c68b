"""reStructuredText: its text without roles, targets and adornments, its titles, code and tables.

This module applies the rules of the specification line by line, because docutils gives no spans and
its directives read files.
"""

import re
from collections.abc import Iterator
from dataclasses import replace

from callslip.config.settings import ExtractSettings
from callslip.ingestion.extract.clean import clean
from callslip.ingestion.extract.cuts import cut
from callslip.ingestion.extract.decode import decode
from callslip.ingestion.extract.lines import Lines
from callslip.ingestion.extract.readers.text.restructured_markup import ADORNMENT, cuts_and_links
from callslip.ingestion.extract.sniff import RST
from callslip.ingestion.values import Block, ExtractedText, Heading

_SIMPLE_RULE = re.compile(r"\s*=+(?: +=+)+\s*$")
_GRID_RULE = re.compile(r"\s*\+(?:[-=]+\+)+\s*$")
_CODE = re.compile(r"\s*\.\. (?:code-block|code|sourcecode|parsed-literal|highlight|math)::")
_DIRECTIVE = re.compile(r"\s*\.\. ")
_OPTION = re.compile(r"\s*:[\w-]+:")


def read(data: bytes, limits: ExtractSettings) -> ExtractedText:
    """Return the text with its headings, code and tables.

    Lists, tables, code and emphasis stay as written; `restructured_markup` says what is cut.
    """
    decoded = decode(data)
    text = clean(decoded.text)
    lines = Lines(text)
    blocks = tuple(_blocks(lines))
    headings = tuple(_headings(lines, blocks))
    cuts, links = cuts_and_links(lines, headings, blocks)
    source = ExtractedText(
        text, RST, headings=headings, blocks=blocks, links=tuple(links), warnings=decoded.warnings
    )
    cleaned = cut(source, cuts)
    titles = (cleaned.text[h.start : h.end] for h in cleaned.headings)
    return replace(cleaned, title=next(titles, None))


def _headings(lines: Lines, blocks: tuple[Block, ...]) -> Iterator[Heading]:
    """Yield titles by their adornment; the styles have levels in the order of first occurrence."""
    styles: list[tuple[str, bool]] = []
    inside = iter(blocks)
    block = next(inside, None)
    for at in range(1, len(lines)):
        while block is not None and block.end < lines.starts[at]:
            block = next(inside, None)
        if block is not None and block.start <= lines.starts[at]:
            continue
        line, above = lines.all[at], lines.all[at - 1]
        match = ADORNMENT.match(line)
        if match is None or not above.strip() or ADORNMENT.match(above):
            continue
        over = at >= 2 and lines.all[at - 2].rstrip() == line.rstrip()
        fits = len(line.rstrip()) >= min(4, len(above.rstrip()))
        if not (over or (fits and lines.indent(at - 1) == 0 and lines.blank(at - 2))):
            continue
        style = (match[1], over)
        if style not in styles:
            styles.append(style)
        start = lines.starts[at - 1] + lines.indent(at - 1)
        yield Heading(start, start + len(above.strip()), styles.index(style) + 1)


def _blocks(lines: Lines) -> Iterator[Block]:
    at = 0
    while at < len(lines):
        line = lines.all[at]
        after = at + 1
        if _GRID_RULE.match(line):
            while after < len(lines) and lines.all[after].lstrip()[:1] in ("+", "|"):
                after += 1
            yield _table(lines, at, after, "+=")
        elif _SIMPLE_RULE.match(line) and lines.blank(at - 1):
            after = _after_simple(lines, at)
            yield _table(lines, at, after, "=")
        elif _CODE.match(line) or (line.rstrip().endswith("::") and not _DIRECTIVE.match(line)):
            after = lines.after_indented(at)
            first = at + 1
            while first < after and (lines.blank(first) or _OPTION.match(lines.all[first])):
                first += 1
            if first < after:
                yield Block(lines.starts[first], lines.end(after - 1), "code", lines.starts[first])
        at = max(after, at + 1)


def _table(lines: Lines, first: int, after: int, rule: str) -> Block:
    """Return a table; its header ends at the second rule of a simple table, at `+===` of a grid."""
    head = next(
        (i for i in range(first + 1, after - 1) if lines.all[i].lstrip().startswith(rule)), None
    )
    start = lines.starts[first]
    header = start if head is None else lines.starts[head + 1]
    return Block(start, lines.end(after - 1), "table", header)


def _after_simple(lines: Lines, at: int) -> int:
    """Find the line after the last rule: the second, or the third after a header."""
    rules = 0
    for i in range(at + 1, len(lines)):
        if _SIMPLE_RULE.match(lines.all[i]):
            rules += 1
            if rules == 2 or lines.blank(i + 1):
                return i + 1
    return at + 1
