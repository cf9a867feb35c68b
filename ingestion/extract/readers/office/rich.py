"""RTF: text and tables by striprtf, which decodes the code pages. RTF has no reliable headings."""

import re

from striprtf.striprtf import rtf_to_text

from callslip.config.settings import ExtractSettings
from callslip.ingestion.extract.composer import Composer
from callslip.ingestion.extract.sniff import RTF
from callslip.ingestion.left_out import left_out
from callslip.ingestion.values import ExtractedText

_ROWS = re.compile(r"(?:^[^\n]*\|[ \t]*(?:\n|\Z))+", re.M)
"""Lines with the ending that striprtf gives to the last cell of a row."""

_LEFT_OUT = {
    "pictures": re.compile(r"\\pict(?![a-z])"),
    "footnotes": re.compile(r"\\footnote(?![a-z])"),
    "comments": re.compile(r"\\annotation(?![a-z])"),
    "text boxes": re.compile(r"\\shptxt(?![a-z])"),
    "headers and footers": re.compile(r"\\(?:header|footer)[lrf]?(?![a-z])"),
}
"""The groups that striprtf leaves out, by the words that open them."""


def read(data: bytes, limits: ExtractSettings) -> ExtractedText:
    """Read text and tables; bytes that are not valid in their code page become U+FFFD."""
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

    counts = {kind: len(mark.findall(source)) for kind, mark in _LEFT_OUT.items()}
    return composer.text(RTF, warnings=left_out(counts))
