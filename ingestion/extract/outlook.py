"""MSG: a message that Outlook saved ([MS-OXMSG]): an OLE container with a stream per property."""

import datetime
import io
import struct

import olefile

from config.settings import ExtractSettings
from ingestion.extract.container import Members
from ingestion.extract.decode import decode
from ingestion.extract.sniff import MSG
from ingestion.extract.web import decode_page, render
from ingestion.parts import ExtractedText

MOST_NESTED = 10
"""Messages within messages that are read; Outlook itself warns at fewer."""

_SUBJECT, _BODY, _HTML, _DATA = "0037", "1000", "1013", "3701"
_HEADERS = {"from": "0C1A", "to": "0E04", "cc": "0E03"}
_ADDRESS, _SENT = "0C1F", 0x00390040
_FILE_NAMES = ("3707", "3704", "3001")
_CONTENT_ID, _MIME = "3712", "370E"
_UNICODE, _BYTES, _MESSAGE = "001F", "0102", "000D"
_YEAR_8900 = 1 << 61
_1601 = datetime.datetime(1601, 1, 1, tzinfo=datetime.UTC)

Place = tuple[str, ...]
"""Storages from the root to a message or an attachment."""


def read(data: bytes, limits: ExtractSettings) -> ExtractedText:
    """Read the body, plain before HTML; attached files are taken out, attached messages read in."""
    with olefile.OleFileIO(io.BytesIO(data)) as ole:
        message = _Message(ole, Members(limits))
        text = "\n\n".join(message.parts((), 0))
        properties = message.headers(())
        title = message.text((), _SUBJECT)
    return ExtractedText(
        text,
        MSG,
        title or None,
        properties=properties,
        warnings=tuple(dict.fromkeys(message.warnings)),
        attachments=message.members.all(),
    )


class _Message:
    def __init__(self, ole: olefile.OleFileIO, members: Members) -> None:
        self._ole, self.members = ole, members
        self.warnings: list[str] = []

    def parts(self, place: Place, depth: int) -> list[str]:
        """The body and, under their headers, the bodies of attached messages."""
        body = self.text(place, _BODY)
        if not body.strip() and (page := self._bytes(place, _HTML + _BYTES)):
            rendered = render(decode_page(page).text)
            self.warnings += rendered.warnings
            body = rendered.text
        found = [body.strip()] if body.strip() else []
        for storage in self._attachments(place):
            inner = (*storage, f"__substg1.0_{_DATA}{_MESSAGE}")
            if not self._ole.exists("/".join(inner)):
                self._take(storage)
            elif depth == MOST_NESTED:
                self.warnings.append("a message nested too deeply was not read")
            else:
                told = {"subject": self.text(inner, _SUBJECT)} | self.headers(inner)
                found.append("\n".join(f"{k.title()}: {v}" for k, v in told.items() if v))
                found += self.parts(inner, depth + 1)
        return found

    def headers(self, place: Place) -> dict[str, str]:
        """From, to, cc and date, as far as they are there."""
        found = {name: self.text(place, tag) for name, tag in _HEADERS.items()}
        address = self.text(place, _ADDRESS)
        if "@" in address and address not in found["from"]:
            found["from"] = f"{found['from']} <{address}>".strip()
        found["date"] = self._sent(place)
        return {name: " ".join(v.split()) for name, v in found.items() if v.strip()}

    def text(self, place: Place, tag: str) -> str:
        """A property that is characters, of either width; empty where there is none."""
        if (wide := self._bytes(place, tag + _UNICODE)) is not None:
            return wide.decode("utf-16-le", "replace").rstrip("\0")
        return decode(self._bytes(place, f"{tag}001E") or b"").text.rstrip("\0")

    def _bytes(self, place: Place, name: str) -> bytes | None:
        path = "/".join((*place, f"__substg1.0_{name}"))
        if not self._ole.exists(path) or self._ole.get_type(path) != olefile.STGTY_STREAM:
            return None
        content: bytes = self._ole.openstream(path).read()
        return content

    def _attachments(self, place: Place) -> list[Place]:
        depth = len(place)
        found = {
            tuple(entry[: depth + 1])
            for entry in self._ole.listdir()
            if tuple(entry[:depth]) == place
            and len(entry) > depth + 1
            and entry[depth].startswith("__attach_version1.0")
        }
        return sorted(found)

    def _take(self, storage: Place) -> None:
        name = next((n for tag in _FILE_NAMES if (n := self.text(storage, tag))), "")
        content = self._bytes(storage, _DATA + _BYTES)
        inline = self.text(storage, _CONTENT_ID) and self.text(storage, _MIME).startswith("image/")
        if content is None or inline:
            self.warnings.append(f"attachment not read: {name}")
        else:
            self.members.add(name, content)

    def _sent(self, place: Place) -> str:
        """When it was sent, from the properties of fixed length."""
        path = "/".join((*place, "__properties_version1.0"))
        if not self._ole.exists(path):
            return ""
        content = self._ole.openstream(path).read()
        for at in range(24 if place else 32, len(content) - 15, 16):
            tag, _, value = struct.unpack_from("<IIQ", content, at)
            if tag == _SENT and value < _YEAR_8900:
                sent = _1601 + datetime.timedelta(microseconds=value // 10)
                return sent.isoformat(timespec="seconds")
        return ""
