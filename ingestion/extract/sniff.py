"""What kind of file it is, by its content."""

import io
import re
import struct
import zipfile
from dataclasses import dataclass
from pathlib import PurePath

import filetype
import olefile

from callslip.errors import BrokenFile, EmptyFile, NeedsPassword, UnsupportedType
from ingestion.extract.decode import looks_like_text

PDF = "application/pdf"
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
HTML = "text/html"
MARKDOWN = "text/markdown"
EMAIL = "message/rfc822"
PLAIN = "text/plain"

TEXT_NAMES = {
    ".htm": HTML,
    ".html": HTML,
    ".xhtml": HTML,
    ".md": MARKDOWN,
    ".markdown": MARKDOWN,
    ".eml": EMAIL,
}
"""Kinds of text that only the name can tell apart."""

BINARY_NAMES = {".pdf": PDF, ".docx": DOCX} | dict.fromkeys(
    [
        ".doc", ".ppt", ".pptx", ".xls", ".xlsx", ".odt", ".ods", ".odp", ".hwp", ".hwpx", ".epub",
        ".msg", ".rtf", ".zip", ".png", ".jpg", ".jpeg", ".gif", ".tif", ".tiff",
    ],
    "",
)  # fmt: skip
"""Names that promise a signature: without one the file is broken, even when its bytes are text."""

_HTML_START = re.compile(
    rb"\s*(?:<\?xml[^>]*>\s*)?(?:<!--.*?-->\s*)*<(?:!doctype\s+html|html)\b", re.I | re.S
)
_MAIL_FIELD = re.compile(
    rb"(?:Return-Path|Received|Delivered-To|Message-ID|MIME-Version|From|To|Date|Subject|Reply-To"
    rb"|Content-Type|DKIM-Signature|X-[\w-]+):",
    re.I,
)
_OPEN_XML = {
    "word/document.xml": DOCX,
    "ppt/presentation.xml": "PowerPoint (.pptx)",
    "xl/workbook.xml": "Excel (.xlsx)",
    "xl/workbook.bin": "Excel (.xlsb)",
}
_OLE_STREAMS = {
    "WordDocument": "Word 97 (.doc)",
    "PowerPoint Document": "PowerPoint 97 (.ppt)",
    "Workbook": "Excel 97 (.xls)",
    "Book": "Excel 95 (.xls)",
    "__properties_version1.0": "Outlook message (.msg)",
    "FileHeader": "Hangul (.hwp)",
}


@dataclass(frozen=True)
class Detected:
    """A media type that has a reader, and what is odd about the name."""

    media_type: str
    warnings: tuple[str, ...] = ()


def detect(data: bytes, filename: str) -> Detected:
    """Find the media type; the name decides only between kinds of text.

    Raises EmptyFile, NeedsPassword, BrokenFile, or UnsupportedType naming what it is.
    """
    if not data:
        raise EmptyFile(f"{filename} has no bytes")
    suffix = PurePath(filename).suffix.lower()
    media_type = _signature(data, filename) or _kind_of_text(data, filename, suffix)
    promised = TEXT_NAMES.get(suffix) or BINARY_NAMES.get(suffix)
    if suffix == ".txt":
        promised = PLAIN
    if promised is not None and promised != media_type:
        return Detected(media_type, (f"the name ends in {suffix}, the content is {media_type}",))
    return Detected(media_type)


def _signature(data: bytes, filename: str) -> str | None:
    """The type that the first bytes state; None where they state none of the formats known here."""
    if b"%PDF-" in data[:1024]:
        return PDF
    if data.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return _zip_kind(data, filename)
    if data.startswith(olefile.MAGIC):
        _refuse_ole(data, filename)
    if data.startswith(b"HWP Document File V"):
        raise UnsupportedType(f"{filename} is Hangul 3 (.hwp)")
    if data.startswith(b"{\\rtf"):
        raise UnsupportedType(f"{filename} is rich text (.rtf)")
    return None


