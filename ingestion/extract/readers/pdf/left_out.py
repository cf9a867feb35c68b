"""What is left out of a PDF's text, and its files, which become documents."""

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any

import pypdfium2 as pdfium

from callslip.config.settings import ExtractSettings
from callslip.ingestion.extract.container import NOT_READ, Members
from callslip.ingestion.extract.readers.pdf.forms import Notes
from callslip.ingestion.extract.readers.pdf.hidden import Drawn
from callslip.ingestion.extract.readers.pdf.outline import Line
from callslip.ingestion.left_out import left_out
from callslip.ingestion.values import Attachment

_UNSEEN = "characters that a reader cannot see"
_PICTURES = "pages that are pictures until OCR (ocrmypdf --skip-text) reads them"


class LeftOut:
    """Records pages that cannot be read, pages that are pictures, and text that is not seen.

    `drawn` is whether any page has anything on it.
    """

    def __init__(self) -> None:
        self.unread: list[int] = []
        self.drawn = False
        self._pictures: list[int] = []
        self._hidden: dict[int, int] = {}

    def hidden(self, number: int, characters: int) -> None:
        """Record how many characters of a page a reader cannot see."""
        if characters > 0:
            self._hidden[number] = self._hidden.get(number, 0) + characters

    def seen(self, number: int, lines: Sequence[Line], drawn: Drawn) -> None:
        """Record what a page has."""
        self.drawn = self.drawn or bool(lines or drawn)
        if not lines and drawn.has_image:
            self._pictures.append(number)

    def warnings(self, notes: Notes) -> tuple[str, ...]:
        """Return the warning about all that is left out; none if nothing is."""
        return left_out(
            {
                _UNSEEN: sum(self._hidden.values()),
                "values of form fields that are not shown": notes.hidden,
                "values of password fields": notes.secret,
                "comments on pages": notes.comments,
            },
            {
                "pages that cannot be read": self.unread,
                _PICTURES: self._pictures,
                _UNSEEN: [f"page {number}" for number in self._hidden],
            },
        )


class Files:
    """Collects the files that are attached to a PDF or to its pages."""

    def __init__(self, limits: ExtractSettings) -> None:
        self._members = Members(limits)
        self._added: set[tuple[str, bytes]] = set()
        self._not_read: list[str] = []

    @property
    def warnings(self) -> tuple[str, ...]:
        """The warning about the files that cannot be read; none if all can."""
        return left_out({}, {NOT_READ: self._not_read})

    def add_embedded(self, document: pdfium.PdfDocument) -> None:
        """Add the files of the document as a whole. Raises ExtractionLimit."""
        for number in range(document.count_attachments()):
            try:
                self._add(document.get_attachment(number))
            except pdfium.PdfiumError:
                self._not_read.append(f"number {number + 1}")

    def add(self, document: pdfium.PdfDocument, handles: Iterable[Any]) -> None:
        """Add files that notes on a page attach. Raises ExtractionLimit."""
        for handle in handles:
            self._add(pdfium.PdfAttachment(handle, document))

    def all(self) -> tuple[Attachment, ...]:
        """Return the files, in order."""
        return self._members.all()

    def _add(self, file: pdfium.PdfAttachment) -> None:
        name = ""
        try:
            name = file.get_name()
            content = bytes(file.get_data())
        except pdfium.PdfiumError:
            self._not_read.append(name)
            return
        key = (name, hashlib.sha256(content).digest())
        if key not in self._added:  # a page may attach a file of the document as a whole
            self._added.add(key)
            self._members.add(name, content)
