"""XLSX and CSV: tables with a row on each line."""

import csv
import datetime
import io
import warnings
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

import openpyxl

from config.settings import ExtractSettings
from ingestion.extract.composer import Composer
from ingestion.extract.container import open_package
from ingestion.extract.decode import decode
from ingestion.extract.sniff import CSV, XLSX
from ingestion.parts import ExtractedText

_DELIMITERS = ",;\t|"
_SAMPLE = 8_192


def read_workbook(data: bytes, limits: ExtractSettings) -> ExtractedText:
    """A heading for each sheet; empty rows end a table. Of formulas the value last computed."""
    open_package(data, limits).close()
    composer = Composer(limits)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of parts that the library does not know
        book = openpyxl.load_workbook(io.BytesIO(data), read_only=True, data_only=True)
        for sheet in book.worksheets:
            sheet.reset_dimensions()  # some programs write wrong ones
            tables(sheet.title, _cells(sheet.iter_rows(values_only=True)), composer)
        title = book.properties.title
        book.close()
    return composer.text(XLSX, title)


def tables(name: str, rows: Iterable[Sequence[str]], composer: Composer) -> None:
    """The tables of a sheet under its name; a sheet without any leaves nothing."""
    named = False
    for filled, block in groupby(rows, key=any):
        if filled:
            if not named:
                composer.heading(name, 1)
                named = True
            composer.table(_aligned(list(block)))


def read_delimited(data: bytes, limits: ExtractSettings) -> ExtractedText:
    """A single table; the delimiter is found by content."""
    decoded = decode(data)
    composer = Composer(limits)
    csv.field_size_limit(limits.max_chars)
    rows = csv.reader(io.StringIO(decoded.text, newline=""), _dialect(decoded.text[:_SAMPLE]))
    composer.table(rows)
    return composer.text(CSV, warnings=decoded.warnings)


def _dialect(sample: str) -> type[csv.Dialect]:
    try:
        return csv.Sniffer().sniff(sample, _DELIMITERS)
    except csv.Error:  # a single column
        return csv.excel


def _aligned(block: list[Sequence[str]]) -> Iterator[Sequence[str]]:
    """Without the empty columns on the left."""
    first = min(next(i for i, cell in enumerate(row) if cell) for row in block)
    return (row[first:] for row in block)


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
