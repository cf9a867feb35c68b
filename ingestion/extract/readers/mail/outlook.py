"""MSG: a message saved by Outlook ([MS-OXMSG]), an OLE container with a stream per property."""

import datetime
import io
import struct

import olefile

from callslip.config.settings import ExtractSettings
from callslip.ingestion.extract.container import NOT_READ, Members
from callslip.ingestion.extract.decode import decode
from callslip.ingestion.extract.readers.web.page import decode_page, render
from callslip.ingestion.extract.sniff import MSG
from callslip.ingestion.left_out import left_out
from callslip.ingestion.values import ExtractedText

MOST_NESTED = 10
"""The maximum depth of messages within messages; Outlook itself warns at a smaller depth."""

_SUBJECT, _BODY, _HTML, _DATA = "0037", "1000", "1013", "3701"
_HEADERS = {"from": "0C1A", "to": "0E04", "cc": "0E03"}
_ADDRESS, _SENT = "0C1F", 0x00390040
_FILE_NAMES = ("3707", "3704", "3001")
_CONTENT_ID, _MIME = "3712", "370E"
_UNICODE, _BYTES, _MESSAGE = "001F", "0102", "000D"
_YEAR_8900 = 1 << 61
_1601 = datetime.datetime(1601, 1, 1, tzinfo=datetime.UTC)

StoragePath = tuple[str, ...]
"""The names of the storages from the root to a message or an attachment."""


def read(data: bytes, limits: ExtractSettings) -> ExtractedText:
    """Read the body, preferably the plain one, and attached messages; extract attached files."""
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
        warnings=message.warnings,
        attachments=message.members.all(),
    )


class _Message:
    def __init__(self, ole: olefile.OleFileIO, members: Members) -> None:
        self._ole, self.members = ole, members
        self._of_parts: list[str] = []
        self._not_read: list[str] = []
        self._too_deep = 0

    @property
    def warnings(self) -> tuple[str, ...]:
        """The warnings about the bodies that were read, each once, and about what is left out."""
        lost = left_out(
            {"messages that are nested too deeply": self._too_deep}, {NOT_READ: self._not_read}
        )
        return *dict.fromkeys(self._of_parts), *lost

    def parts(self, storage_path: StoragePath, depth: int) -> list[str]:
        """Return the body, and the headers and bodies of attached messages."""
        body = self.text(storage_path, _BODY)
        if not body.strip() and (page := self._bytes(storage_path, _HTML + _BYTES)):
            rendered = render(decode_page(page).text)
            self._of_parts += rendered.warnings
            body = rendered.text
        collected = [body.strip()] if body.strip() else []
        for storage in self._attachments(storage_path):
            inner = (*storage, f"__substg1.0_{_DATA}{_MESSAGE}")
            if not self._ole.exists("/".join(inner)):
                self._take(storage)
            elif depth == MOST_NESTED:
                self._too_deep += 1
            else:
                fields = {"subject": self.text(inner, _SUBJECT)} | self.headers(inner)
                collected.append("\n".join(f"{k.title()}: {v}" for k, v in fields.items() if v))
                collected += self.parts(inner, depth + 1)
        return collected

    def headers(self, storage_path: StoragePath) -> dict[str, str]:
        """Return from, to, cc and date; absent fields are left out."""
        collected = {name: self.text(storage_path, tag) for name, tag in _HEADERS.items()}
        address = self.text(storage_path, _ADDRESS)
        if "@" in address and address not in collected["from"]:
            collected["from"] = f"{collected['from']} <{address}>".strip()
        collected["date"] = self._sent(storage_path)
        return {name: " ".join(v.split()) for name, v in collected.items() if v.strip()}

    def text(self, storage_path: StoragePath, tag: str) -> str:
        """Return a string property, in UTF-16 or in 8-bit characters; empty if there is none."""
        if (wide := self._bytes(storage_path, tag + _UNICODE)) is not None:
            return wide.decode("utf-16-le", "replace").rstrip("\0")
        return decode(self._bytes(storage_path, f"{tag}001E") or b"").text.rstrip("\0")

    def _bytes(self, storage_path: StoragePath, name: str) -> bytes | None:
        path = "/".join((*storage_path, f"__substg1.0_{name}"))
        if not self._ole.exists(path) or self._ole.get_type(path) != olefile.STGTY_STREAM:
            return None
        content: bytes = self._ole.openstream(path).read()
        return content

    def _attachments(self, storage_path: StoragePath) -> list[StoragePath]:
        depth = len(storage_path)
        collected = {
            tuple(entry[: depth + 1])
            for entry in self._ole.listdir()
            if tuple(entry[:depth]) == storage_path
            and len(entry) > depth + 1
            and entry[depth].startswith("__attach_version1.0")
        }
        return sorted(collected)

    def _take(self, storage: StoragePath) -> None:
        name = next((n for tag in _FILE_NAMES if (n := self.text(storage, tag))), "")
        content = self._bytes(storage, _DATA + _BYTES)
        inline = self.text(storage, _CONTENT_ID) and self.text(storage, _MIME).startswith("image/")
        if content is None or inline:
            self._not_read.append(name)
        else:
            self.members.add(name, content)

    def _sent(self, storage_path: StoragePath) -> str:
        """Return the time of sending in ISO 8601 from the fixed-length properties, or `""`."""
        path = "/".join((*storage_path, "__properties_version1.0"))
        if not self._ole.exists(path):
            return ""
        content = self._ole.openstream(path).read()
        for at in range(24 if storage_path else 32, len(content) - 15, 16):
            tag, _, value = struct.unpack_from("<IIQ", content, at)
            if tag == _SENT and value < _YEAR_8900:
                sent = _1601 + datetime.timedelta(microseconds=value // 10)
                return sent.isoformat(timespec="seconds")
        return ""
