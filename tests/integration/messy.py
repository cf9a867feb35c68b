"""The messy files and how each must end."""

import csv
from pathlib import Path

from callslip.errors import (
    BrokenFile,
    CallslipError,
    EmptyFile,
    ExtractionLimit,
    GarbageText,
    NeedsPassword,
    NoText,
    NoTextLayer,
    UnsupportedType,
)

MESSY = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "messy"
MANIFEST = MESSY / "manifest.tsv"

TEXT = None
OUTCOMES: dict[str, tuple[type[CallslipError] | None, ...]] = {
    "text": (TEXT,),
    "degraded": (TEXT,),
    "empty": (NoText, EmptyFile),
    "no-text-layer": (NoTextLayer,),
    "garbage-text": (GarbageText,),
    "needs-password": (NeedsPassword,),
    "reject": (BrokenFile, EmptyFile, UnsupportedType),
    "bounded": (TEXT, ExtractionLimit, NoTextLayer),
}
"""What the manifest's words mean here."""

NOT_YET_READ = {
    "fake-power-point-malformed.pptx": "PowerPoint",
    "fake-power-point-table.pptx": "PowerPoint",
    "xlsx-subtable-cases.xlsx": "Excel",
    "empty.xlsx": "Excel; that it is empty is not seen before it is read",
    "duplicate-paragraphs.doc": "Word 97",
    "fake-email-attachment.msg": "Outlook",
    "testHWP_5.0.hwp": "Hangul 5",
    "table.hwp": "Hangul 5",
    "testHWP_3.0.hwp": "Hangul 3",
    "testRTFJapanese.rtf": "rich text",
}
"""Types without a reader: UnsupportedType, whatever text they hold."""

OTHERWISE = {
    "poppler-742-0-fuzzed.pdf": (
        BrokenFile,
        "some text is expected; its page tree is fuzzed, and PDFium finds no page in it",
    ),
}
"""Files of which the manifest's expectation is not what a good reader can do."""


def manifest() -> list[dict[str, str]]:
    if not MANIFEST.exists():
        return []
    with MANIFEST.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


ROWS = manifest()


def expected_of(row: dict[str, str]) -> tuple[type[CallslipError] | None, ...]:
    """How a file of the manifest may end."""
    if row["file"] in NOT_YET_READ:
        return (UnsupportedType,)
    if row["file"] in OTHERWISE:
        return (OTHERWISE[row["file"]][0],)
    return OUTCOMES[row["expect"]]
