"""The readable form of passages, and their anchors in the page of the original."""

import re
from bisect import bisect_left, bisect_right

from callslip.ingestion.tables import cells_of
from callslip.ingestion.values import Block, Chunk, ExtractedText, Heading

_WRITTEN = ("text/markdown", "text/x-rst", "text/plain")
"""Formats whose text is the source itself, so that headings, tables and code are marked in it."""


class Readable:
    """The headings, tables and code of one text, for any of its passages."""

    def __init__(self, extracted: ExtractedText) -> None:
        self._text, self._marked = extracted.text, extracted.media_type in _WRITTEN
        self._headings = sorted(extracted.headings, key=lambda heading: heading.start)
        self._blocks = sorted(extracted.blocks, key=lambda block: block.start)
        self._block_ends = [block.end for block in self._blocks]
        self._heading_starts = [heading.start for heading in self._headings]
        self._lines = [self._text.rfind("\n", 0, start) + 1 for start in self._heading_starts]
        self._anchors = [""]
        above: list[tuple[int, str]] = []
        for heading in self._headings:
            while above and above[-1][0] >= heading.level:
                above.pop()
            anchor = heading.anchor or (above[-1][1] if above else "")
            above.append((heading.level, anchor))
            self._anchors.append(anchor)

    def anchor(self, offset: int) -> str:
        """The anchor of the heading above an offset, or of the nearest one that encloses it."""
        return self._anchors[bisect_right(self._lines, offset)]

    def pretty(self, chunk: Chunk) -> str:
        """Return a passage in Markdown: with marked headings, tables and code.

        A passage that continues a table begins with the table's header. Empty if the form is the
        same as the text: a passage without any of these, or of a format that marks them itself.
        """
        text, start, end = self._text, chunk.start, chunk.end
        header = chunk.header_of(text)
        if self._marked:
            return f"{header}{text[start:end]}" if header else ""
        pieces: list[str] = []
        at = start
        for first, last, marked in self._marks(start, end, header):
            pieces += [text[at:first], marked]
            at = last
        return "".join([*pieces, text[at:end]]) if pieces else ""

    def _marks(self, start: int, end: int, header: str) -> list[tuple[int, int, str]]:
        """The headings and blocks of a passage in order: their spans and forms in Markdown."""
        text = self._text
        marks: list[tuple[int, int, str]] = []
        for block in self._blocks[bisect_right(self._block_ends, start) :]:
            if block.start >= end:
                break
            first, last = max(block.start, start), min(block.end, end)
            table = block.kind == "table"
            if table and len(cells_of(text[first:last])) < 2:  # lines of a PDF, as they stand
                continue
            if text[first:last].strip() and (not marks or marks[-1][1] <= first):
                marked = (
                    _table(text, block, first, last, header) if table else _code(text[first:last])
                )
                marks.append((first, last, marked))
        blocks = tuple(marks)
        for heading in self._headings[bisect_left(self._heading_starts, start) :]:
            if heading.end > end:
                break
            if not any(first < heading.end and heading.start < last for first, last, _ in blocks):
                marks.append((heading.start, heading.end, _heading(text, heading)))
        return sorted(marks)


def _heading(text: str, heading: Heading) -> str:
    line = " ".join(text[heading.start : heading.end].split())
    return f"{'#' * min(heading.level, 6)} {line}"


def _code(code: str) -> str:
    code = code.strip("\n")
    longest = max((len(run) for run in re.findall("`+", code)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{code}\n{fence}"


def _table(text: str, block: Block, first: int, last: int, header: str) -> str:
    """The rows of a table from `first` to `last`; `header` has header rows that are further up."""
    below = max(first, min(block.header, last))
    heads = text[first:below] if block.start >= first else header
    names = [cells_of(row) for row in heads.splitlines() if row.strip()]
    rows = [cells_of(row) for row in text[below:last].splitlines() if row.strip()]
    width = max(len(row) for row in (*names, *rows))
    top, *more = names or [[""]]
    return "\n".join(_row(row, width) for row in (top, ["---"] * width, *more, *rows))


def _row(cells: list[str], width: int) -> str:
    padded = [*cells, *[""] * (width - len(cells))]
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in padded) + " |"
