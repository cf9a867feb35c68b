"""Extraction: reads the bytes of a file; returns its text, headings, pages and properties.

The type is detected by the content. The returned text is clean (NFC, `\\n` line ends, no control
characters) and meaningful; otherwise a `DocumentError` is raised. The functions are pure. Call them
through `ingestion.isolation` unless the file is trusted.
"""

from dataclasses import replace

from lxml import etree

from callslip.config.settings import ExtractSettings
from callslip.errors import BrokenFile, CallslipError, ExtractionLimit
from callslip.ingestion.extract import registry, sniff
from callslip.ingestion.extract.clean import tidy
from callslip.ingestion.extract.registry import Reader
from callslip.ingestion.values import ExtractedText

_XML_NO_MEMORY = etree.ErrorTypes.ERR_NO_MEMORY
"""libxml2 reports a lack of memory as a syntax error with this code."""


def extract(data: bytes, filename: str, limits: ExtractSettings) -> ExtractedText:
    """Read one file; the name decides between kinds of plain text and readers of other packages.

    Raises a `DocumentError`: EmptyFile, UnsupportedType, BrokenFile, NeedsPassword, NoTextLayer,
    NoText, GarbageText or ExtractionLimit (text longer than `limits.max_chars`); SettingsError if
    the reader of another package cannot be imported.
    """
    if data and (outside := registry.outside_reader(filename)):
        return _read(outside, data, filename, limits)
    detected = sniff.detect(data, filename)
    text = _read(registry.reader(detected.media_type), data, filename, limits)
    if detected.warnings:
        return replace(text, warnings=detected.warnings + text.warnings)
    return text


def recognize(data: bytes, filename: str, limits: ExtractSettings) -> ExtractedText:
    """Read a scan by OCR, after `extract` raised NoTextLayer; the errors are the same."""
    read = registry.ocr_reader(sniff.detect(data, filename).media_type)
    return _read(read, data, filename, limits)


def read_converted(data: bytes, filename: str, limits: ExtractSettings) -> ExtractedText:
    """Read the document that a layout server made of a file; the errors are those of `extract`."""
    return _read(registry.converted_reader, data, filename, limits)


def _read(read: Reader, data: bytes, filename: str, limits: ExtractSettings) -> ExtractedText:
    try:
        raw = read(data, limits)
        if raw.attachments and not raw.text.strip():  # no text, but files in it
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
        # Libraries raise dozens of types for damaged files; their messages may quote the files.
        raise BrokenFile(f"{filename} cannot be read ({type(error).__name__})") from None
