"""Real files of every awkward kind, and hostile ones, through the limited child to chunks."""

import io
import zipfile
from collections.abc import Callable, Iterator

import docx
import pytest
from long_forms import ALL
from messy import MANIFEST, MESSY, OTHERWISE, REAL_ROWS, ROWS, TEXT, content_of, expected_of
from structure import check_structure

from callslip.config.settings import ChunkingSettings, ExtractSettings
from callslip.errors import BrokenFile, DocumentError, ExtractionLimit, NoText, UnsupportedType
from callslip.ingestion.chunks.chunk import chunk
from callslip.ingestion.isolation.process import Extractor
from callslip.ingestion.sections.sectionize import sectionize
from callslip.ingestion.values import ExtractedText
from callslip.models.e5.tokens import Tokenizer


@pytest.fixture(scope="module")
def extractor() -> Iterator[Extractor]:
    with Extractor(ExtractSettings()) as extractor:
        yield extractor


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    return Tokenizer(tmp_path_factory.mktemp("models"))


@pytest.mark.skipif(not REAL_ROWS, reason="the messy files are not on this machine")
def test_every_messy_file_is_in_the_manifest() -> None:
    names = {row["file"] for row in REAL_ROWS}
    assert {path.name for path in MESSY.iterdir()} - {MANIFEST.name} == names
    assert names >= OTHERWISE.keys()


@pytest.mark.long
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["file"])
def test_a_messy_file_ends_as_its_manifest_expects_and_its_structure_holds(
    row: dict[str, str], extractor: Extractor, tokenizer: Tokenizer
) -> None:
    name = row["file"]
    found = outcome(content_of(name), name, extractor, tokenizer, check_structure)
    assert found in expected_of(row)


def outcome(
    data: bytes,
    name: str,
    extractor: Extractor,
    tokenizer: Tokenizer,
    *more: Callable[[ExtractedText, Tokenizer], None],
) -> type[DocumentError] | None:
    """Read, cut and check, with more checks of a text than all have.

    Returns the class of the error that ended it, or None for text.
    """
    try:
        text = extractor.extract(data, name)
    except DocumentError as error:
        return type(error)
    for each in (check, *more):
        each(text, tokenizer)
    return TEXT


def check(text: ExtractedText, tokenizer: Tokenizer) -> None:
    """Sections tile the text; chunks hold all of it and are read whole by the embedder."""
    sections = sectionize(text)
    assert "".join(text.text[s.start : s.end] for s in sections) == text.text
    settings = ChunkingSettings()
    chunks = chunk(text.text, sections, tokenizer, settings, "document")
    assert chunks
    end = 0
    for found in chunks:
        assert not text.text[end : found.start].strip()
        end = max(end, found.end)
        content = text.text[found.start : found.end]
        assert content == content.strip() != ""
        assert tokenizer.count(content) <= settings.max_tokens
    assert not text.text[end:].strip()


def plain_docx(body: str = "Body text.") -> dict[str, bytes]:
    document = docx.Document()
    document.add_paragraph(body)
    buffer = io.BytesIO()
    document.save(buffer)
    with zipfile.ZipFile(buffer) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def zipped(parts: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def docx_with_entity() -> bytes:
    parts = plain_docx()
    head, root = parts["word/document.xml"].decode().split("?>", 1)
    entity = '<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]>'
    parts["word/document.xml"] = f"{head}?>{entity}{root.replace('text.', '&e;')}".encode()
    return zipped(parts)


def docx_with_laughs() -> bytes:
    parts = plain_docx()
    head, root = parts["word/document.xml"].decode().split("?>", 1)
    laughs = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 12))
    declaration = f'<!DOCTYPE x [<!ENTITY l0 "ha">{laughs}]>'
    parts["word/document.xml"] = f"{head}?>{declaration}{root.replace('text.', '&l11;')}".encode()
    return zipped(parts)


def nested_archive(depth: int) -> bytes:
    """Ten archives in each, many deep: a file of a few kilobytes that stands for 10**depth."""
    packed = bytes(1_000_000)
    for _ in range(depth):
        packed = zipped({f"{n}.zip": packed for n in range(10)})
    return packed


def open_document(body: str, declaration: str = "") -> bytes:
    names = "".join(
        f' xmlns:{short}="urn:oasis:names:tc:opendocument:xmlns:{short}:1.0"'
        for short in ("office", "text", "table")
    )
    content = f"{declaration}<office:d{names}><office:body>{body}</office:body></office:d>"
    mime = b"application/vnd.oasis.opendocument.text"
    return zipped({"mimetype": mime, "content.xml": content.encode()})


def letter_in_letter(depth: int) -> bytes:
    """Each message is attached to the next."""
    whole = b"Subject: inmost\n\nThe body.\n"
    for n in range(depth):
        whole = (
            b"From: a\nTo: b\nSubject: %d\nMIME-Version: 1.0\n"
            b"Content-Type: multipart/mixed; boundary=b%d\n\n--b%d\n"
            b"Content-Type: message/rfc822\n\n%s\n--b%d--\n" % (n, n, n, whole, n)
        )
    return whole


HEADINGS = 100_000 if ALL else 20_000
RULES = 300_000 if ALL else 60_000
LINE = 1_100_000 if ALL else 220_000
"""Repeats in a line of 20 MB, or of 4 MB."""

LAUGHS = "<!DOCTYPE x [<!ENTITY l0 'ha'>{}]>".format(
    "".join(f"<!ENTITY l{n} '{f'&l{n - 1};' * 10}'>" for n in range(1, 12))
)
DEEP = "<text:section>" * 100_000 + "x" + "</text:section>" * 100_000
REPEATS = 'table:number-columns-repeated="2000000000"'
WIDE = (
    f'<table:table><table:table-row table:number-rows-repeated="2000000000"><table:table-cell'
    f" {REPEATS}><text:p>{'words ' * 2000}</text:p></table:table-cell></table:table-row>"
    "</table:table>"
)

