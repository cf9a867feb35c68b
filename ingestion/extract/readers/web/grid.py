"""Puts the cells of an HTML table into its columns, with `rowspan` and `colspan`."""

import re
from collections.abc import Iterator, Sequence

from lxml import etree

MOST_COLUMNS = 100
"""The columns from the left within which spans count: a few bytes could fill any number."""

_NUMBER = re.compile(r"\s*\+?(\d{1,9})", re.ASCII)


def columns_of(rows: Sequence[etree._Element]) -> list[list[tuple[int, etree._Element]]]:
    """Return the cells of each row, each with the column (from 0) in which it begins.

    A column in which no cell begins does not count. A cell ends with its `<thead>`, `<tbody>` or
    `<tfoot>`, however many rows it is to span.
    """
    placed = [list(cells) for cells in _placed(rows)]
    begun = sorted({at for cells in placed for at, _ in cells})
    number = {at: n for n, at in enumerate(begun)}
    return [[(number[at], cell) for at, cell in cells] for cells in placed]


def _placed(rows: Sequence[etree._Element]) -> Iterator[list[tuple[int, etree._Element]]]:
    group = None
    free: dict[int, int] = {}  # the first row below the cell that spans a column
    for number, row in enumerate(rows):
        if row.getparent() is not group:
            group = row.getparent()
            free.clear()
        cells, at = [], 0
        for cell in row.iterchildren("td", "th"):
            while free.get(at, 0) > number:
                at += 1
            cells.append((at, cell))
            end = at + max(1, min(_span(cell, "colspan") or 1, MOST_COLUMNS - at))
            below = number + (_span(cell, "rowspan") or len(rows))  # 0 is the rest of the group
            if below > number + 1:
                free.update(dict.fromkeys(range(at, min(end, MOST_COLUMNS)), below))
            at = end
        yield cells


def _span(cell: etree._Element, name: str) -> int:
    """Return the number at the start of an attribute, as browsers do; 1 without a number."""
    number = _NUMBER.match(cell.get(name, ""))
    return int(number[1]) if number else 1
