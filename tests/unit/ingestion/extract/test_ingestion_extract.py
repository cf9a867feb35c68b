"""Reading files: types by content, clean text, headings with exact spans, named refusals."""

import email.message
import io
import unicodedata
import zipfile

import docx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from callslip.config.settings import ExtractSettings
from callslip.errors import (
    BrokenFile,
    DocumentError,
    EmptyFile,
    ExtractionLimit,
    GarbageText,
    NeedsPassword,
    NoText,
    UnsupportedType,
)
from callslip.ingestion.extract import extract
from callslip.ingestion.extract.decode import decode
from callslip.ingestion.extract.readers.pdf.layout import Line, assemble
from callslip.ingestion.values import ExtractedText

LIMITS = ExtractSettings()
KOREAN = "대한민국의 모든 국민은 법 앞에 평등하다. 누구든지 차별을 받지 아니한다.\n"


def read(data: bytes, filename: str = "file") -> ExtractedText:
    return extract(data, filename, LIMITS)


def heading_words(text: ExtractedText) -> list[tuple[int, str]]:
    return [(h.level, text.text[h.start : h.end]) for h in text.headings]


# The type is found by content


def test_html_named_as_text_is_html_with_a_warning() -> None:
    text = read(b"<!DOCTYPE html><p>Hello", "page.txt")
    assert text.media_type == "text/html"
    assert text.warnings == ("read as text/html, though the name ends in .txt",)


def test_a_docx_named_as_pdf_is_read_as_docx() -> None:
    assert read(word_file("Body."), "letter.pdf").text.strip() == "Body."


def test_markdown_is_known_by_its_name_only() -> None:
    assert read(b"# Title\n", "a.md").media_type == "text/markdown"
    assert read(b"# Title\n", "a.txt").media_type == "text/plain"


def test_mail_without_a_telling_name_is_known_by_its_fields() -> None:
    data = b"From: a@example.com\nTo: b@example.com\nSubject: Hi\n\nBody\n"
    assert read(data, "message").media_type == "message/rfc822"


def test_text_that_begins_like_a_bitmap_is_text() -> None:
    assert read(b"BM25 is a ranking function.", "bm25").media_type == "text/plain"


@pytest.mark.parametrize("name", ["a.pdf", "a.docx", "a.odt", "a.hwp"])
def test_text_under_a_binary_name_is_a_broken_file(name: str) -> None:
    with pytest.raises(BrokenFile):
        read(b"This is not what its name says", name)


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"GIF89a" + bytes(40), "image/gif"),
        (b"HWP Document File V3.00 \x1a\x01", "Hangul 3"),
        (b"\x7fELF\x02\x01\x01" + bytes(200), "x-executable"),
        (bytes(range(256)) * 40, "binary data"),
    ],
)
def test_what_cannot_be_read_is_named(data: bytes, kind: str) -> None:
    with pytest.raises(UnsupportedType, match=kind):
        read(data)


@pytest.mark.parametrize(
    ("parts", "kind"),
    [
        ({"[Content_Types].xml": b"<Types>visio.drawing.main+xml</Types>"}, "Office file of"),
        ({"mimetype": b"application/vnd.oasis.opendocument.graphics"}, "opendocument.graphics"),
    ],
)
def test_zip_containers_without_a_reader_are_named(parts: dict[str, bytes], kind: str) -> None:
    with pytest.raises(UnsupportedType, match=kind):
        read(zip_file(parts))


def test_an_encrypted_open_document_needs_its_password() -> None:
    parts = {
        "mimetype": b"application/vnd.oasis.opendocument.text",
        "META-INF/manifest.xml": b"<manifest:encryption-data/>",
    }
    with pytest.raises(NeedsPassword):
        read(zip_file(parts))


def test_a_truncated_container_is_broken() -> None:
    with pytest.raises(BrokenFile):
        read(word_file("Body.")[:500], "a.docx")


def test_no_bytes_are_an_empty_file() -> None:
    with pytest.raises(EmptyFile):
        read(b"")


@pytest.mark.parametrize("name", ["a.txt", "a.md", "a.html", "a.eml"])
def test_blank_files_hold_no_text(name: str) -> None:
    with pytest.raises(NoText):
        read(b" \n\t\r\n", name)


