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


def headers(text: str, sentences: Sequence[Span]) -> Mapping[int, int]:
    """Map the number of each sentence that is a table row to the number of its header sentence.

    The first row of cells is the header of the rows that follow without a blank line. If there are
    no cells, the header is a line without a digit, and the rows are lines with a digit that do not
    end a sentence.
    """
    lines = rows_of(text, sentences)
    header_of: dict[int, int] = {}
    for at in range(1, len(lines)):
        between = text[sentences[at - 1].end : sentences[at].start]
        if "\n" not in between or _BLANK_LINE.search(between):
            continue
        header, row = header_of.get(at - 1, at - 1), lines[at]
        if cells(row):
            is_row = bool(cells(lines[header]))
        else:
            is_row = _is_plain(row) and _heads(lines[header])
        if is_row:
            header_of[at] = header
    return header_of


def rows_of(text: str, sentences: Iterable[tuple[int, int]]) -> list[str]:
    """Return the sentences, each with the bars at the start of its line, which spans leave out."""
    rows = []
    for start, end in sentences:
        line = text.rfind("\n", 0, start) + 1
        rows.append(text[start if text[line:start].strip(_BARS) else line : end])
    return rows


def cells(line: str) -> list[str]:
    """Return the cells of a row; an empty list if the line is not a row of cells.

    A bar at the start follows an empty cell, unless a bar is at the end, too.
    """
    if len(line) > LONGEST:
        return []
    row = line.strip(" \t")
    if row.endswith("|"):  # a row of Markdown, between bars
        row = row[:-1].removeprefix("|").strip(" \t")
    parts = [part.strip() for part in _CELLS.split(row)]
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
    header_of, rows = headers(text, spans), rows_of(text, spans)
    for at, header in header_of.items():
        if spans[at] == (start, end):
            return paired(rows[header], rows[at])
    return text[start:end]


def _is_plain(line: str) -> bool:
    return len(line) <= LONGEST and any(map(str.isdigit, line)) and not _END.search(line)


def _heads(line: str) -> bool:
    return not (cells(line) or any(map(str.isdigit, line)) or _END.search(line))
