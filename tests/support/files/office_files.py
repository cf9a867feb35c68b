"""Small files of office formats, made here."""

import io
import struct
import zipfile
import zlib
from collections.abc import Mapping

import openpyxl
import pptx
from pptx.util import Inches

ODF = "urn:oasis:names:tc:opendocument:xmlns:"
HP = "http://www.hancom.co.kr/hwpml/2011/paragraph"


def zip_file(parts: Mapping[str, bytes | str]) -> bytes:
    """An archive of these files."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def workbook(**sheets: list[list[object]]) -> bytes:
    """Sheets by name, each a list of rows."""
    book = openpyxl.Workbook()
    book.remove(book.worksheets[0])
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
    buffer = io.BytesIO()
    book.save(buffer)
    return buffer.getvalue()


def deck() -> bytes:
    """Two slides: one with a table and notes, one with text in a group."""
    made = pptx.Presentation()
    first = made.slides.add_slide(made.slide_layouts[5])
    first.shapes.title.text = "첫 장"
    table = first.shapes.add_table(2, 2, Inches(1), Inches(2), Inches(4), Inches(1)).table
    for at, word in enumerate(["name", "year", "callslip", "2026"]):
        table.cell(at // 2, at % 2).text = word
    first.notes_slide.notes_text_frame.text = "Say this aloud."
    second = made.slides.add_slide(made.slide_layouts[5])
    second.shapes.title.text = "Second"
    group = second.shapes.add_group_shape()
    box = group.shapes.add_textbox(Inches(1), Inches(1), Inches(2), Inches(1))
    box.text_frame.text = "in a group"
    buffer = io.BytesIO()
    made.save(buffer)
    return buffer.getvalue()


def open_document(body: str, mime: str = "text") -> bytes:
    """An OpenDocument file with this body."""
    names = " ".join(
        f'xmlns:{short}="{ODF}{name}:1.0"'
        for short, name in [
            ("office", "office"), ("text", "text"), ("table", "table"), ("draw", "drawing"),
        ]
    )  # fmt: skip
    content = f"<office:document-content {names}><office:body>{body}</office:body>"
    return zip_file(
        {
            "mimetype": f"application/vnd.oasis.opendocument.{mime}",
            "content.xml": f"{content}</office:document-content>",
        }
    )


def epub(*chapters: str, encrypted: str = "") -> bytes:
    """A book whose spine names the chapters in reverse of their names."""
    items = "".join(f'<item id="c{n}" href="c{n}.xhtml"/>' for n in range(len(chapters)))
    spine = "".join(f'<itemref idref="c{n}"/>' for n in reversed(range(len(chapters))))
    dc = "http://purl.org/dc/elements/1.1/"
    parts = {
        "mimetype": "application/epub+zip",
        "META-INF/container.xml": '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:'
        'container"><rootfiles><rootfile full-path="text/book.opf"/></rootfiles></container>',
        "text/book.opf": f'<package xmlns="http://www.idpf.org/2007/opf" xmlns:dc="{dc}"><metadata>'
        f"<dc:title>The Book</dc:title><dc:creator>A. Writer</dc:creator></metadata><manifest>"
        f"{items}</manifest><spine>{spine}</spine></package>",
    }
    for n, chapter in enumerate(chapters):
        parts[f"text/c{n}.xhtml"] = f"<html><body>{chapter}</body></html>"
    if encrypted:
        parts["META-INF/encryption.xml"] = (
            '<e xmlns:x="http://www.w3.org/2001/04/xmlenc#">'
            f'<x:CipherReference URI="{encrypted}"/></e>'
        )
    return zip_file(parts)


def hwpx(*paragraphs: str) -> bytes:
    """A document of one section; a paragraph may hold XML."""
    body = "".join(f'<hp:p xmlns:hp="{HP}" {p}</hp:p>' for p in paragraphs)
    style = '<h><style id="3" name="개요 2"/></h>'
    return zip_file(
        {
            "mimetype": "application/hwp+zip",
            "Contents/header.xml": style,
            "Contents/section0.xml": f"<sec>{body}</sec>",
        }
    )


def hwp_record(tag: int, level: int, payload: bytes) -> bytes:
    """One record of HWP 5."""
    if len(payload) < 0xFFF:
        return struct.pack("<I", tag | level << 10 | len(payload) << 20) + payload
    return struct.pack("<II", tag | level << 10 | 0xFFF << 20, len(payload)) + payload


def deflated(content: bytes) -> bytes:
    """As HWP 5 packs its streams."""
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(content) + packer.flush()