# Encodings


@pytest.mark.parametrize(
    "codec", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"]
)
def test_unicode_is_read_with_and_without_a_mark(codec: str) -> None:
    sample = KOREAN * 3 + "And some English words.\n"
    assert read(sample.encode(codec)).text == sample


@pytest.mark.parametrize(
    ("sample", "codec"),
    [
        (KOREAN, "cp949"),
        ("똠방각하와 펲시콜라, 그리고 찦차를 탄 사람들의 이야기.", "cp949"),
        ("Les élèves français étaient très étonnés de la réponse donnée.", "cp1252"),
        ("Съешь же ещё этих мягких французских булок, да выпей чаю.", "cp1251"),
        ("吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。", "cp932"),
    ],
)
def test_older_encodings_are_recognized_and_named(sample: str, codec: str) -> None:
    text = read(sample.encode(codec))
    assert text.text == sample
    assert text.warnings == (f"read as {codec}",)


def test_a_few_broken_bytes_leave_utf8_readable() -> None:
    text = read((KOREAN * 5).encode() + b"\xff" + KOREAN.encode())
    assert text.text.count("\ufffd") == 1
    assert text.warnings == ("read as utf-8: characters that could not be decoded (1)",)


def test_html_follows_its_declared_charset() -> None:
    page = f"<html><meta charset=euc-kr><p>{KOREAN}".encode("cp949")
    assert read(page).text.strip() == KOREAN.strip()


@given(st.binary(max_size=300))
def test_any_bytes_decode(data: bytes) -> None:
    decode(data).text.encode("utf-16", "surrogatepass")


# What comes out is clean


def test_text_comes_out_normalized() -> None:
    dirty = "a\r\nb\rc\u2028d\x00e\x07f\u00adg\ufeffh e\u0301 한글".encode()
    text = read(dirty + b"\nfiller text " * 20).text
    assert text.startswith(
        "a\nb\nc\ndefgh é 한글".replace("한글", unicodedata.normalize("NFC", "한글"))
    )


@given(st.text(), st.sampled_from(["a.txt", "a.md", "a.html", "a.eml"]))
def test_whatever_the_text_the_result_is_clean_or_a_named_error(source: str, name: str) -> None:
    try:
        text = read(source.encode("utf-8", "surrogatepass"), name)
    except DocumentError:
        return
    assert text.text.strip()
    assert unicodedata.is_normalized("NFC", text.text)
    assert not any(unicodedata.category(c) in ("Cc", "Cs") and c not in "\n\t" for c in text.text)
    assert all(text.text[h.start : h.end].strip() for h in text.headings)


def test_spans_move_with_the_text_that_is_cleaned() -> None:
    page = "<h1>Cafe\u0301</h1><p>a\u00adb\u0301c</p><h2>Next</h2><p>x"
    text = read(f"<html>{page}".encode())
    assert heading_words(text) == [(1, "Café"), (2, "Next")]


def test_meaningless_characters_are_garbage() -> None:
    with pytest.raises(GarbageText):
        read(("\ue001\ue002\ue003 \ue004" * 20 + "ok").encode())


def test_text_over_the_bound_is_refused_not_cut() -> None:
    with pytest.raises(ExtractionLimit, match="2,000 characters"):
        extract(b"x" * 2000, "a.txt", ExtractSettings(max_chars=1000))


# HTML, Markdown, DOCX, e-mail, PDF


BLOCKS = (
    *("center", "dd", "details", "dialog", "dir", "dl", "dt", "fieldset", "form"),
    *("legend", "menu", "optgroup", "option", "search", "section", "summary"),
)


@pytest.mark.parametrize("tag", BLOCKS)
def test_elements_that_a_browser_shows_as_blocks_are_lines(tag: str) -> None:
    page = f"<html><p>before</p><{tag}>Lease</{tag}><{tag}>A right</{tag}>after"
    assert read(page.encode()).text.split("\n")[-3:] == ["Lease", "A right", "after"]


