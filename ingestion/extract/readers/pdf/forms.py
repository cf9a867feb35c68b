"""The annotations of a PDF's pages: values of forms as lines near their fields, attached files."""

import ctypes
import logging
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import pypdfium2 as pdfium
import pypdfium2.raw as raw

from callslip.ingestion.extract.readers.pdf.calls import unchecked
from callslip.ingestion.extract.readers.pdf.geometry import Edges, Shown
from callslip.ingestion.extract.readers.pdf.outline import Line, LinePart

logging.getLogger("pypdfium2").setLevel(logging.ERROR)  # it warns of each XFA form

MOST_ANNOTATIONS = 20_000
"""The maximum number of annotations of a page that are read."""

USUAL_SIZE = 10.0
"""The type size of a value on a page without text, in points."""

_annotation, _subtype = unchecked(raw.FPDFPage_GetAnnot), unchecked(raw.FPDFAnnot_GetSubtype)
_close = unchecked(raw.FPDFPage_CloseAnnot)

_HIDDEN = raw.FPDF_ANNOT_FLAG_HIDDEN | raw.FPDF_ANNOT_FLAG_NOVIEW
_PASSWORD = 1 << 13
"""The flag of a field whose value is not shown."""

_BUTTONS = (raw.FPDF_FORMFIELD_CHECKBOX, raw.FPDF_FORMFIELD_RADIOBUTTON)
_WRITTEN = (raw.FPDF_FORMFIELD_TEXTFIELD, raw.FPDF_FORMFIELD_COMBOBOX, raw.FPDF_FORMFIELD_LISTBOX)
_COMMENTS = (raw.FPDF_ANNOT_TEXT, raw.FPDF_ANNOT_FREETEXT)

_INDEX = re.compile(r"\[\d+\]")
_WORD = re.compile(r"[^\W\d_]{2}")
_NO_VALUE = re.compile(r"(?i)^(yes|on|true|\W*|\d+)$")
"""Values of checked buttons that say no more than that they are checked."""


class Field(NamedTuple):
    """A field that is filled in: its label (empty if it has none), its value, and where it is."""

    label: str
    value: str
    edges: Edges


class Notes:
    """Reads the annotations of pages: fields of forms, attached files and comments.

    `comments`, `secret` and `hidden` count what is left out: comments, values of password fields
    and of fields that are not shown.
    """

    def __init__(self, document: pdfium.PdfDocument) -> None:
        """Open the form, if the document has one; call it before the first page is read."""
        self._form: Any = None
        if document.get_formtype() != raw.FORMTYPE_NONE:
            document.init_forms()
            self._form = document.formenv.raw if document.formenv else None
        self.comments = self.secret = self.hidden = 0

    def read(self, page: pdfium.PdfPage, shown: Shown) -> tuple[list[Field], list[Any]]:
        """Return the fields of a page that are filled in, and handles of files attached to it."""
        fields: list[Field] = []
        files: list[Any] = []
        for number in range(min(raw.FPDFPage_GetAnnotCount(page.raw), MOST_ANNOTATIONS)):
            annotation = _annotation(page.raw, number)
            if not annotation:
                continue
            kind = _subtype(annotation)
            if kind == raw.FPDF_ANNOT_WIDGET and self._form:
                fields += self._field(annotation, shown)
            elif kind == raw.FPDF_ANNOT_FILEATTACHMENT:
                files.append(raw.FPDFAnnot_GetFileAttachment(annotation))
            elif kind in _COMMENTS:
                self.comments += 1
            _close(annotation)
        return list(dict.fromkeys(fields)), [file for file in files if file]

    def _field(self, annotation: Any, shown: Shown) -> Iterator[Field]:
        """Yield the field of an annotation if it is filled in and shown."""
        kind = raw.FPDFAnnot_GetFormFieldType(self._form, annotation)
        if kind in _BUTTONS and raw.FPDFAnnot_IsChecked(self._form, annotation):
            value = self._text(raw.FPDFAnnot_GetFormFieldExportValue, annotation)
            value = "yes" if _NO_VALUE.search(value) else value
        elif kind in _WRITTEN:
            value = self._text(raw.FPDFAnnot_GetFormFieldValue, annotation)
        else:
            return
        if not value:
            return
        flags = raw.FPDFAnnot_GetFormFieldFlags(self._form, annotation)
        if kind == raw.FPDF_FORMFIELD_TEXTFIELD and flags & _PASSWORD:
            self.secret += 1
            return
        if raw.FPDFAnnot_GetFlags(annotation) & _HIDDEN:
            self.hidden += 1
            return
        box = raw.FS_RECTF()
        raw.FPDFAnnot_GetRect(annotation, box)
        yield Field(
            self._label(annotation), value, shown.box(box.left, box.top, box.right, box.bottom)
        )

    def _label(self, annotation: Any) -> str:
        """Return what the form calls a field: its description, or the last part of its name."""
        label = self._text(raw.FPDFAnnot_GetFormFieldAlternateName, annotation)
        if not label:
            name = self._text(raw.FPDFAnnot_GetFormFieldName, annotation)
            label = _INDEX.sub("", name).rpartition(".")[2].replace("_", " ").strip()
        return label.rstrip(" :") if _WORD.search(label) else ""

    def _text(self, get: Callable[..., int], annotation: Any) -> str:
        length = get(self._form, annotation, None, 0)
        if length <= 2:
            return ""
        buffer = ctypes.create_string_buffer(length)
        units = ctypes.cast(buffer, ctypes.POINTER(ctypes.c_ushort))
        get(self._form, annotation, units, length)
        return " ".join(buffer.raw.decode("utf-16-le", "replace").rstrip("\0").split())


