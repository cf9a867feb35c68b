"""Formulas and notes in place, and warnings that name what a reader leaves out."""

import io
import struct
import zipfile

import docx
import pptx
import pytest
from docx.oxml import parse_xml
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree
from office_files import open_document, workbook, zip_file
from old_office_files import ole
from PIL import Image
from pptx.util import Inches

from callslip.config.settings import ExtractSettings
from callslip.errors import GarbageText, NeedsPassword, UnsupportedType
from callslip.ingestion.extract import extract
from callslip.ingestion.extract.readers.office.formulas import linear
from callslip.ingestion.left_out import left_out
from callslip.ingestion.values import ExtractedText

W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
M = "http://schemas.openxmlformats.org/officeDocument/2006/math"
NAMES = f'xmlns:w="{W}" xmlns:m="{M}"'


def read(data: bytes, filename: str = "file") -> ExtractedText:
    return extract(data, filename, ExtractSettings())


def run(text: str) -> str:
    return f"<m:r><m:rPr><m:sty m:val='p'/></m:rPr><m:t>{text}</m:t></m:r>"


def e(inside: str) -> str:
    return f"<m:e>{inside}</m:e>"


X, Y = run("x"), run("y")
SUM = run("a") + run("+") + run("b")
CASES = [
    (f"<m:sSup>{e(X)}<m:sup>{run('2')}</m:sup></m:sSup>", "x^2"),
    (f"<m:sSub>{e(X)}<m:sub>{run('i')}</m:sub></m:sSub>", "x_i"),
    (
        f"<m:sSubSup>{e(X)}<m:sub>{run('i')}{run('+1')}</m:sub><m:sup>{run('2')}</m:sup></m:sSubSup>",
        "x_(i+1)^2",
    ),
    (f"<m:f><m:num>{SUM}</m:num><m:den>{run('c')}</m:den></m:f>", "(a+b)/c"),
    (f"<m:f><m:num>{run('1')}</m:num><m:den>{run('12.5')}</m:den></m:f>", "1/12.5"),
    (
        f"<m:f><m:fPr><m:type m:val='noBar'/></m:fPr><m:num>{run('n')}</m:num><m:den>{run('k')}"
        "</m:den></m:f>",
        "binom(n, k)",
    ),
    (f"<m:rad><m:radPr><m:degHide m:val='1'/></m:radPr><m:deg/>{e(SUM)}</m:rad>", "sqrt(a+b)"),
    (f"<m:rad><m:deg>{run('3')}</m:deg>{e(X)}</m:rad>", "root(3, x)"),
    (
        f"<m:nary><m:naryPr><m:chr m:val='∑'/></m:naryPr><m:sub>{run('i=1')}</m:sub>"
        f"<m:sup>{run('n')}</m:sup>{e(X)}</m:nary>",
        "sum_(i=1)^n x",
    ),
    (f"<m:nary><m:sub>{run('0')}</m:sub><m:sup>{run('1')}</m:sup>{e(X)}</m:nary>", "int_0^1 x"),
    (f"<m:d>{e(SUM)}</m:d>", "(a+b)"),
    (
        f"<m:sSup>{e(f'<m:d>{e(SUM)}</m:d>')}<m:sup>{run('2')}</m:sup></m:sSup>",
        "(a+b)^2",
    ),
    (
        "<m:d><m:dPr><m:begChr m:val='['/><m:sepChr m:val=';'/><m:endChr m:val=')'/></m:dPr>"
        f"{e(X)}{e(Y)}</m:d>",
        "[x;y)",
    ),
    (f"<m:func><m:fName>{run('sin')}</m:fName>{e(X)}</m:func>", "sin(x)"),
    (
        f"<m:func><m:fName><m:limLow>{e(run('lim'))}<m:lim>{run('x→0')}</m:lim></m:limLow>"
        f"</m:fName>{e(X)}</m:func>",
        "lim_(x→0)(x)",
    ),
    (f"<m:acc><m:accPr><m:chr m:val='\u20d7'/></m:accPr>{e(X)}</m:acc>", "vec(x)"),
    (f"<m:acc>{e(X)}</m:acc>", "hat(x)"),
    (f"<m:bar><m:barPr><m:pos m:val='top'/></m:barPr>{e(X)}</m:bar>", "bar(x)"),
    (
        f"<m:d><m:dPr><m:begChr m:val='['/><m:endChr m:val=']'/></m:dPr>"
        f"{e(f'<m:m><m:mr>{e(X)}{e(Y)}</m:mr><m:mr>{e(Y)}{e(X)}</m:mr></m:m>')}</m:d>",
        "[x, y; y, x]",
    ),
    (
        "<m:d><m:dPr><m:begChr m:val='{'/><m:endChr m:val=''/></m:dPr>"
        f"{e(f'<m:eqArr>{e(X)}{e(Y)}</m:eqArr>')}</m:d>",
        "{x; y",
    ),
    (f"<m:borderBox>{e(run('𝐸=𝑚'))}</m:borderBox>", "E=m"),
    (f"<m:sPre><m:sub>{run('1')}</m:sub><m:sup>{run('2')}</m:sup>{e(run('H'))}</m:sPre>", "_1^2H"),
]


