"""The messy files, real ones where they are and our own everywhere, and how each must end."""

import csv
import shutil
from pathlib import Path

import own_messy

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

MESSY = Path(__file__).resolve().parents[3].parent / "shared" / "data" / "messy"
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

OTHERWISE = {
    "poppler-742-0-fuzzed.pdf": (
        BrokenFile,
        "some text is expected; its page tree is fuzzed, and PDFium finds no page in it",
    ),
    "table.hwp": (NoText, "text is expected; the four cells of its only table are empty"),
    "testHWP_3.0.hwp": (
        UnsupportedType,
        "some text is expected; no kept library reads Hangul 3, and the error says what to do",
    ),
}
"""Files of which the manifest's expectation is not what a good reader can do, or is not done."""


def manifest() -> list[dict[str, str]]:
    if not MANIFEST.exists():
        return []
    with MANIFEST.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


REAL_ROWS = manifest()

OWN_ROWS = [{"file": name, "expect": expect} for name, (expect, _) in own_messy.FILES.items()]
ROWS = [*OWN_ROWS, *REAL_ROWS]


def content_of(name: str) -> bytes:
    """The file of a row."""
    if name in own_messy.FILES:
        return own_messy.FILES[name][1]()
    return (MESSY / name).read_bytes()


def expected_of(row: dict[str, str]) -> tuple[type[CallslipError] | None, ...]:
    """How a file of the manifest may end."""
    if row["file"] in OTHERWISE:
        return (OTHERWISE[row["file"]][0],)
    expected = OUTCOMES[row["expect"]]
    if expected == (NoTextLayer,) and shutil.which("tesseract"):
        return (NoTextLayer, TEXT)
    return expected
