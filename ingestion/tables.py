"""The cells of the tables in an extracted text."""

import csv
import io
import re
from collections.abc import Iterator, Sequence
from itertools import chain, zip_longest

from callslip.errors import DocumentTableNotFound
from callslip.ingestion.extract.sniff import MARKDOWN, PDF, RST
from callslip.ingestion.values import ExtractedText

Row = list[str]

MOST_FIELDS = 5_000_000
"""The maximum fields of a table with rows of equal length: a small file may have one long row."""

MOST_COLUMNS = 1_000
"""The maximum columns of a simple table of RST; a line of a wider one is one cell."""

_BAR = re.compile(r"(?:^|(?<=\s))\|(?=\s|$)")
"""Separates the cells of a row (`composer.CELL_GAP`); a bar within a word is part of the word."""

_MARKDOWN_BAR = re.compile(r"(?<!\\)\|")
_FIGURE = re.compile(r"[-+(]?[$€£₩]?[\d.,]*\d[)%]?|[-–—]")
_DASHES = re.compile(r"[\s|:-]*-[\s|:-]*")
_GRID_RULE = re.compile(r"\+[-=+]+\+?\s*")
_SIMPLE_RULE = re.compile(r"[=-]{2,}(?: +[=-]{2,})+\s*")
_COLUMN = re.compile(r"[=-]+")


def as_csv(text: ExtractedText, number: int) -> str:
    """Return a table of a text (from 1) as CSV (RFC 4180), its header rows first.

    Values are as they stand in the text, formulas included. A row has as many fields as the
    longest one, unless the table would have more than MOST_FIELDS. Raises DocumentTableNotFound.
    """
    rows = list(rows_of(text, number))
    width = max(map(len, rows), default=0)
    if width * len(rows) > MOST_FIELDS:
        width = 0
    file = io.StringIO()
    csv.writer(file).writerows(row + [""] * (width - len(row)) for row in rows)
    return file.getvalue()


def rows_of(text: ExtractedText, number: int) -> Iterator[Row]:
    """Return the rows of a table of a text (from 1). Raises DocumentTableNotFound."""
    tables = [block for block in text.blocks if block.kind == "table"]
    if not 1 <= number <= len(tables):
        raise DocumentTableNotFound(f"the text has {len(tables)} tables, and no table {number}")
    lines = text.text[tables[number - 1].start : tables[number - 1].end].split("\n")
    if text.media_type == MARKDOWN:
        return _markdown(lines)
    if text.media_type == RST:
        return _grid(lines) if _GRID_RULE.match(lines[0].strip()) else _simple(lines)
    if text.media_type == PDF and not any(map(_BAR.search, lines)):
        return map(_figures, lines)
    return map(cells_of, lines)


def cells_of(line: str) -> Row:
    """Return the cells of a row, which `composer.CELL_GAP` separates."""
    return [cell.strip() for cell in _BAR.split(line)]


def _figures(line: str) -> Row:
    """Return the cells of a row of a table without rules: a name, and figures after it.

    A line of names, such as the header, is one cell: nothing says where its columns begin.
    """
    words = line.split()
    first = len(words)
    while first and _FIGURE.fullmatch(words[first - 1]):
        first -= 1
    return [" ".join(words[:first]), *words[first:]]


def _markdown(lines: Sequence[str]) -> Iterator[Row]:
    """Yield the rows of a table of GFM without its line of dashes."""
    for number, line in enumerate(lines):
        if number == 1 and _DASHES.fullmatch(line):
            continue
        inner = line.strip().removeprefix("|")
        if inner.endswith("|") and not inner.endswith("\\|"):
            inner = inner[:-1]
        yield [cell.replace("\\|", "|").strip() for cell in _MARKDOWN_BAR.split(inner)]


def _grid(lines: Sequence[str]) -> Iterator[Row]:
    """Yield the rows of a grid table, whose cells may have several lines."""
    row: list[Row] = []
    for line in map(str.strip, lines):
        if not _GRID_RULE.match(line):
            row.append([cell.strip() for cell in line.strip("|").split("|")])
        elif row:
            yield _joined(row)
            row = []
    if row:
        yield _joined(row)


def _simple(lines: Sequence[str]) -> Iterator[Row]:
    """Yield the rows of a simple table; a line without a first cell continues the row above."""
    columns = [match.start() for match in _COLUMN.finditer(lines[0])]
    if len(columns) > MOST_COLUMNS:
        columns = [0]
    row: list[Row] = []
    for line in lines:
        if _SIMPLE_RULE.fullmatch(line.strip()):
            continue
        ends = [*columns[1:], None]
        cells = [line[at:end].strip() for at, end in zip(columns, ends, strict=True)]
        if row and cells[0]:
            yield _joined(row)
            row = []
        if any(cells):
            row.append(cells)
    if row:
        yield _joined(row)


def _joined(lines: Sequence[Row]) -> Row:
    """Return a row whose cells are on several lines."""
    if max(map(len, lines)) * len(lines) > MOST_FIELDS:
        return [" ".join(filter(None, chain.from_iterable(lines)))]
    columns = zip_longest(*lines, fillvalue="")
    return [" ".join(filter(None, column)) for column in columns]
