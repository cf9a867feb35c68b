"""Detects the type of a file by its content."""

import io
import json
import re
import struct
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import PurePath

import filetype
import olefile

from callslip.errors import BrokenFile, EmptyFile, NeedsPassword, UnsupportedType
from callslip.ingestion.extract.decode import looks_like_text
from callslip.ingestion.left_out import read_otherwise

PDF = "application/pdf"
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
PPTX = "application/vnd.openxmlformats-officedocument.presentationml.presentation"
XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
DOC = "application/msword"
ODT = "application/vnd.oasis.opendocument.text"
ODS = "application/vnd.oasis.opendocument.spreadsheet"
ODP = "application/vnd.oasis.opendocument.presentation"
EPUB = "application/epub+zip"
HWP = "application/x-hwp"
HWPX = "application/hwp+zip"
MSG = "application/vnd.ms-outlook"
RTF = "application/rtf"
ZIP = "application/zip"
XLS = "application/vnd.ms-excel"
PPT = "application/vnd.ms-powerpoint"
PNG = "image/png"
JPEG = "image/jpeg"
TIFF = "image/tiff"
WEBP = "image/webp"
HTML = "text/html"
MARKDOWN = "text/markdown"
RST = "text/x-rst"
CSV = "text/csv"
JSON = "application/json"
XML = "application/xml"
EMAIL = "message/rfc822"
PLAIN = "text/plain"

TEXT_NAMES = {
    ".htm": HTML, ".html": HTML, ".xhtml": HTML, ".md": MARKDOWN, ".markdown": MARKDOWN,
    ".rst": RST, ".csv": CSV, ".tsv": CSV, ".json": JSON, ".jsonl": JSON, ".ndjson": JSON,
    ".eml": EMAIL, ".xml": XML,
}  # fmt: skip
"""Media types of text by file name suffix, for types that the content does not identify."""

BINARY_NAMES = {
    ".pdf": PDF, ".docx": DOCX, ".pptx": PPTX, ".xlsx": XLSX, ".doc": DOC, ".odt": ODT, ".ods": ODS,
    ".odp": ODP, ".epub": EPUB, ".hwp": HWP, ".hwpx": HWPX, ".msg": MSG, ".rtf": RTF, ".zip": ZIP,
    ".ppt": PPT, ".pps": PPT, ".xls": XLS, ".png": PNG, ".jpg": JPEG, ".jpeg": JPEG, ".tif": TIFF,
    ".tiff": TIFF, ".webp": WEBP, ".gif": "", ".bmp": "", ".heic": "", ".avif": "", ".jp2": "",
}  # fmt: skip
"""Media types of formats with a signature, by suffix; empty for formats without a reader. A file of
such a name without a known signature is broken, even if it is text, unless it is HTML or e-mail."""

_HTML_START = re.compile(
    rb"\s*(?:<\?xml[^>]*>\s*)?(?><!--.*?-->\s*)*+<(?:!doctype\s+html|html)\b", re.I | re.S
)
_MAIL_FIELD = re.compile(
    rb"(?:Return-Path|Received|Delivered-To|Message-ID|MIME-Version|From|To|Date|Subject|Reply-To"
    rb"|Content-Type|DKIM-Signature|X-[\w-]+):",
    re.I,
)
_OPEN_XML = {
    "wordprocessingml.document.main+xml": DOCX,
    "presentationml.presentation.main+xml": PPTX,
    "presentationml.slideshow.main+xml": PPTX,
    "spreadsheetml.sheet.main+xml": XLSX,
    "ms-word.document.macroEnabled.main+xml": DOCX,
    "ms-powerpoint.presentation.macroEnabled.main+xml": PPTX,
    "ms-excel.sheet.macroEnabled.main+xml": XLSX,
}
"""Content types of the main part of an Office file; the path of this part varies."""

_ZIP_MIME = {mime: mime for mime in (ODT, ODS, ODP, EPUB, HWPX)} | {
    f"{mime}-template": mime for mime in (ODT, ODS, ODP)
}
"""Media types by the content of the file `mimetype`, the first file of the archive."""

