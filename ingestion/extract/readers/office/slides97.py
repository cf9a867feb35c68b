"""PPT: the slides of PowerPoint 97 to 2003, by their records ([MS-PPT] 2.1.2, 2.4.14)."""

import io
import struct
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import olefile

from callslip.config.settings import ExtractSettings
from callslip.errors import BrokenFile, NeedsPassword
from callslip.ingestion.extract.composer import Composer
from callslip.ingestion.extract.readers.office.ole_title import title_of
from callslip.ingestion.extract.sniff import PPT
from callslip.ingestion.left_out import left_out
from callslip.ingestion.values import ExtractedText

_STREAM, _CURRENT_USER = "PowerPoint Document", "Current User"
_ENCRYPTED_TOKEN = 0xF3D1C4DF
_USER_EDIT, _DIRECTORY = 0x0FF5, 0x1772
_SLIDE, _NOTES, _SLIDE_LIST, _SLIDE_HEAD = 0x03EE, 0x03F0, 0x0FF0, 0x03F3
_TEXT_TYPE, _WIDE_TEXT, _BYTE_TEXT, _TEXT_OF_LIST = 0x0F9F, 0x0FA0, 0x0FA8, 0x0F9E
_CLIENT_TEXT, _SHAPE_HEAD, _PICTURE_FRAME = 0xF00D, 0xF00A, 75
_COMMENT = 0x2EE0
_TITLES = (0, 6)
_NOTES_TEXT = 2
_SLIDES, _NOTES_LIST = 0, 2
"""Instances of the lists of the document: the text of slides, and that of their notes."""

MOST_EDITS = 10_000
"""The maximum number of saved edits, each of which points to the one before."""

MOST_DEPTH = 40
"""The maximum depth of records within records; shapes in groups take three levels each."""

_MARKS = str.maketrans({"\r": "\n", "\x0b": "\n", "\x00": None})


@dataclass(frozen=True)
class _Record:
    kind: int
    instance: int
    start: int
    end: int
    holds_records: bool


@dataclass
class _Listed:
    """A slide or its notes in a list of the document, with the text of its placeholders."""

    reference: int
    number: int
    texts: list[tuple[int, str]] = field(default_factory=list)


def read(data: bytes, limits: ExtractSettings) -> ExtractedText:
    """Read every slide in the order of the show: its title, its other text, then its notes.

    Only the last saved edit of a slide counts. The text of masters is left out. Raises
    NeedsPassword, or BrokenFile if the records do not lead to a document.
    """
    with olefile.OleFileIO(io.BytesIO(data)) as ole:
        content = ole.openstream(_STREAM).read()
        user = ole.openstream(_CURRENT_USER).read(20) if ole.exists(_CURRENT_USER) else b""
        title = title_of(ole)
    if len(user) < 20:
        raise BrokenFile("the presentation does not say where its document begins")
    token, edit = struct.unpack_from("<II", user, 12)
    if token == _ENCRYPTED_TOKEN:
        raise NeedsPassword("the presentation is encrypted")
    return _Deck(content, edit).text(limits, title)


