"""Finds tables in the text of a passage: rows of cells, or the text lines of a table in a PDF."""

import re
from collections.abc import Iterable, Mapping, Sequence

from callslip.retrieval.evidence.sentences import Span, sentences

LONGEST = 400
"""The maximum number of characters of a row."""

_BARS = "| \t"
_CELLS = re.compile(r"[ \t]*(?:\||\t)[ \t]*")
_END = re.compile(r"[.!?。…:;][\"'”’)\]*]*$")
_BLANK_LINE = re.compile(r"\n[ \t]*\n")


def headers(text: str, sentences: Sequence[Span], rows: Sequence[str]) -> Mapping[int, int]:
    """Map the number of each sentence that is a table row to the number of its header sentence.

    `rows` are the sentences as `rows_of` returns them.

    The first row of cells is the header of the rows that follow without a blank line. If there are
    no cells, the header is a line without a digit, and the rows are lines with a digit that do not
    end a sentence.
    """
    header_of: dict[int, int] = {}
    for at in range(1, len(rows)):
        between = text[sentences[at - 1].end : sentences[at].start]
        if "\n" not in between or _BLANK_LINE.search(between):
            continue
        header, row = header_of.get(at - 1, at - 1), rows[at]
        if cells(row):
            is_row = bool(cells(rows[header]))
        else:
            is_row = _is_plain(row) and _heads(rows[header])
        if is_row:
            header_of[at] = header
    return header_of


def rows_of(text: str, sentences: Iterable[tuple[int, int]]) -> list[str]:
    """Return each sentence with the bars before it in its line, which follow empty cells.

    In a line between bars, as of Markdown, also with the bars after it, without the outer ones.
    """
    return [_row(text, start, end) for start, end in sentences]


def _row(text: str, start: int, end: int) -> str:
    top, bottom = text.rfind("\n", 0, start) + 1, text.find("\n", end)
    line = text[top : bottom if bottom >= 0 else None].strip(" \t")
    if framed := len(line) > 1 and line[0] == line[-1] == "|":
        top = text.index("|", top) + 1
        bottom = text.rindex("|", 0, bottom if bottom >= 0 else None)
    first = start if text[top:start].strip(_BARS) else top
    if not framed:
        return text[first:end].rstrip(_BARS)
    return text[first : end if text[end:bottom].strip(_BARS) else bottom]


def cells(line: str) -> list[str]:
    """Return the cells of a row of `rows_of`; an empty list if it is not a row of cells."""
    if len(line) > LONGEST:
        return []
    parts = [part.strip() for part in _CELLS.split(line.strip(" \t"))]
    return parts if len(parts) > 1 else []


def columns(header: str, row: str) -> list[tuple[str, str]]:
    """Return the cells of a row, each behind its column name; an empty list if they do not fit."""
    names, values = cells(header), cells(row)
    return list(zip(names, values, strict=True)) if len(names) == len(values) else []


def paired(header: str, row: str) -> str:
    """Format a row with its column names: `Place: Seoul · Ceiling per night: 100,000 won`."""
    both = columns(header, row)
    if not both:
        return f"{header.strip(_BARS)}: {row.strip(_BARS)}"
    return " · ".join(f"{name}: {value}" if name else value for name, value in both if value)


def with_columns(text: str, start: int, end: int) -> str:
    """Return `text[start:end]`, with its column names if that is a row of a table in the text."""
    spans = sentences(text)
    rows = rows_of(text, spans)
    for at, header in headers(text, spans, rows).items():
        if spans[at] == (start, end):
            return paired(rows[header], rows[at])
    return text[start:end]


def _is_plain(line: str) -> bool:
    return len(line) <= LONGEST and any(map(str.isdigit, line)) and not _END.search(line)


def _heads(line: str) -> bool:
    return not (cells(line) or any(map(str.isdigit, line)) or _END.search(line))
