"""The text and the data of an XFA form, whose PDF page only says "Please wait..."."""

import ctypes
from collections import defaultdict, deque
from collections.abc import Iterator
from contextlib import suppress

import pypdfium2 as pdfium
import pypdfium2.raw as raw
from lxml import etree

from callslip.errors import BrokenFile
from callslip.ingestion.extract.composer import Composer

_PARSER = etree.XMLParser(resolve_entities=False, no_network=True)


def is_dynamic(document: pdfium.PdfDocument) -> bool:
    """Whether the pages of a form are made from its XFA, so that those of the PDF say nothing."""
    return bool(document.get_formtype() == raw.FORMTYPE_XFA_FULL)


def put(document: pdfium.PdfDocument, composer: Composer) -> None:
    """Add the words and the fields of the form in its order, each field with its value.

    Data that no field shows follow, with their names. Raises BrokenFile if the form has no data
    and no words.
    """
    packets = dict(_packets(document))
    values: dict[str, deque[str]] = defaultdict(deque)
    for name, value in _data(packets.get("datasets")):
        values[name].append(value)
    empty = True
    for label, name in _words(packets.get("template")):
        value = values[name].popleft() if name and values[name] else ""
        text = f"{label.rstrip(' :')}: {value}" if label and value else label or value
        composer.paragraph(text)
        empty = empty and not text
    for name, rest in values.items():
        for value in rest:
            composer.paragraph(f"{name}: {value}")
            empty = False
    if empty:
        raise BrokenFile("the XFA form in the PDF has neither words nor data")


def _packets(document: pdfium.PdfDocument) -> Iterator[tuple[str, etree._Element]]:
    """Yield the packets of the form that are well-formed, by name."""
    for number in range(max(0, raw.FPDF_GetXFAPacketCount(document.raw))):
        length = raw.FPDF_GetXFAPacketName(document.raw, number, None, 0)
        name = ctypes.create_string_buffer(length)
        raw.FPDF_GetXFAPacketName(document.raw, number, name, length)
        size = ctypes.c_ulong()
        raw.FPDF_GetXFAPacketContent(document.raw, number, None, 0, size)
        content = ctypes.create_string_buffer(size.value)
        raw.FPDF_GetXFAPacketContent(document.raw, number, content, size.value, size)
        with suppress(etree.XMLSyntaxError, ValueError):
            yield name.value.decode("utf-8", "replace"), etree.fromstring(content.raw, _PARSER)


def _data(datasets: etree._Element | None) -> Iterator[tuple[str, str]]:
    """Yield the name and the value of each leaf of the data."""
    for data in [] if datasets is None else datasets.iter("{*}data"):
        leaves = (e for e in data.iter(etree.Element) if e is not data and not _is_rich(e))
        for leaf in leaves:
            if all(map(_is_rich, leaf.iterchildren(etree.Element))) and (value := _text(leaf)):
                yield _name(leaf), value
        return


def _is_rich(element: etree._Element) -> bool:
    return str(element.tag).startswith("{http://www.w3.org/1999/xhtml}")


def _words(template: etree._Element | None) -> Iterator[tuple[str, str]]:
    """Yield the text of each drawing and the caption of each field, with the field's name."""
    for element in [] if template is None else template.iter("{*}draw", "{*}field"):
        if element.get("presence") in ("hidden", "invisible"):
            continue
        if etree.QName(element).localname == "draw":
            yield _of(element, "value"), ""
        else:
            yield _of(element, "caption"), element.get("name") or ""


def _of(element: etree._Element, child: str) -> str:
    part = element.find(f"{{*}}{child}")
    return "" if part is None else _text(part)


def _text(element: etree._Element) -> str:
    return " ".join(" ".join(map(str, element.itertext())).split())


def _name(element: etree._Element) -> str:
    return etree.QName(element).localname