def _kind_of_text(data: bytes, filename: str, suffix: str) -> str:
    if not looks_like_text(data):
        # Only now: text may begin like a picture ("BM25 is …" has the signature of a bitmap).
        guess = filetype.guess(data)
        if guess is not None:
            raise UnsupportedType(f"{filename} is {guess.mime}")
        if suffix in BINARY_NAMES:
            raise BrokenFile(f"{filename} is not what its name says")
        raise UnsupportedType(f"{filename} holds binary data of no known type")
    if _HTML_START.match(data[:8192].removeprefix(b"\xef\xbb\xbf")):
        return HTML
    if suffix in TEXT_NAMES:
        return TEXT_NAMES[suffix]
    if _is_mail(data):
        return EMAIL
    if suffix in BINARY_NAMES:
        raise BrokenFile(f"{filename} is not what its name says")
    return PLAIN


def _is_mail(data: bytes) -> bool:
    """Whether the file begins with at least three header fields, all of them those of mail."""
    lines = [line for line in data[:2048].splitlines()[:8] if line[:1] not in b" \t"]
    fields = 0
    for line in lines:
        if not _MAIL_FIELD.match(line):
            break
        fields += 1
    return fields >= 3


def _zip_kind(data: bytes, filename: str) -> str:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = set(archive.namelist())
            if any(entry.flag_bits & 1 for entry in archive.infolist()):
                raise NeedsPassword(f"{filename} is an encrypted archive")
            for part, kind in _OPEN_XML.items():
                if part in names:
                    if kind == DOCX:
                        return DOCX
                    raise UnsupportedType(f"{filename} is {kind}")
            mime = _head(archive, "mimetype", 200).decode("ascii", "replace").strip()
            if b"encryption-data" in _head(archive, "META-INF/manifest.xml", 1_000_000):
                raise NeedsPassword(f"{filename} is encrypted ({mime})")
    except (zipfile.BadZipFile, NotImplementedError, ValueError, EOFError, OSError):
        raise BrokenFile(f"{filename} is a damaged ZIP container") from None
    raise UnsupportedType(f"{filename} is {mime or 'a ZIP archive'}")


def _head(archive: zipfile.ZipFile, name: str, size: int) -> bytes:
    if name not in archive.namelist():
        return b""
    with archive.open(name) as part:
        return part.read(size)


def _refuse_ole(data: bytes, filename: str) -> None:
    """Name what an OLE container holds; none of these has a reader."""
    try:
        with olefile.OleFileIO(io.BytesIO(data)) as ole:
            streams = {entry[0] for entry in ole.listdir()}
            kind = next((k for name, k in _OLE_STREAMS.items() if name in streams), "OLE container")
            encrypted = "EncryptedPackage" in streams or _ole_encrypted(ole, streams)
    except Exception:  # olefile raises whatever a damaged allocation table leads to
        raise BrokenFile(f"{filename} is a damaged OLE container") from None
    if encrypted:
        raise NeedsPassword(f"{filename} is an encrypted office document")
    raise UnsupportedType(f"{filename} is {kind}")


def _ole_encrypted(ole: olefile.OleFileIO, streams: set[str]) -> bool:
    """The password flags of .hwp (FileHeader), .doc (FibBase), .xls (FilePass) and .ppt."""
    if "FileHeader" in streams:
        header = ole.openstream("FileHeader").read(40)
        return len(header) == 40 and bool(struct.unpack_from("<I", header, 36)[0] & 0b10)
    if "WordDocument" in streams:
        fib = ole.openstream("WordDocument").read(12)
        return len(fib) == 12 and bool(struct.unpack_from("<H", fib, 10)[0] & 0x0100)
    if "Workbook" in streams:
        stream = ole.openstream("Workbook").read(4096)
        at = 0
        while at + 4 <= len(stream):
            record, size = struct.unpack_from("<HH", stream, at)
            if record == 0x2F:  # FilePass
                return True
            at += 4 + size
    return "EncryptedSummary" in streams
