"""ZIP: its files become documents of their own; its own text is the list of their names."""

import io
import re
import zipfile

from config.settings import ExtractSettings
from ingestion.extract.container import Members
from ingestion.extract.decode import decode
from ingestion.extract.sniff import ZIP
from ingestion.parts import ExtractedText

_UTF8_NAME = 0x800
_LEFT_OUT = re.compile(r"(^|/)(__MACOSX/|\.DS_Store$|Thumbs\.db$|desktop\.ini$)", re.I)
"""What systems leave behind, nobody's document."""


def read(data: bytes, limits: ExtractSettings) -> ExtractedText:
    """Take every file out, by the bytes that there are, not by the sizes that are told.

    Raises ExtractionLimit when there are too many or too much.
    """
    members = Members(limits)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for entry in archive.infolist():
            name = _name(entry)
            if entry.is_dir() or _LEFT_OUT.search(name):
                continue
            with archive.open(entry) as file:
                members.add(name, file.read(members.room + 1))
    found = members.all()
    return ExtractedText("\n".join(a.name for a in found), ZIP, attachments=found)


def _name(entry: zipfile.ZipInfo) -> str:
    """Without the mark for UTF-8 a name is in the code page of whoever packed it."""
    if entry.flag_bits & _UTF8_NAME or entry.filename.isascii():
        return entry.filename
    return decode(entry.orig_filename.encode("cp437", "replace")).text
