"""The readers of file formats: a built-in reader per media type, and readers of other packages.

A reader is imported at its first use, because the libraries of all readers together would add a
second to the start of a child process.

A package adds a reader by an entry point of the group `callslip.readers`. The name of the entry
point is a file name suffix without the full stop, its value a `Reader`:

    [project.entry-points."callslip.readers"]
    ipynb = "my_package.notebooks:read"

Such a reader cannot replace a built-in reader. It has to check the content itself, and to raise
`callslip.errors.BrokenFile` for a file of another type.
"""

from collections.abc import Callable, Mapping
from functools import cache, partial
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pathlib import PurePath

from callslip.config.settings import ExtractSettings
from callslip.errors import SettingsError
from callslip.ingestion.extract import sniff
from callslip.ingestion.values import ExtractedText

Reader = Callable[[bytes, ExtractSettings], ExtractedText]
"""Returns all text of a file, with spans into that text. For a damaged file a reader raises a
DocumentError, or any exception of its library."""

GROUP = "callslip.readers"

BUILT_IN: Mapping[str, str] = {
    sniff.PDF: "pdf.reader.read",
    sniff.DOCX: "office.word.read",
    sniff.DOC: "office.word97.read",
    sniff.PPTX: "office.slides.read",
    sniff.PPT: "office.slides97.read",
    sniff.XLSX: "office.workbook.read",
    sniff.XLS: "office.workbook97.read",
    sniff.CSV: "text.delimited.read",
    sniff.ODT: "office.opendocument.read",
    sniff.ODS: "office.opendocument.read",
    sniff.ODP: "office.opendocument.read",
    sniff.EPUB: "web.book.read",
    sniff.RTF: "office.rich.read",
    sniff.HWP: "office.hangul.read",
    sniff.HWPX: "office.hangul.read_x",
    sniff.HTML: "web.page.read",
    sniff.MARKDOWN: "text.markdown.read",
    sniff.RST: "text.restructured.read",
    sniff.JSON: "text.structured.read",
    sniff.XML: "text.elements.read",
    sniff.EMAIL: "mail.message.read",
    sniff.MSG: "mail.outlook.read",
    sniff.ZIP: "archive.read",
    sniff.PNG: "image.read",
    sniff.JPEG: "image.read",
    sniff.TIFF: "image.read",
    sniff.WEBP: "image.read",
    sniff.PLAIN: "text.plain.read",
}
"""Module and function in `ingestion/extract/readers`, by media type."""


def reader(media_type: str) -> Reader:
    """Return the built-in reader of a media type that `sniff.detect` returned."""
    return partial(_read, BUILT_IN[media_type])


def ocr_reader(media_type: str) -> Reader:
    """Return the reader by OCR of a media type whose reader raised NoTextLayer."""
    return partial(_read, "pdf.ocr.read" if media_type == sniff.PDF else "image.recognize")


def converted_reader(data: bytes, limits: ExtractSettings) -> ExtractedText:
    """Read the document that a layout server made of a file."""
    return _read("docling.read", data, limits)


def outside_reader(filename: str) -> Reader | None:
    """Return the reader of another package for files of this name, or None.

    Raises SettingsError if the reader cannot be imported.
    """
    suffix = PurePath(filename).suffix.lower()
    if not suffix or suffix == ".txt" or suffix in sniff.TEXT_NAMES | sniff.BINARY_NAMES:
        return None
    entry = _entries().get(suffix[1:])
    if entry is None:
        return None
    try:
        loaded: Reader = entry.load()
    except MemoryError:
        raise
    except Exception as error:  # the import of a module can raise any type
        raise SettingsError(
            f"the reader of {suffix} files, {entry.value}, cannot be imported"
            f" ({type(error).__name__})",
            hint="Repair the package that registers it, or remove that package.",
        ) from None
    return loaded


def _read(name: str, data: bytes, limits: ExtractSettings) -> ExtractedText:
    module, _, function = name.rpartition(".")
    read: Reader = getattr(import_module(f"callslip.ingestion.extract.readers.{module}"), function)
    return read(data, limits)


@cache
def _entries() -> Mapping[str, EntryPoint]:
    return {entry.name.lower(): entry for entry in entry_points(group=GROUP)}