def test_a_term_and_its_definition_are_lines() -> None:
    page = b"<html><dl><dt>Lease</dt><dd>A right.</dd><dt>Sweep</dt><dd>A task.</dd></dl><hr>end"
    assert read(page).text.split("\n") == ["Lease", "A right.", "Sweep", "A task.", "end"]


def test_html_headings_have_exact_spans_and_scripts_are_unseen() -> None:
    page = (
        b"<html><head><title> The  Title </title><style>x{}</style></head><body><h1>One</h1>"
        b"<script>var a</script><p>Body.</p><div><h3>Two <b>bold</b></h3></div>"
        b"<table><tr><td><h4>in a cell</h4></td><td>beside</td></tr></table></body></html>"
    )
    text = read(page)
    assert heading_words(text) == [(1, "One"), (3, "Two bold")]
    assert text.title == "The Title"
    assert "var a" not in text.text
    assert "x{}" not in text.text


def test_nothing_is_lost_below_deep_nesting() -> None:
    for depth in (300, 1500, 5000):
        data = b"<html>" + b"<div>" * depth + b"deep" + b"</div>" * depth + b"after"
        text = read(data)
        assert text.text.split() == ["deep", "after"]
    assert text.warnings == (
        "read without layout and headings: pages that are nested too deeply (1)",
    )


def test_markdown_keeps_its_source_and_knows_headings_from_code() -> None:
    source = (
        "# One #\n\ntext\n\n```\n# no heading\n```\n\nTwo\n---\n\n> # quoted\n\n### C# and F#\n"
    )
    text = read(source.encode(), "a.md")
    assert text.text == source
    assert heading_words(text) == [(1, "One"), (2, "Two"), (3, "C# and F#")]
    assert text.title == "One"


def test_front_matter_becomes_properties() -> None:
    source = "---\ntitle: 모자보건법\ndate: 2024-01-02\ntags: [a, b]\nnested: {x: 1}\n---\n# Body\n"
    text = read(source.encode(), "a.md")
    assert text.properties == {"title": "모자보건법", "date": "2024-01-02", "tags": "a, b"}
    assert heading_words(text) == [(1, "Body")]


@pytest.mark.parametrize("yaml", ["a: [", "!!python/object:os.system {}", "[" * 8_000])
def test_front_matter_that_is_no_yaml_is_a_warning(yaml: str) -> None:
    text = read(f"---\n{yaml}\n---\n# Body\n".encode(), "a.md")
    assert heading_words(text) == [(1, "Body")]
    assert text.properties == {}
    assert text.text.startswith("---\n"), "nothing is lost"
    assert text.warnings == ("read as text: front matter that is not valid YAML (1)",)


@pytest.mark.parametrize("between", ["# Slide 1\nThe fee is 5.", "&a [*a]", "- one\n- two"])
def test_text_between_two_rules_is_no_front_matter(between: str) -> None:
    text = read(f"---\n{between}\n---\n# Body\n".encode(), "a.md")
    assert between in text.text
    assert (text.properties, text.warnings) == ({}, ())


def test_docx_gives_paragraphs_tables_and_headings_in_order() -> None:
    document = docx.Document()
    document.core_properties.title = "Report"
    document.add_heading("First", 1)
    document.add_paragraph("Before.")
    table = document.add_table(1, 2)
    table.cell(0, 0).text, table.cell(0, 1).text = "left", "right"
    document.add_heading("둘째", 2)
    text = read(saved(document))
    assert text.text.split("\n\n")[:4] == ["First", "Before.", "left | right", "둘째"]
    assert heading_words(text) == [(1, "First"), (2, "둘째")]
    assert text.title == "Report"


def test_a_docx_that_unpacks_to_too_much_is_refused() -> None:
    types = b"<Types>wordprocessingml.document.main+xml</Types>"
    bomb = zip_file({"[Content_Types].xml": types, "word/document.xml": bytes(65_000_000)})
    with pytest.raises(ExtractionLimit):
        extract(bomb, "a.docx", ExtractSettings(memory_mb=256))


