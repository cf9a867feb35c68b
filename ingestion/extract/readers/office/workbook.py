"""XLSX: the tables of each sheet under its name."""

import io
import warnings
from collections.abc import Iterable, Iterator, Sequence

import openpyxl

from callslip.config.settings import ExtractSettings
from callslip.ingestion.extract.composer import Composer
from callslip.ingestion.extract.container import open_package
from callslip.ingestion.extract.readers.office.cells import shown
from callslip.ingestion.extract.sniff import XLSX
from callslip.ingestion.values import ExtractedText


def read(data: bytes, limits: ExtractSettings) -> ExtractedText:
    """Read each sheet under a heading; empty rows end a table.

    A formula gives the value that was last computed.
    """
    open_package(data, limits).close()
    composer = Composer(limits)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about parts that the library does not know
        book = openpyxl.load_workbook(io.BytesIO(data), read_only=True, data_only=True)
        for sheet in book.worksheets:
            sheet.reset_dimensions()  # some programs write wrong dimensions
            composer.sheet(sheet.title, _cells(sheet.iter_rows(values_only=True)))
        title = book.properties.title
        book.close()
    return composer.text(XLSX, title)


def _cells(rows: Iterable[Sequence[object]]) -> Iterator[list[str]]:
    for row in rows:
        yield [shown(value) if value is not None else "" for value in row]