@pytest.mark.parametrize(("formula", "text"), CASES, ids=[text for _, text in CASES])
def test_a_formula_is_linear_text(formula: str, text: str) -> None:
    assert linear(etree.fromstring(f"<m:oMath {NAMES}>{formula}</m:oMath>")) == text


@given(st.recursive(
    st.sampled_from([X, Y, run("2"), ""]),
    lambda inner: st.one_of(
        st.builds(lambda a, b: f"<m:f><m:num>{a}</m:num><m:den>{b}</m:den></m:f>", inner, inner),
        st.builds(lambda a, b: f"<m:sSup>{e(a)}<m:sup>{b}</m:sup></m:sSup>", inner, inner),
        st.builds(lambda a: f"<m:rad><m:deg/>{e(a)}</m:rad>", inner),
        st.builds(lambda a, b: f"<m:d>{e(a)}{e(b)}</m:d>", inner, inner),
        st.builds(lambda a, b: a + b, inner, inner),
    ),
    max_leaves=12,
))  # fmt: skip
@settings(deadline=None)
def test_every_number_and_name_of_a_formula_is_in_its_text(formula: str) -> None:
    text = linear(etree.fromstring(f"<m:oMath {NAMES}>{formula}</m:oMath>"))
    for name in "xy2":
        assert text.count(name) == formula.count(f"<m:t>{name}</m:t>")
    assert text.count("(") == text.count(")")


def test_formulas_of_a_letter_stand_in_their_sentence_and_alone_in_a_line() -> None:
    document = docx.Document()
    paragraph = document.add_paragraph("The area is ")
    paragraph._p.append(parse_xml(f"<m:oMath {NAMES}>{CASES[0][0]}</m:oMath>"))
    paragraph.add_run(" for each.")
    alone = f"<m:oMathPara {NAMES}><m:oMath>{CASES[3][0]}</m:oMath></m:oMathPara>"
    document.add_paragraph("It follows:")._p.append(parse_xml(alone))
    table = document.add_table(1, 2)
    table.cell(0, 0).text = "mean"
    inside = f"<m:oMath {NAMES}>{CASES[17][0]}</m:oMath>"
    table.cell(0, 1).paragraphs[0]._p.append(parse_xml(inside))
    buffer = io.BytesIO()
    document.save(buffer)
    text = read(buffer.getvalue(), "a.docx")
    assert text.text.strip().split("\n\n") == [
        "The area is x^2 for each.",
        "It follows:\n(a+b)/c",
        "mean | bar(x)",
    ]
    assert text.warnings == ()


def letter(body: str, **parts: str) -> bytes:
    """A Word file with this body, and with further parts by their names."""
    document = docx.Document()
    buffer = io.BytesIO()
    document.save(buffer)
    with zipfile.ZipFile(buffer) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    own = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    links, types = "", ""
    for name, content in parts.items():
        files[f"word/{name}.xml"] = f"<w:{name} {NAMES}>{content}</w:{name}>".encode()
        kind = name.rstrip("0123456789")
        links += f'<Relationship Id="{name}" Type="{own}/{kind}" Target="{name}.xml"/>'
        types += (
            f'<Override PartName="/word/{name}.xml" ContentType="application/vnd.openxmlformats'
            f'-officedocument.wordprocessingml.{kind}+xml"/>'
        )
    rels, kinds = "word/_rels/document.xml.rels", "[Content_Types].xml"
    files[rels] = files[rels].replace(b"</Relationships>", f"{links}</Relationships>".encode())
    files[kinds] = files[kinds].replace(b"</Types>", f"{types}</Types>".encode())
    files["word/document.xml"] = (
        f"<w:document {NAMES}><w:body>{body}</w:body></w:document>".encode()
    )
    return zip_file(files)