def test_external_entities_of_a_docx_are_not_resolved() -> None:
    original = zipfile.ZipFile(io.BytesIO(word_file("Body &amp; soul.")))
    parts = {name: original.read(name) for name in original.namelist()}
    body = parts["word/document.xml"].decode()
    declaration, root = body.split("?>", 1)
    parts["word/document.xml"] = (
        f'{declaration}?><!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/hostname">]>'
        f"{root.replace('soul.', 'soul &e;.')}"
    ).encode()
    assert read(zip_file(parts)).text.split() == ["Body", "&amp;", "soul"]


def test_mail_prefers_plain_text_and_hands_attachments_out() -> None:
    message = email.message.EmailMessage()
    message["Subject"], message["From"], message["To"] = "안녕", "a@example.com", "b@example.com"
    message.set_content("The plain body.")
    message.add_alternative("<p>The HTML body.</p>", subtype="html")
    message.add_attachment(b"%PDF-", maintype="application", subtype="pdf", filename="bill.pdf")
    text = read(message.as_bytes(), "m.eml")
    assert text.text.strip() == "The plain body."
    assert text.title == "안녕"
    assert text.properties == {"from": "a@example.com", "to": "b@example.com"}
    assert [(a.name, a.size, a.content) for a in text.attachments] == [("bill.pdf", 5, b"%PDF-")]


def test_html_mail_and_unknown_charsets_are_read() -> None:
    data = (
        b"Subject: x\nFrom: a\nTo: b\nContent-Type: text/html; charset=no-such\n\n"
        b"<h1>Hi</h1><p>" + KOREAN.encode("cp949")
    )
    assert read(data, "m.eml").text.split()[:2] == ["Hi", "대한민국의"]


def test_encrypted_mail_needs_its_key() -> None:
    data = b"Subject: x\nContent-Type: multipart/encrypted; boundary=b\n\n--b\n\nx\n--b--\n"
    with pytest.raises(NeedsPassword):
        read(data, "m.eml")


def line(
    text: str, down: float, size: float = 10, *, bold: bool = False, hyphen: bool = False
) -> Line:
    return Line(text, size, down, bold, hyphen, mapped=True)


def test_pdf_lines_become_paragraphs_headings_and_pages() -> None:
    paragraph = [
        line("The first line of a paragraph ends in half of a bo", 40, hyphen=True),
        line("dy of the page, and the rest of it goes on here", 52),
        line("for a while.", 64),
    ]
    gap = line("Another paragraph starts after a gap.", 92)
    pages = [
        [line("Large heading", 10, 16), *paragraph, gap],
        [],
        [line("Bold one", 10, bold=True)],
    ]
    text, headings, spans, tables, _ = assemble(pages)
    assert tables == ()
    assert text.split("\n\n") == [
        "Large heading",
        "The first line of a paragraph ends in half of a body of the page, and the rest of it goes"
        " on here\nfor a while.",
        "Another paragraph starts after a gap.",
        "Bold one",
    ]
    assert [(h.level, text[h.start : h.end]) for h in headings] == [
        (1, "Large heading"),
        (2, "Bold one"),
    ]
    assert [(p.number, text[p.start : p.end][-8:]) for p in spans] == [
        (1, "r a gap."),
        (2, ""),
        (3, "Bold one"),
    ]


def test_a_sentence_goes_on_in_the_next_column() -> None:
    column = [line("It runs to the foot of the column and", 700), line("goes on.", 40)]
    assert assemble([column])[0] == "It runs to the foot of the column and\ngoes on."


def test_running_heads_are_no_headings() -> None:
    pages = [
        [line(f"Annual Report {n}", 10, 14), line("Body text. " * 30, 40), line("More.", 52)]
        for n in range(4)
    ]
    assert assemble(pages)[1] == ()


def word_file(body: str) -> bytes:
    document = docx.Document()
    document.add_paragraph(body)
    return saved(document)


def saved(document: docx.document.Document) -> bytes:
    buffer = io.BytesIO()
    document.save(buffer)
    return buffer.getvalue()


def zip_file(parts: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def test_comments_before_what_is_no_page_take_linear_time() -> None:
    assert extract(b"<!-- -->" * 500 + b"<x", "a.txt", ExtractSettings()).media_type == "text/plain"
