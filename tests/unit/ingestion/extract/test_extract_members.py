"""Files within files: taken out within bounds, under names that lead nowhere else."""

import email.message
import io
import zipfile
from pathlib import PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st
from office_files import zip_file

from callslip.config.settings import ExtractSettings
from callslip.errors import BrokenFile, ExtractionLimit, NeedsPassword, NoText
from callslip.ingestion.artifacts import EXTRACTED
from callslip.ingestion.extract import extract
from callslip.ingestion.extract.container import LONGEST_NAME, Members, safe_name
from callslip.ingestion.values import ExtractedText

LIMITS = ExtractSettings(max_members=3, max_members_mb=1)


def read(data: bytes, filename: str = "a.zip") -> ExtractedText:
    return extract(data, filename, LIMITS)


def names(text: ExtractedText) -> list[str]:
    return [a.name for a in text.attachments]


def letter(*files: tuple[str, bytes], body: str = "See the files.") -> bytes:
    message = email.message.EmailMessage()
    message["Subject"], message["From"], message["To"] = "Files", "a@example.com", "b@example.com"
    message.set_content(body)
    for name, content in files:
        message.add_attachment(
            content, maintype="application", subtype="octet-stream", filename=name
        )
    return message.as_bytes()


def test_the_text_of_a_zip_is_the_list_of_its_files() -> None:
    parts = {"docs/": b"", "docs/a.txt": b"one", "b.md": b"two", "__MACOSX/b.md": b"x"}
    text = read(zip_file(parts))
    assert text.text == "docs/a.txt\nb.md"
    assert [(a.name, a.content, a.size) for a in text.attachments] == [
        ("docs/a.txt", b"one", 3),
        ("b.md", b"two", 3),
    ]


def test_an_archive_that_holds_a_pdf_as_it_stands_is_an_archive() -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("a.pdf", b"%PDF-1.7 and more")
    assert names(read(buffer.getvalue())) == ["a.pdf"]


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("../../etc/passwd", "etc/passwd"),
        ("/etc/passwd", "etc/passwd"),
        ("C:\\Users\\a\\b.txt", "Users/a/b.txt"),
        ("a/./b/../c.txt", "a/b/c.txt"),
        ("bad\x00name\n.txt", "bad name .txt"),
        ("exe.\u202etxt", "exe. txt"),
        ("../..", ""),
        ("\x01", ""),
        ("한글.txt".encode().decode(), "한글.txt"),
    ],
)
def test_a_name_is_cleaned_of_what_could_lead_elsewhere(given: str, kept: str) -> None:
    assert safe_name(given) == kept


@given(st.text(max_size=700))
def test_any_name_becomes_a_relative_path_of_clean_parts(name: str) -> None:
    kept = safe_name(name)
    assert len(kept) <= LONGEST_NAME
    assert kept == "" or not {"", ".", ".."} & set(kept.split("/"))
    assert kept == kept.strip()
    assert kept.isprintable() or not any(ord(c) < 32 for c in kept)
    assert not PurePosixPath(kept).is_absolute()


def test_files_without_a_name_and_of_the_same_name_are_told_apart() -> None:
    members = Members(LIMITS)
    for name in ("../a.txt", "a.txt", ".."):
        members.add(name, b"x")
    assert [a.name for a in members.all()] == ["a.txt", "a (2).txt", "unnamed-3"]


def test_korean_names_of_old_archives_are_read() -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("PLACEHOLDER1.txt", b"x")
    packed = buffer.getvalue().replace(b"PLACEHOLDER1", "대한민국법률".encode("cp949"))
    assert names(read(packed)) == ["대한민국법률.txt"]


def test_too_many_files_are_refused() -> None:
    with pytest.raises(ExtractionLimit, match="more than 3 files"):
        read(zip_file({f"{n}.txt": b"x" for n in range(4)}))
    with pytest.raises(ExtractionLimit, match="more than 3 files"):
        read(letter(*[(f"{n}.txt", b"x") for n in range(4)]), "a.eml")


def test_a_bomb_is_refused_by_the_bytes_that_there_are() -> None:
    with pytest.raises(ExtractionLimit, match="1 MB"):
        read(zip_file({"a.txt": bytes(600_000), "b.txt": bytes(600_000)}))
    bomb = bytearray(zip_file({"a.txt": bytes(5_000_000)}))
    for where in (bomb.index(b"PK\x03\x04") + 22, bomb.index(b"PK\x01\x02") + 24):
        bomb[where : where + 4] = (10).to_bytes(4, "little")  # it says that it is small
    with pytest.raises((ExtractionLimit, BrokenFile)):
        read(bytes(bomb))


def test_an_encrypted_archive_needs_its_password() -> None:
    packed = bytearray(zip_file({"a.txt": b"x"}))
    packed[packed.index(b"PK\x01\x02") + 8] |= 1
    with pytest.raises(NeedsPassword):
        read(bytes(packed))


def test_an_empty_archive_holds_no_text() -> None:
    with pytest.raises(NoText):
        read(zip_file({"empty/": b""}))


def test_a_letter_that_is_nothing_but_its_files_is_their_list() -> None:
    text = read(letter(("bill.pdf", b"%PDF-"), ("b.txt", b"x"), body=""), "a.eml")
    assert text.text == "bill.pdf\nb.txt"
    assert text.title == "Files"


def test_signatures_and_pictures_of_the_text_are_no_documents() -> None:
    message = email.message.EmailMessage()
    message["Subject"], message["From"], message["To"] = "x", "a@example.com", "b@example.com"
    message.set_content("Body.")
    message.add_attachment(b"x", maintype="application", subtype="pkcs7-signature", filename="s")
    message.add_attachment(
        b"x", maintype="image", subtype="png", filename="logo.png", cid="<1>", disposition="inline"
    )
    message.add_attachment(b"x", maintype="image", subtype="png", filename="scan.png")
    text = read(message.as_bytes(), "a.eml")
    assert names(text) == ["scan.png"]
    assert text.warnings == ("left out: attachments that are not read (1: logo.png)",)


def test_the_artifact_keeps_the_names_and_not_the_bytes() -> None:
    text = read(zip_file({"a.txt": b"the content"}))
    kept = EXTRACTED.dump(text)
    assert b"the content" not in kept
    (attachment,) = EXTRACTED.load(kept).attachments
    assert (attachment.name, attachment.size, attachment.content) == ("a.txt", 11, b"")
    assert EXTRACTED.counts(text)["files"] == 1
