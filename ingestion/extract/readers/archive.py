"""ZIP: each file in it becomes a separate document; the text is the list of the file names."""

import io
import re
import zipfile

from callslip.config.settings import ExtractSettings
from callslip.ingestion.extract.container import Members
from callslip.ingestion.extract.decode import decode
from callslip.ingestion.extract.sniff import ZIP
from callslip.ingestion.left_out import left_out
from callslip.ingestion.values import ExtractedText

_UTF8_NAME = 0x800
_LEFT_OUT = re.compile(r"(^|/)(__MACOSX/|\.DS_Store$|Thumbs\.db$|desktop\.ini$)", re.I)
"""Files that operating systems add; they are not documents."""


def read(data: bytes, limits: ExtractSettings) -> ExtractedText:
    """Extract every file; the limits apply to actual sizes, not to those that the archive states.

    Raises ExtractionLimit if the files are too many or too large together.
    """
    members = Members(limits)
    of_the_system = 0
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for entry in archive.infolist():
            name = _name(entry)
            if entry.is_dir():
                continue
            if _LEFT_OUT.search(name):
                of_the_system += 1
                continue
            with archive.open(entry) as file:
                members.add(name, file.read(members.room + 1))
    unpacked = members.all()
    return ExtractedText(
        "\n".join(a.name for a in unpacked),
        ZIP,
        warnings=left_out({"files of an operating system": of_the_system}),
        attachments=unpacked,
    )


def _name(entry: zipfile.ZipInfo) -> str:
    """Return the name; without the UTF-8 flag it is in the code page of the packing system."""
    if entry.flag_bits & _UTF8_NAME or entry.filename.isascii():
        return entry.filename
    return decode(entry.orig_filename.encode("cp437", "replace")).text
