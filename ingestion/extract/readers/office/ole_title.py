"""The title in the properties of an OLE container ([MS-OLEPS] 2.20, 2.21)."""

import struct
from contextlib import suppress

import olefile

_SUMMARY = "\x05SummaryInformation"
_SECTION_OFFSET = 44
_CODE_PAGE, _TITLE = 1, 2
_STRING, _WIDE_STRING = 0x1E, 0x1F
_UTF_8, _UTF_16, _USUAL = 65001, 1200, 1252

MOST_PROPERTIES = 100


def title_of(ole: olefile.OleFileIO) -> str | None:
    """Return the title; None without one, or if the properties are damaged.

    olefile reads all properties, for minutes if a damaged one claims to have many values.
    """
    if not ole.exists(_SUMMARY):
        return None
    with suppress(struct.error, LookupError, OSError):
        return _title(ole.openstream(_SUMMARY).read())
    return None


def _title(content: bytes) -> str | None:
    section = struct.unpack_from("<I", content, _SECTION_OFFSET)[0]
    count = struct.unpack_from("<I", content, section + 4)[0]
    offsets = dict(
        struct.unpack_from("<II", content, section + 8 + 8 * number)
        for number in range(min(count, MOST_PROPERTIES))
    )
    if _TITLE not in offsets:
        return None
    page = _USUAL
    if _CODE_PAGE in offsets:
        page = struct.unpack_from("<H", content, section + offsets[_CODE_PAGE] + 4)[0]
    at = section + offsets[_TITLE]
    kind, size = struct.unpack_from("<II", content, at)
    if kind == _WIDE_STRING:
        value = content[at + 8 : at + 8 + 2 * size].decode("utf-16-le", "replace")
    elif kind == _STRING:
        codec = {_UTF_8: "utf-8", _UTF_16: "utf-16-le"}.get(page, f"cp{page}")
        value = content[at + 8 : at + 8 + size].decode(codec, "replace")
    else:
        return None
    return value.partition("\0")[0].strip() or None