_OLE_STREAMS = {
    "WordDocument": DOC,
    "FileHeader": HWP,
    "__properties_version1.0": MSG,
    "PowerPoint Document": PPT,
    "Workbook": XLS,
    "Book": XLS,
}
_IMAGES = {
    b"\x89PNG\r\n\x1a\n": PNG, b"\xff\xd8\xff": JPEG, b"II*\0": TIFF, b"MM\0*": TIFF,
    b"II+\0": TIFF, b"MM\0+": TIFF,
}  # fmt: skip
"""Media types by the first bytes; the last two of TIFF are those of files over 4 GB."""

_ARCHIVES = frozenset(
    f"application/{name}"
    for name in ("gzip", "x-tar", "x-7z-compressed", "x-rar-compressed", "x-bzip2", "x-xz", "zstd")
)
_PROGRAMS = frozenset(
    f"application/{name}"
    for name in ("x-executable", "x-msdownload", "x-unix-archive", "x-deb", "x-rpm", "wasm")
)
_FAMILIES = {
    "image": "Save it as PNG, JPEG, TIFF, WebP or PDF, and upload that.",
    "audio": "Callslip does not listen to recordings; upload a transcript.",
    "video": "Callslip does not listen to recordings; upload a transcript.",
    "font": "A font holds no text; leave it out.",
}
_OTHER_OLE = {
    "PP40": "PowerPoint 95 (.ppt)",
    "PP97_DUALSTORAGE": "PowerPoint 95 and 97 (.ppt)",
    "VisioDocument": "Visio (.vsd)",
    "Quill": "Publisher (.pub)",
}
_OTHER_OLE_HINT = "Open it in its program or in LibreOffice, save it as PDF, and upload that."
_LONGEST_JSON_GUESS = 1 << 24
"""The maximum number of bytes of a text without a known suffix that is parsed to recognize JSON; a
longer one counts as plain text."""


@dataclass(frozen=True)
class Detected:
    """A media type that has a reader, and a warning if the name does not fit the type."""

    media_type: str
    warnings: tuple[str, ...] = ()


def detect(data: bytes, filename: str) -> Detected:
    """Detect the media type; the name decides only between types of text.

    Raises EmptyFile, NeedsPassword, BrokenFile, or UnsupportedType with the format's name.
    """
    if not data:
        raise EmptyFile(f"{filename} has no bytes")
    suffix = PurePath(filename).suffix.lower()
    media_type = _signature(data, filename) or _kind_of_text(data, filename, suffix)
    promised = TEXT_NAMES.get(suffix) or BINARY_NAMES.get(suffix)
    if suffix == ".txt":
        promised = PLAIN
    if (promised, media_type) == (XML, HTML):  # XHTML is XML as well
        promised = HTML
    if promised is not None and promised != media_type:
        return Detected(
            media_type, (read_otherwise(f"as {media_type}, though the name ends in {suffix}", {}),)
        )
    return Detected(media_type)


def scanned_type(data: bytes) -> str | None:
    """Return the media type of a PDF or an image by its first bytes; None for other files."""
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return WEBP
    if image := next((kind for mark, kind in _IMAGES.items() if data.startswith(mark)), None):
        return image
    # PDF readers allow other bytes before the signature; an archive may contain a PDF.
    packed = data.startswith((b"PK\x03\x04", olefile.MAGIC, b"{\\rtf"))
    return PDF if b"%PDF-" in data[:1024] and not packed else None


def _signature(data: bytes, filename: str) -> str | None:
    """Return the media type by the signature in the first bytes; None without a known one."""
    if data.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return _zip_kind(data, filename)
    if data.startswith(olefile.MAGIC):
        return _ole_kind(data, filename)
    if data.startswith(b"HWP Document File V"):
        raise UnsupportedType(
            f"{filename} is Hangul 3 (.hwp)",
            hint="Open it in Hangul, save it as HWPX, HWP 5 or PDF, and upload that.",
        )
    if data.startswith(b"{\\rtf"):
        return RTF
    return scanned_type(data)


