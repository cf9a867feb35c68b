"""DOC: the main text of Word 97 to 2003, by its piece table ([MS-DOC] 2.4.1)."""

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
from callslip.ingestion.values import ExtractedText

_FLAGS, _MAIN_LENGTH, _CLX = 0x0A, 0x4C, 0x01A2
_TABLE_1 = 0x0200
_EIGHT_BIT = 1 << 30
_INSTRUCTION = re.compile("\x13[^\x13\x14\x15]*(?:\x14([^\x13\x14\x15]*))?\x15")
"""A field: its instruction, then its result, which the group matches."""

_CELL_END, _ROW_END = "\x07", "\x07\x07"
_MARKS = str.maketrans(
    {"\x0b": "\n", "\x0c": "\r", "\x1e": "-", "\x1f": None, "\x01": None, "\x08": None}
)


def read(data: bytes, limits: ExtractSettings) -> ExtractedText:
    """Read paragraphs and tables; footnotes, headers and comments are left out."""
    with olefile.OleFileIO(io.BytesIO(data)) as ole:
        main = ole.openstream("WordDocument").read()
        flags = struct.unpack_from("<H", main, _FLAGS)[0]
        table = ole.openstream("1Table" if flags & _TABLE_1 else "0Table").read()
        title = title_of(ole)
    start, size = struct.unpack_from("<II", main, _CLX)
    length = struct.unpack_from("<I", main, _MAIN_LENGTH)[0]
    text = "".join(_pieces(main, _piece_table(table[start : start + size])))[:length]
    return _composed(text, limits).text(DOC, title)


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


def _composed(text: str, limits: ExtractSettings) -> Composer:
    while "\x13" in text:
        shorter = _INSTRUCTION.sub(lambda match: match[1] or "", text)
        if shorter == text:
            break
        text = shorter
    composer = Composer(limits)
    for paragraph in text.translate(_MARKS).split("\r"):
        rows, _, rest = paragraph.rpartition(_ROW_END)
        if rows:
            composer.table(row.split(_CELL_END) for row in rows.split(_ROW_END))
        composer.paragraph(rest.replace(_CELL_END, " "))
    return composer