class _Deck:
    def __init__(self, content: bytes, edit: int) -> None:
        self._content = content
        self._offsets, document = self._directory(edit)
        lists = {
            record.instance: list(self._listed(record))
            for record in self._within(self._at(document))
            if record.kind == _SLIDE_LIST
        }
        self._slides = lists.get(_SLIDES, [])
        self._notes = {notes.number: notes for notes in lists.get(_NOTES_LIST, [])}
        self._left_out: Counter[str] = Counter()

    def text(self, limits: ExtractSettings, title: str | None) -> ExtractedText:
        """Compose the pages."""
        composer = Composer(limits)
        for slide in self._slides:
            composer.page()
            record = self._at(slide.reference)
            if record is None or record.kind != _SLIDE:
                self._left_out["damaged slides"] += 1
            texts = list(self._texts(record, slide.texts))
            for kind, text in texts or slide.texts:
                if kind in _TITLES:
                    composer.heading(text, 1)
            for kind, text in texts or slide.texts:
                if kind not in _TITLES:
                    composer.paragraph(text)
            for text in self._notes_of(record):
                composer.paragraph(text)
        return composer.text(PPT, title, warnings=left_out(self._left_out))

    def _notes_of(self, slide: _Record | None) -> Iterator[str]:
        """Yield the notes of a slide, whose number is in the slide's first record."""
        head = next(self._within(slide), None)
        if head is None or head.end - head.start < 20:
            return
        number = struct.unpack_from("<I", self._content, head.start + 16)[0]
        notes = self._notes.get(number)
        if number and notes is not None:
            for kind, text in self._texts(self._at(notes.reference), notes.texts):
                if kind == _NOTES_TEXT:
                    yield text

    def _directory(self, edit: int) -> tuple[dict[int, int], int]:
        """Return the offset of each object by its number, and the number of the document.

        The newest edit comes first and counts before the older ones.
        """
        offsets: dict[int, int] = {}
        document = None
        seen: set[int] = set()
        while edit and edit not in seen and len(seen) < MOST_EDITS:
            seen.add(edit)
            record = self._record(edit, len(self._content))
            if record is None or record.kind != _USER_EDIT or record.end - record.start < 20:
                break
            _, _, before, directory, number = struct.unpack_from(
                "<IIIII", self._content, record.start
            )
            document = number if document is None else document
            for key, offset in self._entries(directory):
                offsets.setdefault(key, offset)
            edit = before
        if document is None:
            raise BrokenFile("the presentation has no saved edit")
        return offsets, document

    def _entries(self, directory: int) -> Iterator[tuple[int, int]]:
        record = self._record(directory, len(self._content))
        if record is None or record.kind != _DIRECTORY:
            return
        at = record.start
        while at + 4 <= record.end:
            head = struct.unpack_from("<I", self._content, at)[0]
            first, count = head & 0xFFFFF, head >> 20
            count = min(count, (record.end - at - 4) // 4)
            for number in range(count):
                yield (
                    first + number,
                    struct.unpack_from("<I", self._content, at + 4 + 4 * number)[0],
                )
            at += 4 + 4 * count

    def _listed(self, record: _Record) -> Iterator[_Listed]:
        """Yield the slides of a list, each with the texts that follow it."""
        current: _Listed | None = None
        kind = 0
        for inner in self._within(record):
            if inner.kind == _SLIDE_HEAD and inner.end - inner.start >= 16:
                if current:
                    yield current
                reference, _, _, number = struct.unpack_from("<IIiI", self._content, inner.start)
                current = _Listed(reference, number)
            elif inner.kind == _TEXT_TYPE:
                kind = self._number(inner)
                if current:
                    current.texts.append((kind, ""))
            elif inner.kind in (_WIDE_TEXT, _BYTE_TEXT) and current and current.texts:
                current.texts[-1] = (kind, self._characters(inner))
        if current:
            yield current

    def _texts(
        self, record: _Record | None, listed: list[tuple[int, str]], depth: int = 0
    ) -> Iterator[tuple[int, str]]:
        """Yield the kind and the text of every shape, in the order of drawing."""
        if depth > MOST_DEPTH:
            self._left_out["shapes that are nested too deeply"] += 1
            return
        kind = 4  # other text
        for inner in self._within(record):
            if inner.kind == _TEXT_TYPE:
                kind = self._number(inner)
            elif inner.kind in (_WIDE_TEXT, _BYTE_TEXT):
                yield kind, self._characters(inner)
            elif inner.kind == _TEXT_OF_LIST:
                number = self._number(inner)
                if number < len(listed):
                    yield listed[number]
            elif inner.kind == _SHAPE_HEAD and inner.instance == _PICTURE_FRAME:
                self._left_out["pictures"] += 1
            elif inner.kind == _COMMENT:
                self._left_out["comments"] += 1
            elif inner.holds_records or inner.kind == _CLIENT_TEXT:
                yield from self._texts(inner, listed, depth + 1)

    def _at(self, number: int) -> _Record | None:
        offset = self._offsets.get(number)
        return None if offset is None else self._record(offset, len(self._content))

    def _record(self, at: int, end: int) -> _Record | None:
        if at + 8 > end:
            return None
        head, kind, size = struct.unpack_from("<HHI", self._content, at)
        inside = head & 0xF == 0xF
        return _Record(kind, head >> 4, at + 8, min(at + 8 + size, end), inside)

    def _within(self, record: _Record | None) -> Iterator[_Record]:
        at = record.start if record else 0
        while record and (inner := self._record(at, record.end)):
            yield inner
            at = inner.end

    def _number(self, record: _Record) -> int:
        if record.end - record.start < 4:
            return 0
        number: int = struct.unpack_from("<I", self._content, record.start)[0]
        return number

    def _characters(self, record: _Record) -> str:
        content = self._content[record.start : record.end]
        wide = record.kind == _WIDE_TEXT
        text = content.decode("utf-16-le" if wide else "latin-1", "replace")
        return text.translate(_MARKS)
