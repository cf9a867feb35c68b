"""What the pages of a format are called, and where they begin in the text."""

from callslip.ingestion.extract.sniff import EPUB, ODP, ODS, PPTX, XLSX
from callslip.ingestion.values import ExtractedText
from callslip.stores.ledger import PageTable
from callslip.stores.ledger.documents.pages import LONGEST_LABEL, MOST_PAGES
from callslip.vocabulary import PageUnit

_UNITS: dict[str, PageUnit] = {
    PPTX: "slide",
    ODP: "slide",
    XLSX: "sheet",
    ODS: "sheet",
    EPUB: "chapter",
}


def page_table(text: ExtractedText) -> PageTable:
    """Return the pages of a text for the ledger; a format without pages has an empty table."""
    pages = text.pages[:MOST_PAGES]
    labels = tuple(page.label[:LONGEST_LABEL] for page in pages)
    unit = _UNITS.get(text.media_type, "page")
    return PageTable(unit, tuple(page.start for page in pages), labels if any(labels) else ())
