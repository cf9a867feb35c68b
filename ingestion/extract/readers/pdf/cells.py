"""Puts the words of a PDF page into the cells of its ruled tables."""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from callslip.ingestion.extract.readers.pdf.geometry import Edges
from callslip.ingestion.extract.readers.pdf.outline import Line, LinePart, Table
from callslip.ingestion.extract.readers.pdf.ruled import LEAST_FILLED, Grid

INTO = 1.5
"""Points from the left edge of a word to where it is looked for, so that no rule decides."""

MOST_CELL_CHARS = 300
"""The maximum mean length of a cell's text; longer ones are columns of prose in frames."""

MOST_HEADER_ROWS = 3

_WORD = re.compile(r"\S+")
_LETTER = re.compile(r"[^\W\d_]")


class Piece(NamedTuple):
    """Successive words of a line: their text, and where they are."""

    text: str
    edges: Edges
    words: tuple[float, ...] | None
    line: Line


Cells = dict[tuple[int, int], list[Piece]]


def with_tables(lines: Sequence[Line], grids: Sequence[Grid], turn: int) -> list[Line]:
    """Return the lines of a page with a line for each row of its ruled tables.

    A table is where its first word was. What is beside it stays as it was.
    """
    now = list(lines)
    for grid in grids:
        now = _with_table(now, grid, turn)
    return now


def _with_table(lines: list[Line], grid: Grid, turn: int) -> list[Line]:
    cells: Cells = defaultdict(list)
    rest: list[Line] = []
    first = None
    for line in lines:
        if line.table is not None or line.turn != turn or not _touches(line, grid):
            rest.append(line)
            continue
        for where, piece in _pieces(line, grid):
            if where is None:
                rest.append(_alone(piece))
                continue
            first = len(rest) if first is None else first
            cells[where].append(piece)
    if first is None or not _is_table(grid, cells):
        return lines
    return [*rest[:first], *_rows(grid, cells), *rest[first:]]


def _touches(line: Line, grid: Grid) -> bool:
    return any(
        part.edges[2] > grid.xs[0]
        and part.edges[0] < grid.xs[-1]
        and grid.ys[0] < (part.edges[1] + part.edges[3]) / 2 < grid.ys[-1]
        for part in line.parts
    )


def _pieces(line: Line, grid: Grid) -> Iterator[tuple[tuple[int, int] | None, Piece]]:
    """Yield the successive words of a line that are in one cell, or outside (None)."""
    for part in line.parts:
        text = line.text[part.start : part.end]
        left, top, right, bottom = part.edges
        words = list(_WORD.finditer(text))
        if part.words is None or len(words) != len(part.words) + 1:
            yield (
                grid.cell((left + right) / 2, (top + bottom) / 2),
                Piece(text, part.edges, None, line),
            )
            continue
        lefts = (left, *part.words)
        where_of = [grid.cell(x + INTO, (top + bottom) / 2) for x in lefts]
        at = 0
        for after in range(1, len(words) + 1):
            if after < len(words) and where_of[after] == where_of[at]:
                continue
            end = lefts[after] if after < len(words) else right
            piece = text[words[at].start() : words[after - 1].end()]
            edges = (lefts[at], top, max(lefts[at], end), bottom)
            yield where_of[at], Piece(piece, edges, lefts[at + 1 : after], line)
            at = after


def _alone(piece: Piece) -> Line:
    """Return words that are beside a table as a line."""
    whole = LinePart(0, len(piece.text), piece.edges, piece.words)
    ends = piece.line.text.endswith(piece.text)
    return piece.line._replace(text=piece.text, parts=(whole,), hyphen=piece.line.hyphen and ends)


def _is_table(grid: Grid, cells: Cells) -> bool:
    """Whether words in a grid are a table.

    Half of its rows, and at least two, have all its columns; most of their cells have text. The
    boxes of a form or of a drawing are not so regular.
    """
    rows = {row for row, _ in cells}
    roots = {row: {grid.roots[row, column] for column in range(grid.columns)} for row in rows}
    whole = [of_row for of_row in roots.values() if len(of_row) == grid.columns]
    if len(whole) < 2 or 2 * len(whole) < len(rows):
        return False
    regular = set().union(*whole)
    filled = regular & cells.keys()
    several = [of_row for of_row in whole if len(of_row & filled) > 1]
    if len(filled) < LEAST_FILLED * len(regular) or len(several) < 2:
        return False
    characters = sum(len(piece.text) for pieces in cells.values() for piece in pieces)
    return characters <= MOST_CELL_CHARS * len(cells)


def _rows(grid: Grid, cells: Cells) -> Iterator[Line]:
    """Yield a line for each row that has text: its cells with bars between them."""
    table = Table(_header_rows(grid, cells))
    heads = 0
    for row in range(grid.rows):
        text, parts = "", []
        pieces = [cells.get((row, column), []) for column in range(grid.columns)]
        while pieces and not pieces[-1]:
            pieces.pop()
        for column, cell in enumerate(pieces):
            text += " |" if text else "|" if column else ""
            joined = False
            for piece in sorted(cell, key=_reading_order):
                text += "" if joined or not text else " "
                parts.append(
                    LinePart(len(text), len(text) + len(piece.text), piece.edges, piece.words)
                )
                text += piece.text
                joined = piece.line.hyphen and piece.line.text.endswith(piece.text)
        if not parts:
            continue
        heads += row < table.header_rows
        line = next(piece.line for cell in pieces for piece in cell)
        yield Line(
            text, line.size, line.down, False, False, True, line.turn, None, tuple(parts), table
        )


def _header_rows(grid: Grid, cells: Cells) -> int:
    """Return the number of header rows: one of names, below a title that spans the table.

    A name that spans several rows makes all of them header rows.
    """
    rows = [
        [column for column in range(grid.columns) if cells.get((row, column))]
        for row in range(grid.rows)
    ]
    first = 1 if len(rows[0]) == 1 and grid.rows > 2 else 0
    named = rows[first]
    texts = [" ".join(piece.text for piece in cells[first, column]) for column in named]
    if len(named) < 2 or not all(map(_LETTER.search, texts)):
        return 0
    last = max(row for (row, _), root in grid.roots.items() if root in {(first, c) for c in named})
    heads = last + 1
    return heads if heads <= first + MOST_HEADER_ROWS and heads < grid.rows else first + 1


def _reading_order(piece: Piece) -> tuple[float, float]:
    return round((piece.edges[1] + piece.edges[3]) / 6), piece.edges[0]
