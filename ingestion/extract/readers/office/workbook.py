"""XLSX: the tables of each sheet under its name."""

import io
import warnings
from collections.abc import Iterable, Iterator, Sequence

import openpyxl

from callslip.config.settings import ExtractSettings
from callslip.ingestion.extract.composer import Composer
from callslip.ingestion.extract.container import open_package
from callslip.ingestion.extract.package_parts import parts_left_out
from callslip.ingestion.extract.readers.office.cells import shown
from callslip.ingestion.extract.sniff import XLSX
from callslip.ingestion.left_out import left_out
from callslip.ingestion.values import ExtractedText

_LEFT_OUT = {
    "pictures": r"xl/media/.",
    "charts": r"xl/charts/chart",
    "embedded files": r"xl/embeddings/.",
}
_MARKS_LEFT_OUT = {
    "comments": (r"xl/comments[^/]*\.xml$|xl/comments/", rb"<(?:\w+:)?comment\s"),
    "text boxes": (r"xl/drawings/drawing\d*\.xml$", rb"<xdr:txBody[ >]"),
}


def read(data: bytes, limits: ExtractSettings) -> ExtractedText:
    """Read each sheet under a heading; empty rows end a table.

    A formula gives the value that was last computed.
    """
    with open_package(data, limits) as archive:
        counts = parts_left_out(archive, _LEFT_OUT, _MARKS_LEFT_OUT)
    composer = Composer(limits)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about parts that the library does not know
        book = openpyxl.load_workbook(io.BytesIO(data), read_only=True, data_only=True)
        for sheet in book.worksheets:
            sheet.reset_dimensions()  # some programs write wrong dimensions
            composer.sheet(sheet.title, _cells(sheet.iter_rows(values_only=True)))
        title = book.properties.title
        book.close()
    return composer.text(XLSX, title, warnings=left_out(counts))


def _cells(rows: Iterable[Sequence[object]]) -> Iterator[list[str]]:
    for row in rows:
        yield [shown(value) if value is not None else "" for value in row]
