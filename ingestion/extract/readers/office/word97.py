"""DOC: the text of Word 97 to 2003, by its piece table ([MS-DOC] 2.4.1)."""

import io
import re
import struct
from collections.abc import Iterator

import olefile

from callslip.config.settings import ExtractSettings
from callslip.errors import BrokenFile
from callslip.ingestion.extract.composer import Composer
from callslip.ingestion.extract.readers.office.ole_title import title_of
from callslip.ingestion.extract.sniff import DOC
from callslip.ingestion.left_out import left_out
from callslip.ingestion.values import ExtractedText

_FLAGS, _LENGTHS, _CLX = 0x0A, 0x4C, 0x01A2
_STORIES = (
    "main", "footnotes", "headers and footers", "macros", "comments", "endnotes", "text boxes",
    "text boxes of headers",
)  # fmt: skip
"""What follows each other in the text, in the order of the lengths in the FIB (2.5.3, 2.5.5)."""

_READ = ("main", "footnotes", "endnotes", "text boxes")
_TABLE_1 = 0x0200
_EIGHT_BIT = 1 << 30
_INSTRUCTION = re.compile("\x13[^\x13\x14\x15]*(?:\x14([^\x13\x14\x15]*))?\x15")
"""A field: its instruction, then its result, which the group matches."""

_CELL_END, _ROW_END = "\x07", "\x07\x07"
_PICTURES = ("\x01", "\x08")
_MARKS = str.maketrans(
    {"\x0b": "\n", "\x0c": "\r", "\x1e": "-"} | dict.fromkeys("\x01\x02\x05\x08\x1f", None)
)


def read(data: bytes, limits: ExtractSettings) -> ExtractedText:
    """Read paragraphs and tables, then footnotes, endnotes and text boxes.

    Headers, footers, comments and pictures are left out.
    """
    with olefile.OleFileIO(io.BytesIO(data)) as ole:
        main = ole.openstream("WordDocument").read()
        flags = struct.unpack_from("<H", main, _FLAGS)[0]
        table = ole.openstream("1Table" if flags & _TABLE_1 else "0Table").read()
        title = title_of(ole)
    start, size = struct.unpack_from("<II", main, _CLX)
    text = "".join(_pieces(main, _piece_table(table[start : start + size])))
    stories: dict[str, str] = {}
    at = 0
    for name, length in zip(_STORIES, struct.unpack_from("<8I", main, _LENGTHS), strict=True):
        stories[name] = text[at : at + length]
        at += length
    counts = {"pictures and drawn objects": sum(stories["main"].count(mark) for mark in _PICTURES)}
    counts |= {
        name: sum(1 for each in story.split("\r") if each.translate(_MARKS).strip("\x03\x04 "))
        for name, story in stories.items()
        if name not in (*_READ, "macros")
    }
    composer = Composer(limits)
    for name in _READ:
        _compose(stories[name], composer)
    return composer.text(DOC, title, warnings=left_out(counts))


def _piece_table(clx: bytes) -> bytes:
    """Return the piece table, which follows the formatting runs."""
    at = 0
    while at + 5 <= len(clx) and clx[at] == 1:
        at += 3 + struct.unpack_from("<H", clx, at + 1)[0]
    if at + 5 > len(clx) or clx[at] != 2:
        raise BrokenFile("the document has no piece table")
    size = struct.unpack_from("<I", clx, at + 1)[0]
    return clx[at + 5 : at + 5 + size]


def _pieces(main: bytes, table: bytes) -> Iterator[str]:
    count = (len(table) - 4) // 12
    ends = struct.unpack_from(f"<{count + 1}I", table)
    for i in range(count):
        where = struct.unpack_from("<I", table, 4 * (count + 1) + 8 * i + 2)[0]
        size = ends[i + 1] - ends[i]
        if where & _EIGHT_BIT:
            at = (where & ~_EIGHT_BIT) // 2
            yield main[at : at + size].decode("cp1252", "replace")
        else:
            yield main[where : where + 2 * size].decode("utf-16-le", "replace")


def _compose(text: str, composer: Composer) -> None:
    while "\x13" in text:
        shorter = _INSTRUCTION.sub(lambda match: match[1] or "", text)
        if shorter == text:
            break
        text = shorter
    for paragraph in text.translate(_MARKS).split("\r"):
        rows, _, rest = paragraph.rpartition(_ROW_END)
        if rows:
            composer.table(row.split(_CELL_END) for row in rows.split(_ROW_END))
        composer.paragraph(rest.replace(_CELL_END, " "))