def p(text: str, more: str = "") -> str:
    return f"<w:p><w:r><w:t>{text}</w:t></w:r>{more}</w:p>"


def test_a_note_follows_the_paragraph_that_has_its_mark() -> None:
    note = '<w:r><w:footnoteReference w:id="2"/></w:r>'
    end = '<w:r><w:endnoteReference w:id="1"/></w:r>'
    separator = f'<w:footnote w:id="0" w:type="separator">{p("-")}</w:footnote>'
    data = letter(
        p("First.", note) + p("Second.", end) + p("Third."),
        footnotes=f'{separator}<w:footnote w:id="2">{p("Decree 17.")}</w:footnote>',
        endnotes=f'<w:endnote w:id="1">{p("See page 5.")}</w:endnote>',
    )
    text = read(data, "a.docx").text
    assert text.split() == ["First.", "Decree", "17.", "Second.", "See", "page", "5.", "Third."]


def test_what_a_letter_has_beside_its_body_is_counted() -> None:
    data = letter(
        p("Body."),
        comments=f"<w:comment >{p('one')}</w:comment><w:comment >{p('two')}</w:comment>",
        header1=p("running head"),
        footer1="<w:p/>",
    )
    text = read(data, "a.docx")
    assert text.text.strip() == "Body."
    assert text.warnings == ("left out: comments (2), headers and footers (1)",)


def png() -> io.BytesIO:
    buffer = io.BytesIO()
    Image.new("L", (20, 20)).save(buffer, "PNG")
    buffer.seek(0)
    return buffer


def test_pictures_charts_and_formulas_of_slides_are_counted_or_read() -> None:
    made = pptx.Presentation()
    slide = made.slides.add_slide(made.slide_layouts[5])
    slide.shapes.title.text = "Slide"
    slide.shapes.add_picture(png(), Inches(1), Inches(1))
    box = slide.shapes.add_textbox(Inches(1), Inches(2), Inches(2), Inches(1))
    box.text_frame.text = "mean "
    drawing = "http://schemas.microsoft.com/office/drawing/2010/main"
    compatible = "http://schemas.openxmlformats.org/markup-compatibility/2006"
    math = f'<a14:m xmlns:a14="{drawing}"><m:oMath>{CASES[17][0]}</m:oMath></a14:m>'
    box.text_frame.paragraphs[0]._p.append(parse_xml(f"<w:x {NAMES}>{math}</w:x>")[0])
    # As PowerPoint saves it: the shape is a choice, its picture the alternative.
    whole = parse_xml(
        f'<mc:AlternateContent xmlns:mc="{compatible}"><mc:Choice Requires="a14"/>'
        "<mc:Fallback/></mc:AlternateContent>"
    )
    box._element.addprevious(whole)
    whole[0].append(box._element)
    buffer = io.BytesIO()
    made.save(buffer)
    text = read(buffer.getvalue(), "a.pptx")
    assert text.text.split("\n\n")[:2] == ["Slide", "mean bar(x)"]
    assert text.warnings == ("left out: pictures (1)",)


def test_what_a_workbook_has_beside_its_cells_is_counted() -> None:
    data = workbook(S=[["a", "b"], [1, 2]])
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    parts["xl/media/image1.png"] = png().getvalue()
    parts["xl/comments1.xml"] = b'<comments><comment ref="A1"/></comments>'
    parts["xl/drawings/drawing1.xml"] = b"<xdr:txBody><a:t>boxed</a:t></xdr:txBody>"
    warnings = read(zip_file(parts), "a.xlsx").warnings
    assert warnings == ("left out: pictures (1), comments (1), text boxes (1)",)