KOREAN = "모든 국민은 인간으로서의 존엄과 가치를 가지며, 행복을 추구할 권리를 가진다.\n" * 40
MOJIBAKE = KOREAN.encode("utf-8").decode("latin-1")

HOSTILE: dict[str, tuple[Callable[[], bytes], tuple[type[DocumentError] | None, ...]]] = {
    "nested.html": (lambda: b"<html>" + b"<div>" * 100_000 + b"x" + b"</div>" * 100_000, (TEXT,)),
    "unclosed.html": (lambda: b"<html>" + b"<b><i><font>" * 50_000 + b"x", (TEXT,)),
    "headings.md": (
        lambda: b"".join(b"# Heading %d\ntext\n" % n for n in range(HEADINGS)),
        (TEXT,),
    ),
    "quotes.md": (lambda: b">" * 100_000 + b" x", (TEXT, ExtractionLimit)),
    "control.txt": (lambda: b"\x00\x01\x02 some\x00\x07 bell \x03\x04" * 3, (UnsupportedType,)),
    "few-control.txt": (
        lambda: b"Text with a bell\x07 and nothing else that is odd in it.",
        (TEXT,),
    ),
    "bomb.docx": (
        lambda: zipped(plain_docx() | {"word/x.bin": bytes(520_000_000)}),
        (ExtractionLimit,),
    ),
    "entity.docx": (docx_with_entity, (TEXT, BrokenFile)),
    "laughs.docx": (docx_with_laughs, (TEXT, BrokenFile)),
    "utf16.txt": (lambda: KOREAN.encode("utf-16-le"), (TEXT,)),
    "cp949.txt": (lambda: KOREAN.encode("cp949"), (TEXT,)),
    "mojibake.txt": (lambda: MOJIBAKE.encode("utf-8"), (TEXT,)),
    "bomb.zip": (lambda: zipped({"a.txt": bytes(210_000_000)}), (ExtractionLimit,)),
    "nested.zip": (
        lambda: nested_archive(5),
        (TEXT,),
    ),  # of which each is a document, within bounds
    "many.zip": (lambda: zipped({f"{n}.txt": b"x" for n in range(20_000)}), (ExtractionLimit,)),
    "line.txt": (lambda: b"no line ends here " * 2_800_000, (ExtractionLimit,)),
    "laughs.odt": (lambda: open_document("<text:p>&l11;</text:p>", LAUGHS), (NoText, BrokenFile)),
    "deep.odt": (lambda: open_document(DEEP), (TEXT, BrokenFile, ExtractionLimit)),
    "wide.odt": (lambda: open_document(WIDE), (TEXT, ExtractionLimit)),
    "deep.json": (lambda: b'{"a":' * 1_000_000 + b"1" + b"}" * 1_000_000, (ExtractionLimit,)),
    "deep.rtf": (
        lambda: b"{\\rtf1 " + b"{\\b " * 300_000 + b"x" + b"}" * 300_000,
        (TEXT, ExtractionLimit),
    ),
    "wide.csv": (lambda: b"a," * 5_000_000 + b"\n" + b"1," * 5_000_000, (TEXT, ExtractionLimit)),
    "rules.rst": (lambda: b"====\n" * RULES, (TEXT,)),
    "headings.rst": (
        lambda: b"".join(b"Heading %d\n=========\n\n" % n for n in range(HEADINGS)),
        (TEXT,),
    ),
    "headings.html": (
        lambda: b"<html>" + b"".join(b"<h2>Heading %d</h2><p>t" % n for n in range(HEADINGS)),
        (TEXT, ExtractionLimit),
    ),
    "tables.html": (
        lambda: b"<html>" + b"<table><tr><td>a<td>b<tr><td>c" * 20_000,
        (TEXT, ExtractionLimit),
    ),
    "letters.eml": (lambda: letter_in_letter(500), (TEXT, ExtractionLimit)),
    "multipart.eml": (
        lambda: (
            b"Subject: x\nFrom: a\nTo: b\n"
            + b"".join(
                b"Content-Type: multipart/mixed; boundary=b%d\n\n--b%d\n" % (n, n)
                for n in range(3000)
            )
        ),
        (NoText, ExtractionLimit),
    ),
    "pages.pdf": (
        lambda: b"%PDF-1.7\n" + b"1 0 obj<</Kids[1 0 R]>>endobj\n" * 50_000,
        (BrokenFile,),
    ),
}


@pytest.mark.long
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_ends_in_text_or_a_named_error(
    name: str, extractor: Extractor, tokenizer: Tokenizer
) -> None:
    make, expected = HOSTILE[name]
    assert outcome(make(), name, extractor, tokenizer) in expected


def test_one_very_long_line_becomes_chunks(extractor: Extractor, tokenizer: Tokenizer) -> None:
    text = extractor.extract(b"no line ends here " * LINE, "line.txt")
    chunks = chunk(text.text, sectionize(text), tokenizer, ChunkingSettings(), "document")
    assert chunks[0].start == 0
    assert chunks[-1].end == len(text.text.rstrip())
    assert max(c.tokens for c in chunks) <= 500


def test_entities_bring_no_file_in(extractor: Extractor) -> None:
    assert "root:" not in extractor.extract(docx_with_entity(), "entity.docx").text


def test_encodings_come_out_right(extractor: Extractor) -> None:
    for name in ("utf16.txt", "cp949.txt"):
        text = extractor.extract(HOSTILE[name][0](), name)
        assert text.text == KOREAN
        assert len(text.warnings) == 1
