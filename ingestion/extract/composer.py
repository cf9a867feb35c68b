"""Builds a text from paragraphs, headings, tables and code, with the span of each."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, Literal

from callslip.config.settings import ExtractSettings
from callslip.errors import ExtractionLimit
from callslip.ingestion.values import Block, ExtractedText, Heading, Page

GAP = "\n\n"
CELL_GAP = " | "


class Composer:
    """Collects the parts of a document in order; ignores blank parts.

    Raises ExtractionLimit as soon as the text is longer than `limits.max_chars`.
    """

    def __init__(self, limits: ExtractSettings) -> None:
        self._most = limits.max_chars
        self._pieces: list[str] = []
        self._length = 0
        self._headings: list[Heading] = []
        self._blocks: list[Block] = []
        self._pages: list[Page] = []

    @property
    def length(self) -> int:
        """The length of the text so far: where the next part begins."""
        return self._length

    @property
    def end(self) -> int:
        """The end of the last part, before the gap behind it."""
        return max(0, self._length - len(GAP))

    def paragraph(self, text: str) -> None:
        """Add text with its line breaks."""
        self._add(text.strip())

    def heading(self, text: str, level: int) -> None:
        """Add a heading as one line; level 1 is the highest."""
        if line := " ".join(text.split()):
            start, end = self._add(line)
            self._headings.append(Heading(start, end, level))

    def code(self, text: str) -> None:
        """Add lines of code with their indentation."""
        self._block(text.strip("\n").rstrip(), "code", 0)

    def table(self, rows: Iterable[Sequence[str]], header: int | None = None) -> None:
        """Add a table, one line per row; empty rows are left out.

        `header` is the number of header rows; None guesses it from the first rows. A table of a
        single row with a single cell becomes a paragraph.
        """
        first_rows: list[Sequence[str]] = []
        lines: list[str] = []
        length = 0
        for row in rows:
            line = row_line(row)
            if not line:
                header = header - 1 if header is not None and len(lines) < header else header
                continue
            lines.append(line)
            length += len(line) + 1
            self._check(length)
            if len(first_rows) < 2:
                first_rows.append(_filled(row))
        if len(lines) == 1 and len(first_rows[0]) == 1:
            self.paragraph(lines[0])
            return
        heads = _headed(first_rows) if header is None else header if header < len(lines) else 0
        self._block("\n".join(lines), "table", sum(len(line) + 1 for line in lines[:heads]))

    def sheet(self, name: str, rows: Iterable[Sequence[str]]) -> None:
        """Add the tables of a sheet, which empty rows separate, under a heading with its name.

        A sheet is a page, which is empty without a table.
        """
        self.page(name)
        named = False
        for filled, block in groupby(rows, key=any):
            if filled:
                if not named:
                    self.heading(name, 1)
                    named = True
                self.table(_aligned(list(block)))

    def page(self, label: str = "") -> None:
        """Start a new page."""
        self._end_page()
        label = " ".join(label.split())
        self._pages.append(Page(len(self._pages) + 1, self._length, self._length, label))

    def put(self, part: ExtractedText) -> None:
        """Add another text with its headings and blocks, but without its pages."""
        at, _ = self._add(part.text.rstrip())
        self._headings += [Heading(h.start + at, h.end + at, h.level) for h in part.headings]
        self._blocks += [
            Block(b.start + at, b.end + at, b.kind, b.header + at) for b in part.blocks
        ]

    def text(self, media_type: str, title: str | None = None, **others: Any) -> ExtractedText:
        """Return the whole text; without a title, the first heading is the title.

        `others` are further fields of ExtractedText.
        """
        self._end_page()
        whole = "".join(self._pieces)
        if not (title and title.strip()) and self._headings:
            title = whole[self._headings[0].start : self._headings[0].end]
        return ExtractedText(
            whole,
            media_type,
            title,
            tuple(self._headings),
            tuple(self._pages),
            tuple(self._blocks),
            **others,
        )

    def _block(self, text: str, kind: Literal["table", "code"], header: int) -> None:
        if text:
            start, end = self._add(text)
            self._blocks.append(Block(start, end, kind, start + header))

    def _add(self, text: str) -> tuple[int, int]:
        start = self._length
        if text:
            self._check(len(text))
            self._pieces += (text, GAP)
            self._length += len(text) + len(GAP)
        return start, start + len(text)

    def _check(self, more: int) -> None:
        if self._length + more > self._most + len(GAP):
            raise ExtractionLimit(
                f"the file holds more than {self._most:,} characters",
                hint="Split the file, or raise extract.max_chars in the settings.",
            )

    def _end_page(self) -> None:
        if self._pages:
            last = self._pages[-1]
            self._pages[-1] = replace(last, end=self._length)


def row_line(row: Sequence[str]) -> str:
    """Return the cells of a row on one line, without the empty ones at the end."""
    line = " ".join(CELL_GAP.join(row).split())  # once per row: cells are many
    end = len(line)
    while line.endswith(" |", 0, end):
        end -= 2
    return line[:end] if line[:end].strip("|") else ""


def _filled(row: Sequence[str]) -> list[str]:
    """Return the cells up to the last one that is not empty."""
    cells = [cell.strip() for cell in row]
    while cells and not cells[-1]:
        cells.pop()
    return cells


def _aligned(block: list[Sequence[str]]) -> Iterator[Sequence[str]]:
    """Return the rows without the empty columns on the left."""
    first = min(next(i for i, cell in enumerate(row) if cell) for row in block)
    return (row[first:] for row in block)


def _headed(rows: Sequence[Sequence[str]]) -> int:
    """Return 1 if the first row has column names (a letter in every cell) and a row below it."""
    if len(rows) < 2 or len(rows[0]) < 2:
        return 0
    return int(all(cell and any(c.isalpha() for c in cell) for cell in rows[0]))
