"""Reads an original: by the reader of its format, and by the layout server where one is set."""

from collections.abc import Mapping
from dataclasses import replace

from callslip.errors import DocumentError, GarbageText, NoTextLayer
from callslip.ingestion.context import StepContext
from callslip.ingestion.extract.container import NOT_READ
from callslip.ingestion.extract.sniff import scanned_type
from callslip.ingestion.isolation.process import Extractor
from callslip.ingestion.layout_server import LayoutServer, NotConverted, ServerFault
from callslip.ingestion.left_out import read_otherwise
from callslip.ingestion.values import ExtractedText

BY_LAYOUT_SERVER = read_otherwise("by the layout server", {})

MOST_TRIES = 5
"""The attempts at a file for which a layout server fails that is well otherwise: half a minute."""

_WITHOUT_OCR = {"ocr": "off"}


def read_original(
    context: StepContext,
    data: bytes,
    filename: str,
    json_fields: Mapping[str, str],
    attempt: int = 1,
) -> ExtractedText:
    """Return the text of an original.

    A file that the layout server cannot read, or fails for in the `attempt` MOST_TRIES or a later
    one, is read without it, with a warning. Raises the errors of `Extractor.extract`;
    LayoutServerDown while the server is away, so that the step is repeated.
    """
    server, media_type = context.layout_server, scanned_type(data)
    if server is None or media_type is None or not server.reads(media_type):
        return context.extractor.extract(data, filename, json_fields)
    own = _without_ocr(context.extractor, data, filename)
    try:
        return _by_server(server, context.extractor, data, filename, media_type, own)
    except NotConverted as error:
        why = str(error)
    except ServerFault as fault:
        if attempt < MOST_TRIES:
            raise
        server.ping()  # one that fails for every file is waited for, as one that is away
        why = f"it answered status {fault.answered} at attempt {attempt}"
    except DocumentError as error:
        why = error.slug
    text = own or context.extractor.extract(data, filename, json_fields)
    note = read_otherwise(f"without the layout server, which could not read the file ({why})", {})
    return replace(text, warnings=(note, *text.warnings))


def _without_ocr(extractor: Extractor, data: bytes, filename: str) -> ExtractedText | None:
    """Return the text of the file's own reader, None if only OCR can read it.

    A damaged or encrypted file, whose error is raised, is not sent.
    """
    try:
        return extractor.extract(data, filename, _WITHOUT_OCR)
    except (NoTextLayer, GarbageText):
        return None


def _by_server(
    server: LayoutServer,
    extractor: Extractor,
    data: bytes,
    filename: str,
    media_type: str,
    own: ExtractedText | None,
) -> ExtractedText:
    """Return the server's text, with the title, the files and the labels of pages of the file."""
    text = extractor.read_converted(server.convert(data, media_type), filename)
    warnings = (BY_LAYOUT_SERVER, *text.warnings)
    if own is None:
        return replace(text, media_type=media_type, warnings=warnings)
    labels = {page.number: page.label for page in own.pages}
    return replace(
        text,
        media_type=media_type,
        title=own.title or text.title,
        pages=tuple(replace(each, label=labels.get(each.number, "")) for each in text.pages),
        properties=own.properties,
        warnings=(*warnings, *(each for each in own.warnings if NOT_READ in each)),
        attachments=own.attachments,
    )
