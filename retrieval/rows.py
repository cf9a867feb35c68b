"""Tables in a passage's text: rows of cells, or the lines that a page's table came out as."""

import re
from collections.abc import Mapping, Sequence

from retrieval.sentences import Span

LONGEST = 400
"""Characters of a row."""

_CELLS = re.compile(r"[ \t]*(?:\||\t)[ \t]*")
_END = re.compile(r"[.!?。…:;][\"'”’)\]*]*$")
_BLANK_LINE = re.compile(r"\n[ \t]*\n")


def headers(text: str, sentences: Sequence[Span]) -> Mapping[int, int]:
    """Of the sentences that are rows, which one is the header of each; by their numbers.

    The first row of cells is the header of those that follow without a blank line. Where there are
    no cells, it is a line without a digit, and its rows are lines with one that end no sentence.
    """
    lines = [text[span.start : span.end] for span in sentences]
    found: dict[int, int] = {}
    for at in range(1, len(lines)):
        between = text[sentences[at - 1].end : sentences[at].start]
        if "\n" not in between or _BLANK_LINE.search(between):
            continue
        header, row = found.get(at - 1, at - 1), lines[at]
        if cells(row):
            is_row = bool(cells(lines[header]))
        else:
            is_row = _is_plain(row) and _heads(lines[header])
        if is_row:
            found[at] = header
    return found


def cells(line: str) -> list[str]:
    """The cells of a row; none where the line is no row of cells."""
    if len(line) > LONGEST:
        return []
    parts = [part.strip() for part in _CELLS.split(line.strip("| \t"))]
    return parts if len(parts) > 1 else []


def paired(header: str, row: str) -> str:
    """A row as it is read: `Place: Seoul · Ceiling per night: 100,000 won`."""
    names, values = cells(header), cells(row)
    if names and len(values) == len(names) + 1:
        names = ["", *names]  # above the names of the rows stands nothing
    if not names or len(names) != len(values):
        return f"{header}: {row}"
    both = zip(names, values, strict=True)
    return " · ".join(f"{name}: {value}" if name else value for name, value in both if value)


def _is_plain(line: str) -> bool:
    return len(line) <= LONGEST and any(map(str.isdigit, line)) and not _END.search(line)


def _heads(line: str) -> bool:
    return not (cells(line) or any(map(str.isdigit, line)) or _END.search(line))
