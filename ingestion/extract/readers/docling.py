"""The document of a layout server (DoclingDocument, version 1): text, headings, tables, pages.

The server's models have read a file that may be hostile, so this is read in the child process too.
"""

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from callslip.config.settings import ExtractSettings
from callslip.errors import ExtractionLimit
from callslip.ingestion.boxes import Box
from callslip.ingestion.extract.composer import Composer
from callslip.ingestion.left_out import left_out
from callslip.ingestion.values import ExtractedText

MOST_PAGES = 100_000
MOST_CELLS = 5_000_000
"""The maximum of rows times columns of a table."""

_HEADINGS = {"title": 1, "section_header": 2}
_RUNNING = ("page_header", "page_footer")


def read(data: bytes, limits: ExtractSettings) -> ExtractedText:
    """Read the body in its order; headers and footers of pages are left out.

    A box is that of a whole paragraph or table: the document does not have those of lines.
    """
    return _Document(json.loads(data), limits).text()


class _Document:
    def __init__(self, content: dict[str, Any], limits: ExtractSettings) -> None:
        self._content = content
        self._composer = Composer(limits)
        self._page = 0
        self._boxes: list[Box] = []
        self._left_out: Counter[str] = Counter()
        self._seen: set[str] = set()

    def text(self) -> ExtractedText:
        """Compose the whole text."""
        for item in self._items():
            self._add(item)
        if last := max(map(int, self._content.get("pages") or {}), default=0):
            self._turn_to(last)
        warnings = left_out(self._left_out)
        if self._content.get("partial"):
            warnings += ("left out: pages that the layout server could not read",)
        return self._composer.text("", boxes=tuple(self._boxes), warnings=warnings)

    def _items(self) -> Iterator[dict[str, Any]]:
        """Yield the items of the body in order, each once."""
        stack = [child["$ref"] for child in reversed(self._content["body"]["children"])]
        while stack:
            pointer = stack.pop()
            if pointer in self._seen:
                continue
            self._seen.add(pointer)
            _, kind, number = pointer.split("/")
            item = self._content[kind][int(number)]
            yield {**item, "kind": kind}
            inner = [*item.get("captions", ()), *item.get("children", ())]
            stack += [child["$ref"] for child in reversed(inner)]

    def _add(self, item: dict[str, Any]) -> None:
        label = item.get("label", "")
        spots = item.get("prov") or []
        if item["kind"] == "pictures":
            self._left_out["pictures"] += 1
        if item.get("content_layer", "body") != "body" or label in _RUNNING:
            self._left_out["headers and footers of pages"] += bool(item.get("text"))
            return
        if spots:
            self._turn_to(int(spots[0]["page_no"]))
        start = self._composer.length
        if item["kind"] == "tables":
            self._table(item["data"])
        elif item["kind"] == "texts":
            self._text(item, label)
        end = self._composer.end
        if end > start:
            self._boxes += [
                box for spot in spots[:1] if (box := self._box(spot, start, end)) is not None
            ]

    def _text(self, item: dict[str, Any], label: str) -> None:
        text = str(item.get("text") or item.get("orig") or "")
        if label in _HEADINGS:
            self._composer.heading(text, _HEADINGS[label] + int(item.get("level", 1)) - 1)
        elif label == "code":
            self._composer.code(text)
        elif label == "list_item" and text.strip():
            self._composer.paragraph(f"{item.get('marker') or '-'} {text}")
        else:
            self._composer.paragraph(text)

    def _table(self, table: dict[str, Any]) -> None:
        rows, columns = int(table["num_rows"]), int(table["num_cols"])
        if rows * columns > MOST_CELLS:
            raise ExtractionLimit(f"a table has {rows:,} rows and {columns:,} columns")
        grid = [[""] * columns for _ in range(rows)]
        heads = set()
        for cell in table["table_cells"]:
            row, column = int(cell["start_row_offset_idx"]), int(cell["start_col_offset_idx"])
            if 0 <= row < rows and 0 <= column < columns:
                grid[row][column] = str(cell.get("text", ""))
                if cell.get("column_header"):
                    heads.add(row)
        header = next(number for number in range(rows + 1) if number not in heads)
        self._composer.table(grid, header)

    def _turn_to(self, number: int) -> None:
        """Begin pages up to this one; an item of an earlier page stays on the present one."""
        if number > MOST_PAGES:
            raise ExtractionLimit(f"the document has more than {MOST_PAGES:,} pages")
        while self._page < number:
            self._composer.page()
            self._page += 1

    def _box(self, spot: dict[str, Any], start: int, end: int) -> Box | None:
        """Return the box of an item in points from the top left corner; None off the page."""
        number, edges = int(spot["page_no"]), spot["bbox"]
        page = (self._content.get("pages") or {}).get(str(number))
        if page is None or number != self._page:
            return None
        left, top, right, bottom = (float(edges[side]) for side in "ltrb")
        if edges.get("coord_origin", "BOTTOMLEFT") == "BOTTOMLEFT":
            height = float(page["size"]["height"])
            top, bottom = height - top, height - bottom
        return Box(start, end, number, left, min(top, bottom), right, max(top, bottom))
