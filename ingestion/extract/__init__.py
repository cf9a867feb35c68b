"""Reading a file: bytes in, all its text with headings, pages and properties out.

The type is found by content. What comes out is clean (NFC, `\\n`, no control characters) and is
really text; everything else is one named error. Pure: run it through `ingestion.isolation` unless
the file is trusted.
"""

from collections.abc import Callable
from dataclasses import replace

from lxml import etree

from callslip.errors import BrokenFile, CallslipError, ExtractionLimit
from config.settings import ExtractSettings
from ingestion.extract import mail, markdown, pdf, plain, web, word
from ingestion.extract.clean import tidy
from ingestion.extract.sniff import DOCX, EMAIL, HTML, MARKDOWN, PDF, PLAIN, detect
from ingestion.parts import ExtractedText

Reader = Callable[[bytes, ExtractSettings], ExtractedText]

READERS: dict[str, Reader] = {
    PDF: pdf.read,
    DOCX: word.read,
    HTML: web.read,
    MARKDOWN: markdown.read,
    EMAIL: mail.read,
    PLAIN: plain.read,
}
"""One reader per media type. Its spans are into its own raw text; `tidy` moves them."""

_XML_NO_MEMORY = etree.ErrorTypes.ERR_NO_MEMORY
"""libxml2 reports it as a syntax error of this code."""


def extract(data: bytes, filename: str, limits: ExtractSettings) -> ExtractedText:
    """Read one file; the name only breaks ties between kinds of plain text.

    Raises one of the `DocumentError`s: EmptyFile, UnsupportedType, BrokenFile, NeedsPassword,
    NoTextLayer, NoText, GarbageText or ExtractionLimit (text longer than `limits.max_chars`).
    """
    found = detect(data, filename)
    try:
        text = tidy(READERS[found.media_type](data, limits), limits.max_chars)
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
        raise BrokenFile(
            f"{filename} cannot be read as {found.media_type} ({type(error).__name__})"
        ) from None
    return replace(text, warnings=found.warnings + text.warnings) if found.warnings else text
