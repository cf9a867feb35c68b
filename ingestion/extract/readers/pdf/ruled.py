"""The ruled tables of a page: the lines and the areas that are drawn around their cells."""

import ctypes
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

import pypdfium2.raw as raw

from callslip.ingestion.extract.readers.pdf.calls import unchecked
from callslip.ingestion.extract.readers.pdf.geometry import Edges, Shown
from callslip.ingestion.extract.readers.pdf.hidden import NEAR_WHITE, Drawn, Matrix, bounds_of

MOST_PATHS = 4000
"""A page with more objects that are no text is a drawing."""

THIN = 2.5
"""Points up to which an area is a rule."""

SHORT = 6.0
"""Points below which a line is no rule, but part of a letter or of a symbol."""

NEAR = 3.0
"""Points between rules that are one, or that touch."""

LEAST_GRID = 40.0
"""Points below which a path of many lines is a symbol."""

MOST_SEGMENTS = 200
"""A path with more segments is a drawing."""

LEAST_FILLED = 0.6
"""The minimum share of cells with text; below it the rules are those of a form or a drawing."""

RECTANGLE = (4, 5)
"""Segments of a path that is a rectangle."""

_type, _segments = unchecked(raw.FPDFPageObj_GetType), unchecked(raw.FPDFPath_CountSegments)
_draw_mode, _color = unchecked(raw.FPDFPath_GetDrawMode), unchecked(raw.FPDFPageObj_GetFillColor)


class Rule(NamedTuple):
    """A horizontal rule at `at` down the page, or a vertical one at `at` across it."""

    at: float
    start: float
    end: float


@dataclass
class Grid:
    """The rows and columns of a table: their edges, and the rules between the cells."""

    ys: list[float]
    xs: list[float]
    across: list[Rule] = field(repr=False)
    down: list[Rule] = field(repr=False)

    def cell(self, x: float, y: float) -> tuple[int, int] | None:
        """Return the row and the column at a position; None outside."""
        row, column = _band(self.ys, y), _band(self.xs, x)
        return None if row is None or column is None else self.roots[row, column]

    def __post_init__(self) -> None:
        """Join cells that no rule parts: the first of them stands for all."""
        self.roots: dict[tuple[int, int], tuple[int, int]] = {}
        for row, (top, bottom) in enumerate(pairwise(self.ys)):
            for column, (left, right) in enumerate(pairwise(self.xs)):
                root = (row, column)
                middle_x, middle_y = (left + right) / 2, (top + bottom) / 2
                if column and not _is_ruled(self.down, left, middle_y):
                    root = self.roots[row, column - 1]
                elif row and not _is_ruled(self.across, top, middle_x):
                    root = self.roots[row - 1, column]
                self.roots[row, column] = root

    @property
    def rows(self) -> int:
        """The number of rows."""
        return len(self.ys) - 1

    @property
    def columns(self) -> int:
        """The number of columns."""
        return len(self.xs) - 1


def grids(drawn: Drawn, shown: Shown) -> list[Grid]:
    """Return the grids of at least two rows and two columns that are drawn on a page."""
    if len(drawn.others) > MOST_PATHS:
        return []
    across: list[Rule] = []
    down: list[Rule] = []
    for handle, matrix in drawn.others:
        for rule, is_across in _rules(handle, matrix, shown):
            (across if is_across else down).append(rule)
    across, down = _joined(across), _joined(down)
    made = []
    for horizontals, verticals in _connected(across, down):
        ys = _edges(horizontals, verticals)
        xs = _edges(verticals, horizontals)
        if len(ys) > 2 and len(xs) > 2:
            made.append(Grid(ys, xs, horizontals, verticals))
    return made


def _rules(handle: Any, matrix: Matrix, shown: Shown) -> Iterator[tuple[Rule, bool]]:
    """Yield the rules that a path draws, each with whether it is horizontal."""
    if _type(handle) != raw.FPDF_PAGEOBJ_PATH:
        return
    left, low, right, high = bounds_of(handle, matrix)
    x, y, x_end, y_end = shown.box(left, high, right, low)
    width, height = x_end - x, y_end - y
    if min(width, height) <= THIN:
        yield from _line(x, y, x_end, y_end)
        return
    segments = _segments(handle)
    if segments in RECTANGLE:
        if _is_seen(handle):
            for edge in ((x, y, x_end, y), (x, y_end, x_end, y_end)):
                yield from _line(*edge)
            for edge in ((x, y, x, y_end), (x_end, y, x_end, y_end)):
                yield from _line(*edge)
    elif segments <= MOST_SEGMENTS and max(width, height) > LEAST_GRID and _is_seen(handle):
        yield from _lines(handle, segments, (left, low, right, high), shown)


def _line(x: float, y: float, x_end: float, y_end: float) -> Iterator[tuple[Rule, bool]]:
    if x_end - x >= max(SHORT, y_end - y):
        yield Rule((y + y_end) / 2, x, x_end), True
    elif y_end - y >= SHORT:
        yield Rule((x + x_end) / 2, y, y_end), False


