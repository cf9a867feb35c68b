"""RTF: its text in its code pages, by striprtf; RTF names no headings that could be relied on."""

import re

from striprtf.striprtf import rtf_to_text

from config.settings import ExtractSettings
from ingestion.extract.composer import Composer
from ingestion.extract.sniff import RTF
from ingestion.parts import ExtractedText

_ROWS = re.compile(r"(?:^[^\n]*\|[ \t]*(?:\n|\Z))+", re.M)
"""Lines that end as striprtf ends the last cell of a row."""


def read(data: bytes, limits: ExtractSettings) -> ExtractedText:
    """Bytes that do not fit their code page become U+FFFD."""
    source = data.decode("latin-1")
    text = rtf_to_text(source, encoding="cp1252", errors="replace")  # type: ignore[no-untyped-call]
    composer = Composer(limits)
    at = 0
    for table in _ROWS.finditer(text):
        composer.paragraph(text[at : table.start()])
        rows = (line.rstrip("| \t").split("|") for line in table[0].splitlines())
        composer.table(rows)
        at = table.end()
    composer.paragraph(text[at:])

    return composer.text(RTF)
