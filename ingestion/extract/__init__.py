"""Reading a file: bytes in, all its text with headings, pages and properties out.

The type is found by content. What comes out is clean (NFC, `\\n`, no control characters) and is
really text; everything else is one named error. Pure: run it through `ingestion.isolation` unless
the file is trusted.
"""

from collections.abc import Callable
from dataclasses import replace
from importlib import import_module

from lxml import etree

from callslip.errors import BrokenFile, CallslipError, ExtractionLimit
from config.settings import ExtractSettings
from ingestion.extract import sniff
from ingestion.extract.clean import tidy
from ingestion.parts import ExtractedText

Reader = Callable[[bytes, ExtractSettings], ExtractedText]

READERS: dict[str, str] = {
    sniff.PDF: "pdf.read",
    sniff.DOCX: "word.read",
    sniff.DOC: "word97.read",
    sniff.PPTX: "slides.read",
    sniff.XLSX: "workbook.read",
    sniff.CSV: "delimited.read",
    sniff.ODT: "opendocument.read",
    sniff.ODS: "opendocument.read",
    sniff.ODP: "opendocument.read",
    sniff.EPUB: "book.read",
    sniff.RTF: "rich.read",
    sniff.HWP: "hangul.read",
    sniff.HWPX: "hangul.read_x",
    sniff.HTML: "web.read",
    sniff.MARKDOWN: "markdown.read",
    sniff.RST: "restructured.read",
    sniff.JSON: "structured.read",
    sniff.EMAIL: "mail.read",
    sniff.MSG: "outlook.read",
    sniff.ZIP: "archive.read",
    sniff.PLAIN: "plain.read",
}
"""One reader per media type. Its spans are into its own raw text; `tidy` moves them.

Loaded when first needed: with all their libraries a child would take a second to start.
"""

_XML_NO_MEMORY = etree.ErrorTypes.ERR_NO_MEMORY
"""libxml2 reports it as a syntax error of this code."""


def extract(data: bytes, filename: str, limits: ExtractSettings) -> ExtractedText:
    """Read one file; the name only breaks ties between kinds of plain text.

    Raises one of the `DocumentError`s: EmptyFile, UnsupportedType, BrokenFile, NeedsPassword,
    NoTextLayer, NoText, GarbageText or ExtractionLimit (text longer than `limits.max_chars`).
    """
    found = sniff.detect(data, filename)
    text = _read(READERS[found.media_type], data, filename, limits)
    return replace(text, warnings=found.warnings + text.warnings) if found.warnings else text


def recognize(data: bytes, filename: str, limits: ExtractSettings) -> ExtractedText:
    """Read a PDF of pictures by OCR, after `extract` found no text layer; it raises the same."""
    return _read("ocr.read", data, filename, limits)


def _read(reader: str, data: bytes, filename: str, limits: ExtractSettings) -> ExtractedText:
    module, _, function = reader.partition(".")
    try:
        read: Reader = getattr(import_module(f"ingestion.extract.{module}"), function)
        raw = read(data, limits)
        if raw.attachments and not raw.text.strip():  # of no use by itself, but its files are
            raw = replace(raw, text="\n".join(a.name for a in raw.attachments))
        return tidy(raw, limits.max_chars)
    except CallslipError:
        raise
    except RecursionError:
        raise ExtractionLimit(f"{filename} is nested too deeply to read") from None
    except Exception as error:
        if isinstance(error, MemoryError) or getattr(error, "code", None) == _XML_NO_MEMORY:
            raise ExtractionLimit(
                f"{filename} needs more than {limits.memory_mb} MB to read"
            ) from None
        # The libraries raise dozens of types on damaged input; their messages may quote it.
        raise BrokenFile(f"{filename} cannot be read ({type(error).__name__})") from None