def _lines(handle: Any, count: int, bounds: Edges, shown: Shown) -> Iterator[tuple[Rule, bool]]:
    """Yield the straight lines of a path of several, such as a whole grid.

    The points of a path are in coordinates of its own, which its bounds scale to the page.
    """
    x, y = ctypes.c_float(), ctypes.c_float()
    points: list[tuple[int, float, float]] = []
    for number in range(count):
        segment = raw.FPDFPath_GetPathSegment(handle, number)
        kind = raw.FPDFPathSegment_GetType(segment)
        if kind == raw.FPDF_SEGMENT_BEZIERTO:
            return
        raw.FPDFPathSegment_GetPoint(segment, x, y)
        points.append((kind, x.value, y.value))
    xs, ys = sorted(p[1] for p in points), sorted(p[2] for p in points)
    if xs[0] == xs[-1] or ys[0] == ys[-1]:
        return
    scale_x = (bounds[2] - bounds[0]) / (xs[-1] - xs[0])
    scale_y = (bounds[3] - bounds[1]) / (ys[-1] - ys[0])
    for (_, x1, y1), (kind, x2, y2) in pairwise(points):
        if kind != raw.FPDF_SEGMENT_LINETO:
            continue
        ends_x = sorted(bounds[0] + (each - xs[0]) * scale_x for each in (x1, x2))
        ends_y = sorted(bounds[1] + (each - ys[0]) * scale_y for each in (y1, y2))
        box = shown.box(ends_x[0], ends_y[1], ends_x[1], ends_y[0])
        if min(box[2] - box[0], box[3] - box[1]) <= THIN:
            yield from _line(*box)


def _is_seen(handle: Any) -> bool:
    """Whether the edges of an area are seen: it has an outline, or is not white."""
    fill, stroke = ctypes.c_int(), ctypes.c_int()
    _draw_mode(handle, ctypes.byref(fill), ctypes.byref(stroke))
    if stroke.value or fill.value == raw.FPDF_FILLMODE_NONE:
        return bool(stroke.value)
    color = [ctypes.c_uint() for _ in range(4)]
    _color(handle, *map(ctypes.byref, color))
    return min(channel.value for channel in color[:3]) < NEAR_WHITE


def _joined(rules: list[Rule]) -> list[Rule]:
    """Join rules that are one line, or nearly."""
    joined: list[Rule] = []
    group: list[Rule] = []
    for rule in sorted(rules):
        if group and rule.at - group[-1].at > NEAR:
            joined += _merged(group)
            group = []
        group.append(rule)
    return joined + (_merged(group) if group else [])


def _merged(group: list[Rule]) -> list[Rule]:
    at = sum(rule.at for rule in group) / len(group)
    merged: list[Rule] = []
    for rule in sorted(group, key=lambda each: each.start):
        if merged and rule.start <= merged[-1].end + NEAR:
            merged[-1] = Rule(at, merged[-1].start, max(merged[-1].end, rule.end))
        else:
            merged.append(Rule(at, rule.start, rule.end))
    return merged


def _connected(
    across: Sequence[Rule], down: Sequence[Rule]
) -> Iterator[tuple[list[Rule], list[Rule]]]:
    """Yield the horizontal and vertical rules that touch each other, directly or by others."""
    left = set(range(len(down)))
    unseen = set(range(len(across)))
    while unseen:
        stack, horizontals, verticals = [unseen.pop()], [], []
        while stack:
            rule = across[stack.pop()]
            horizontals.append(rule)
            for number in [n for n in left if _touch(rule, down[n])]:
                left.discard(number)
                verticals.append(down[number])
                more = {n for n in unseen if _touch(across[n], down[number])}
                unseen -= more
                stack += more
        yield sorted(horizontals), sorted(verticals)


def _touch(across: Rule, down: Rule) -> bool:
    return (
        across.start - NEAR <= down.at <= across.end + NEAR
        and down.start - NEAR <= across.at <= down.end + NEAR
    )


def _edges(rules: Sequence[Rule], crossing: Sequence[Rule]) -> list[float]:
    """Return the edges of rows (or of columns): where rules are, and where crossing ones end."""
    ends = [rule.start for rule in crossing] + [rule.end for rule in crossing]
    edges: list[float] = []
    outer = [min(ends), max(ends)] if ends else []
    for at in sorted([*(rule.at for rule in rules), *outer]):
        if not edges or at - edges[-1] > SHORT:
            edges.append(at)
    return edges


def _band(edges: Sequence[float], at: float) -> int | None:
    for number, (first, last) in enumerate(pairwise(edges)):
        if first <= at < last:
            return number
    return None


def _is_ruled(rules: Sequence[Rule], at: float, middle: float) -> bool:
    """Whether a rule is at this edge of a cell, by the middle of the edge."""
    return any(
        abs(rule.at - at) <= SHORT and rule.start - NEAR <= middle <= rule.end + NEAR
        for rule in rules
    )
