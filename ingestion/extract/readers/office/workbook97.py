"""XLS: the tables of each sheet of Excel 5 to 2003, by xlrd."""

import io
import struct
from collections import Counter
from collections.abc import Iterator, Sequence

import olefile
import xlrd

from callslip.config.settings import ExtractSettings
from callslip.errors import NeedsPassword
from callslip.ingestion.extract.composer import Composer
from callslip.ingestion.extract.readers.office.cells import shown
from callslip.ingestion.extract.readers.office.ole_title import title_of
from callslip.ingestion.extract.sniff import XLS
from callslip.ingestion.left_out import left_out
from callslip.ingestion.values import ExtractedText

_OBJECT, _COMMON = 0x5D, 0x15
"""The record of a drawn object and the first part of it ([MS-XLS] 2.4.181, 2.5.143)."""

_OBJECTS = {2: "text boxes", 5: "charts", 6: "text boxes", 8: "pictures", 25: "comments"}


def read(data: bytes, limits: ExtractSettings) -> ExtractedText:
    """Read each sheet under a heading, also a hidden one; empty rows end a table.

    A formula gives the value that was last computed. Raises NeedsPassword if it is encrypted.
    """
    with olefile.OleFileIO(io.BytesIO(data)) as ole:
        # xlrd's own reader of OLE containers runs in circles in some damaged ones.
        content = ole.openstream("Workbook" if ole.exists("Workbook") else "Book").read()
        title = title_of(ole)
    try:
        book = xlrd.open_workbook(
            file_contents=content, logfile=io.StringIO(), on_demand=True, ragged_rows=True
        )
    except xlrd.XLRDError as error:
        if "encrypted" in str(error):
            raise NeedsPassword("the workbook is encrypted") from None
        raise
    composer = Composer(limits)
    with book:
        for number, name in enumerate(book.sheet_names()):
            composer.sheet(name, _rows(book.sheet_by_index(number), book.datemode))
            book.unload_sheet(number)
    return composer.text(XLS, title, warnings=left_out(_objects(content)))


def _rows(sheet: xlrd.sheet.Sheet, datemode: int) -> Iterator[Sequence[str]]:
    for number in range(sheet.nrows):
        yield [_cell(cell, datemode) for cell in sheet.row(number)]


def _cell(cell: xlrd.sheet.Cell, datemode: int) -> str:
    if cell.ctype in (xlrd.XL_CELL_EMPTY, xlrd.XL_CELL_BLANK):
        return ""
    if cell.ctype == xlrd.XL_CELL_BOOLEAN:
        return shown(bool(cell.value))
    if cell.ctype == xlrd.XL_CELL_ERROR:
        return str(xlrd.error_text_from_code.get(cell.value, "#ERROR"))
    if cell.ctype == xlrd.XL_CELL_DATE:
        try:
            moment = xlrd.xldate.xldate_as_datetime(cell.value, datemode)
        except (ValueError, OverflowError):
            return shown(cell.value)
        return shown(moment.time() if 0 <= cell.value < 1 else moment)
    return shown(cell.value)


def _objects(content: bytes) -> Counter[str]:
    """Count the drawn objects, whose text is not read, by their kinds."""
    counts: Counter[str] = Counter()
    at = 0
    while at + 4 <= len(content):
        record, size = struct.unpack_from("<HH", content, at)
        if record == _OBJECT and size >= 6 and at + 10 <= len(content):
            part, _, kind = struct.unpack_from("<HHH", content, at + 4)
            if part == _COMMON and kind in _OBJECTS:
                counts[_OBJECTS[kind]] += 1
        at += 4 + size
    return counts
