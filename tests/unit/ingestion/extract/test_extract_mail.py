"""Mail in any encoding: declared, undeclared or declared wrongly, in bodies, fields and names."""

import base64

import pytest

from callslip.config.settings import ExtractSettings
from callslip.errors import DocumentError
from callslip.ingestion.extract import extract
from callslip.ingestion.extract.decode import decode
from callslip.ingestion.values import ExtractedText

LIMITS = ExtractSettings()
KOREAN = "부두 사용료는 매월 말일까지 납부하여야 합니다."
GERMAN = "Die Gebühr für große Schiffe beträgt 15 €, fällig am Monatsende."


def read(data: bytes, filename: str = "m.eml") -> ExtractedText:
    return extract(data, filename, LIMITS)


def mail(body: bytes, *fields: bytes) -> bytes:
    head = (b"From: office@example.org", b"To: all@example.org", b"MIME-Version: 1.0")
    return b"\r\n".join((*head, *fields, b"", body, b""))


def word(text: bytes, charset: str) -> bytes:
    return f"=?{charset}?B?{base64.b64encode(text).decode()}?=".encode()


@pytest.mark.parametrize(
    ("text", "codec", "declared"),
    [
        (KOREAN, "cp949", None),
        (KOREAN, "cp949", "us-ascii"),
        (KOREAN, "cp949", "iso-8859-1"),
        (KOREAN, "cp949", "utf-8"),
        (KOREAN, "cp949", "x-unknown"),
        (KOREAN, "cp949", "ks_c_5601-1987"),
        (KOREAN, "cp949", "windows-949"),
        (KOREAN, "utf-8", None),
        (KOREAN, "utf-8", "euc-kr"),
        (KOREAN, "iso2022_kr", "iso-2022-kr"),
        (KOREAN, "iso2022_kr", None),
        (GERMAN, "cp1252", None),
        (GERMAN, "cp1252", "iso-8859-1"),
        (GERMAN, "cp1252", "us-ascii"),
        (GERMAN, "cp1252", "euc-kr"),
        (GERMAN, "utf-8", "iso-8859-1"),
        ("Fee of £5 at 15 °C ± 2", "cp1252", None),
        ("会議は来週の月曜日です。よろしくお願いします。", "iso2022_jp", None),
    ],
)
def test_a_body_is_read_whatever_its_charset_is_said_to_be(
    text: str, codec: str, declared: str | None
) -> None:
    kind = f'; charset="{declared}"' if declared else ""
    fields = (f"Content-Type: text/plain{kind}".encode(), b"Content-Transfer-Encoding: 8bit")
    assert read(mail(text.encode(codec), *fields)).text.strip() == text


def test_a_western_text_that_is_declared_so_stays_so() -> None:
    assert decode("ÄÖÜ ÀÉ ½".encode("cp1252"), "iso-8859-1").text == "ÄÖÜ ÀÉ ½"


def test_a_few_broken_bytes_leave_the_declared_charset() -> None:
    data = KOREAN.encode("cp949") * 3 + b"\xff" + " 끝".encode("cp949")
    assert decode(data, "euc-kr").text == KOREAN * 3 + "\ufffd 끝"


@pytest.mark.parametrize(
    "subject",
    [
        "회의 안내".encode("cp949"),
        "회의 안내".encode(),
        word("회의 안내".encode("cp949"), "ks_c_5601-1987"),
        word("회의 안내".encode("cp949"), "no-such-charset"),
        word("회의 안내".encode("cp949"), "iso-8859-1"),
        word("회의".encode("cp949"), "euc-kr") + b" " + word(" 안내".encode("cp949"), "euc-kr"),
    ],
)
def test_a_subject_is_read_from_bytes_and_from_encoded_words(subject: bytes) -> None:
    text = read(mail(b"Body", b"Subject: " + subject))
    assert text.title == "회의 안내"


def test_a_character_that_two_encoded_words_share_is_read() -> None:
    data = "요금 개정 안내".encode("cp949")
    divided = word(data[:3], "euc-kr") + b"\r\n " + word(data[3:], "euc-kr")
    assert read(mail(b"Body", b"Subject: " + divided)).title == "요금 개정 안내"


def test_names_of_senders_are_read_beside_their_addresses() -> None:
    sender = word("김부두".encode("cp949"), "euc-kr") + b" <kim@example.org>"
    data = b"From: %s\r\nTo: %s <b@example.org>\r\nSubject: x\r\n\r\nBody" % (
        sender,
        "Jörg".encode("latin-1"),
    )
    properties = read(data).properties
    assert properties["from"] == "김부두 <kim@example.org>"
    assert properties["to"] == "Jörg <b@example.org>"


@pytest.mark.parametrize(
    "name",
    [
        b'"' + "요금표.txt".encode("cp949") + b'"',
        b'"' + "요금표.txt".encode() + b'"',
        b'"' + word("요금표.txt".encode("cp949"), "euc-kr") + b'"',
        word("요금표.txt".encode("cp949"), "euc-kr"),
    ],
)
def test_the_name_of_an_attached_file_is_read(name: bytes) -> None:
    data = mail(
        b"--b\r\nContent-Type: text/plain\r\n\r\nBody\r\n--b\r\n"
        b"Content-Type: application/octet-stream\r\n"
        b"Content-Disposition: attachment; filename=" + name + b"\r\n\r\nx\r\n--b--",
        b"Subject: x",
        b"Content-Type: multipart/mixed; boundary=b",
    )
    assert [each.name for each in read(data).attachments] == ["요금표.txt"]


def test_html_without_a_charset_of_the_mail_follows_its_own() -> None:
    page = '<meta charset="koi8-r"><p>Причал закрыт'.encode("koi8-r")
    assert "Причал закрыт" in read(mail(page, b"Content-Type: text/html")).text


@pytest.mark.parametrize(
    "field",
    [
        b"Subject: =?utf-8?B?not base64!?=",
        b"Subject: =?utf-8?X?what?=",
        b"Subject: =?=?=?",
        b"Content-Type: text/plain; charset*=''%ff%fe",
        b"Content-Type: \xff\xfe; charset=\xff",
        b"Content-Disposition: attachment; filename*0*=utf-8''%E2%82",
        b'From: "unclosed <a@b',
        b"Date: yesterday",
    ],
)
def test_fields_that_break_the_rules_lose_no_body(field: bytes) -> None:
    text = read(mail(b"The body.", field))
    whole = text.text + "".join(a.content.decode() for a in text.attachments)
    assert "The body." in whole


@pytest.mark.parametrize("data", [b"Subject: x", b"Subject: x\r\n\r\n", b"\r\n\r\n"])
def test_a_mail_without_a_body_gets_advice_that_fits(data: bytes) -> None:
    with pytest.raises(DocumentError) as raised:
        read(data)
    assert "OCR" not in raised.value.advice