def with_values(lines: Sequence[Line], fields: Sequence[Field], shown: Shown) -> list[Line]:
    """Return the lines of a page with those of its fields.

    A field follows the line that it is beside, or else the lowest line above it.
    """
    following: dict[int, list[tuple[Edges, Line]]] = {}
    size = max((line.size for line in lines), key=[x.size for x in lines].count, default=USUAL_SIZE)
    for field in fields:
        at = _anchor(lines, field.edges)
        text = f"{field.label}: {field.value}" if field.label else field.value
        down, middle = field.edges[3], _middle(field.edges)
        if at >= 0:
            beside = _middle(_edges(lines[at])) - size / 2 < middle
            below = middle - _middle(_edges(lines[at]))
            down = lines[at].down + (below if beside and below > size else 0.0)
        part = LinePart(0, len(text), field.edges, None)
        line = Line(text, size, down, False, False, True, shown.turn, None, (part,))
        following.setdefault(at, []).append((field.edges, line))
    placed = [line for _, line in sorted(following.get(-1, ()), key=_in_order)]
    for at, line in enumerate(lines):
        placed.append(line)
        placed += [each for _, each in sorted(following.get(at, ()), key=_in_order)]
    return placed


def _anchor(lines: Sequence[Line], edges: Edges) -> int:
    """Return the index of the line that a field follows; -1 if there is none beside or above it."""
    middle = _middle(edges)
    beside, above = (-1, 0.0), (-1, 0.0)
    for at, line in enumerate(lines):
        if not line.parts or line.hyphen:
            continue
        left, top, _, bottom = _edges(line)
        if top <= middle <= bottom or edges[1] <= (top + bottom) / 2 <= edges[3]:
            if left <= edges[0] and left >= beside[1]:
                beside = (at, left)
        elif bottom <= middle and bottom >= above[1]:
            above = (at, bottom)
    return beside[0] if beside[0] >= 0 else above[0]


def _edges(line: Line) -> Edges:
    return line.parts[-1].edges


def _middle(edges: Edges) -> float:
    return (edges[1] + edges[3]) / 2


def _in_order(item: tuple[Edges, Line]) -> tuple[float, float]:
    return round(item[0][1]), item[0][0]