def test_comments_pictures_and_objects_of_open_documents_are_counted() -> None:
    body = (
        "<office:text><text:p>Body<office:annotation><text:p>hm</text:p></office:annotation>"
        "<draw:frame><draw:image/></draw:frame><draw:frame><draw:object/></draw:frame></text:p>"
        "</office:text>"
    )
    text = read(open_document(body), "a.odt")
    assert text.text.strip() == "Body"
    assert text.warnings == ("left out: comments (1), pictures (1), embedded objects (1)",)


def test_groups_that_rich_text_loses_are_counted() -> None:
    source = rb"{\rtf1 Body{\footnote note}{\*\annotation c}{\pict\wmetafile8 00}{\header\pard h}}"
    text = read(source, "a.rtf")
    assert text.text.strip() == "Body"
    expected = "pictures (1), footnotes (1), comments (1), headers and footers (1)"
    assert text.warnings == (f"left out: {expected}",)


def doc(*stories: str) -> bytes:
    """A Word 97 file: the stories in the order of the FIB, in one piece of UTF-16."""
    text = "".join(stories).encode("utf-16-le")
    clx = struct.pack("<BI", 2, 16) + struct.pack("<II", 0, len(text) // 2)
    clx += struct.pack("<HIH", 0, 1024, 0)
    main = bytearray(1024)
    struct.pack_into("<H", main, 0x0A, 0x0200)
    struct.pack_into("<8I", main, 0x4C, *(len(story) for story in stories))
    struct.pack_into("<II", main, 0x01A2, 0, len(clx))
    return ole({"WordDocument": bytes(main) + text, "1Table": clx})


def test_notes_and_boxes_of_word_97_follow_its_text_and_the_rest_is_counted() -> None:
    text = read(
        doc("Body\x02.\rPicture: \x01\r", "\x02 A note.\r", "head\r\r", "", "\x05 c\r", "end\r",
            "boxed\r", ""),
        "a.doc",
    )  # fmt: skip
    assert text.text.split("\n\n")[:-1] == ["Body.", "Picture:", "A note.", "end", "boxed"]
    expected = "pictures and drawn objects (1), headers and footers (1), comments (1)"
    assert text.warnings == (f"left out: {expected}",)


def test_files_of_an_operating_system_in_an_archive_are_counted() -> None:
    text = read(zip_file({"a.txt": b"a", "__MACOSX/._a.txt": b"x", ".DS_Store": b"x"}), "a.zip")
    assert [each.name for each in text.attachments] == ["a.txt"]
    assert text.warnings == ("left out: files of an operating system (2)",)


@pytest.mark.parametrize(
    ("data", "name", "advice"),
    [
        (b"GIF89a" + bytes(40), "a.gif", "PNG, JPEG, TIFF"),
        (b"ID3\x03" + bytes(200), "a.mp3", "transcript"),
        (b"\x1f\x8b\x08" + bytes(200), "a.tar.gz", "ZIP"),
        (b"\x7fELF\x02\x01\x01" + bytes(200), "a.out", "leave it out"),
    ],
)
def test_the_advice_for_what_is_not_read_fits_its_type(data: bytes, name: str, advice: str) -> None:
    with pytest.raises(UnsupportedType) as raised:
        read(data, name)
    assert advice in raised.value.advice


def test_no_advice_for_a_mail_or_a_text_speaks_of_ocr() -> None:
    meaningless = "\ue000\ue001 " * 50
    for name in ("a.eml", "a.txt", "a.html"):
        with pytest.raises(GarbageText) as raised:
            read(f"Subject: x\n\n{meaningless}".encode() if name == "a.eml" else
                 meaningless.encode(), name)  # fmt: skip
        assert "OCR" not in raised.value.advice
        assert "UTF-8" in raised.value.advice
    with pytest.raises(NeedsPassword) as encrypted:
        read(
            b"Subject: x\nContent-Type: multipart/encrypted; boundary=b\n\n--b\n\nx\n--b--\n",
            "m.eml",
        )
    assert "key" in encrypted.value.advice


def test_a_warning_names_ten_pages_at_most_and_the_number_of_all() -> None:
    assert left_out({"pictures": 0}, {"pages": []}) == ()
    assert left_out({"signs": 1234, "pictures": 1}, {"pages": range(1, 13)}) == (
        "left out: pages (12: 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 …), signs (1,234), pictures (1)",
    )
