"""XLSX: the tables of each sheet under its name."""

import datetime
import io
import warnings
from collections.abc import Iterable, Iterator, Sequence

import openpyxl

from config.settings import ExtractSettings
from ingestion.extract.composer import Composer
from ingestion.extract.container import open_package
from ingestion.extract.sniff import XLSX
from ingestion.parts import ExtractedText


def read(data: bytes, limits: ExtractSettings) -> ExtractedText:
    """A heading for each sheet; empty rows end a table. Of formulas the value last computed."""
    open_package(data, limits).close()
    composer = Composer(limits)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of parts that the library does not know
        book = openpyxl.load_workbook(io.BytesIO(data), read_only=True, data_only=True)
        for sheet in book.worksheets:
            sheet.reset_dimensions()  # some programs write wrong ones
            composer.sheet(sheet.title, _cells(sheet.iter_rows(values_only=True)))
        title = book.properties.title
        book.close()
    return composer.text(XLSX, title)


def _cells(rows: Iterable[Sequence[object]]) -> Iterator[list[str]]:
    for row in rows:
        yield [_shown(value) if value is not None else "" for value in row]


def _shown(value: object) -> str:
    """As a person reads it: no time where it is midnight, no fraction where there is none."""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, datetime.datetime):
        midnight = value.time() == datetime.time.min
        return value.date().isoformat() if midnight else value.isoformat(" ", "seconds")
    if isinstance(value, float):
        return f"{value:.15g}"
    return str(value)