def _kind_of_text(data: bytes, filename: str, suffix: str) -> str:
    if not looks_like_text(data):
        # Not earlier, because text may begin with a signature ("BM25 is …" with that of a bitmap).
        guess = filetype.guess(data)
        if guess is not None:
            raise UnsupportedType(f"{filename} is {guess.mime}", hint=_way_out(guess.mime))
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
    return JSON if _is_json(data) else PLAIN


def _way_out(mime: str) -> str | None:
    """Return the advice for a type without a reader; None where the usual advice fits."""
    family = mime.partition("/")[0]
    if mime in _ARCHIVES:
        return "Unpack it, or pack the files in it as ZIP, and upload that."
    if mime in _PROGRAMS:
        return "It is a program and no document; leave it out."
    return _FAMILIES.get(family)


def _is_json(data: bytes) -> bool:
    """Whether the whole text is one JSON object or list."""
    if data.lstrip()[:1] not in (b"{", b"[") or len(data) > _LONGEST_JSON_GUESS:
        return False
    try:
        json.loads(data, parse_int=str)  # `int` refuses numbers of many digits
    except (ValueError, RecursionError):
        return False
    return True


def _is_mail(data: bytes) -> bool:
    """Whether the file begins with at least three header fields of e-mail."""
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
            if any(entry.flag_bits & 1 for entry in archive.infolist()):
                raise NeedsPassword(f"{filename} is an encrypted archive")
            types = _head(archive, "[Content_Types].xml", 1_000_000).decode("utf-8", "replace")
            mime = _head(archive, "mimetype", 200).decode("ascii", "replace").strip()
            if b"encryption-data" in _head(archive, "META-INF/manifest.xml", 1_000_000):
                raise NeedsPassword(f"{filename} is encrypted ({mime})")
    except (zipfile.BadZipFile, NotImplementedError, ValueError, EOFError, OSError, zlib.error):
        raise BrokenFile(f"{filename} is a damaged ZIP container") from None
    for content_type, kind in _OPEN_XML.items():
        if content_type in types:
            return kind
    if types or (mime and mime not in _ZIP_MIME):
        raise UnsupportedType(f"{filename} is {mime or 'an Office file of another kind'}")
    return _ZIP_MIME[mime] if mime else ZIP


def _head(archive: zipfile.ZipFile, name: str, size: int) -> bytes:
    if name not in archive.namelist():
        return b""
    with archive.open(name) as part:
        return part.read(size)


def _ole_kind(data: bytes, filename: str) -> str:
    """Return the media type of an OLE container.

    Raises UnsupportedType with the format's name if the format has no reader.
    """
    try:
        with olefile.OleFileIO(io.BytesIO(data)) as ole:
            streams = {entry[0] for entry in ole.listdir()}
            kind = next((k for name, k in _OLE_STREAMS.items() if name in streams), None)
            encrypted = "EncryptedPackage" in streams or _ole_encrypted(ole, streams)
    except Exception:  # olefile raises any type for a damaged allocation table
        raise BrokenFile(f"{filename} is a damaged OLE container") from None
    if encrypted:
        raise NeedsPassword(f"{filename} is an encrypted office document")
    if kind is None:
        raise _unsupported_ole(filename, streams)
    return kind


def _unsupported_ole(filename: str, streams: set[str]) -> UnsupportedType:
    named = next((name for mark, name in _OTHER_OLE.items() if mark in streams), None)
    if named is None:
        return UnsupportedType(f"{filename} is an OLE container of an unknown kind")
    return UnsupportedType(f"{filename} is {named}", hint=_OTHER_OLE_HINT)


def _ole_encrypted(ole: olefile.OleFileIO, streams: set[str]) -> bool:
    """Whether a .hwp (FileHeader), .doc (FibBase), .xls (FilePass) or .ppt file has a password."""
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
