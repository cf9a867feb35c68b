"""Images of pages: read where tesseract is installed, a plain answer where it is not."""

import io
import shutil
import struct
import zlib

import pytest
from own_messy import NOTICE, scan_image
from PIL import Image

from callslip.config.settings import ExtractSettings
from callslip.errors import BrokenFile, CallslipError, ExtractionLimit, NoTextLayer
from callslip.ingestion.extract import extract
from callslip.ingestion.extract.sniff import JPEG, PNG, TIFF, WEBP
from callslip.ingestion.isolation.process import Extractor

SECOND = "The ferry to the island leaves at noon."
TYPES = {"PNG": PNG, "JPEG": JPEG, "TIFF": TIFF, "WEBP": WEBP}
ENGLISH = ExtractSettings(ocr_languages="eng")

installed = pytest.mark.skipif(not shutil.which("tesseract"), reason="tesseract is not installed")


def saved(image: Image.Image, kind: str, **options: object) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def words(text: str) -> str:
    return " ".join(text.split())


def claimed(width: int, height: int) -> bytes:
    """A PNG of a few bytes that claims to have this size."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        check = zlib.crc32(kind + content)
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", check)

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    body = zlib.compress(bytes(1000))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", body) + chunk(b"IEND", b"")


@pytest.mark.long
@installed
@pytest.mark.parametrize("kind", TYPES)
def test_an_image_of_a_page_is_read_whatever_its_name(kind: str) -> None:
    with Extractor(ENGLISH) as extractor:
        text = extractor.extract(saved(scan_image(NOTICE), kind), "scan.png")
    assert words(text.text) == NOTICE
    assert text.media_type == TYPES[kind]
    assert text.warnings[-1] == "read by OCR"
    assert [page.number for page in text.pages] == [1]


@installed
def test_the_images_of_a_tiff_are_pages() -> None:
    first, second = scan_image(NOTICE), scan_image(SECOND)
    data = saved(first, "TIFF", save_all=True, append_images=[second], compression="tiff_lzw")
    with Extractor(ENGLISH) as extractor:
        text = extractor.extract(data, "fax.tif")
    pages = [words(text.text[page.start : page.end]) for page in text.pages]
    assert pages == [NOTICE, SECOND]


@installed
def test_photos_are_turned_upright_and_what_is_transparent_is_paper() -> None:
    page = scan_image(NOTICE)
    turned = Image.Exif()
    turned[0x0112] = 6  # turn by a quarter to show
    sideways = saved(page.transpose(Image.Transpose.ROTATE_90), "JPEG", exif=turned)
    ink = Image.new("RGBA", page.size, (0, 0, 0, 0))
    ink.paste((0, 0, 0, 255), mask=page.point(lambda v: 255 - v))
    with Extractor(ENGLISH) as extractor:
        assert words(extractor.extract(sideways, "a.jpg").text) == NOTICE
        assert words(extractor.extract(saved(ink, "PNG"), "a.png").text) == NOTICE


@pytest.mark.long
@installed
@pytest.mark.parametrize("mode", ["1", "P", "CMYK", "I;16", "LA"])
def test_every_kind_of_pixel_is_read(mode: str) -> None:
    page = scan_image(NOTICE)
    if mode == "I;16":
        page = page.convert("I").point(lambda v: v * 200).convert("I;16")
    with Extractor(ENGLISH) as extractor:
        text = extractor.extract(saved(page.convert(mode), "TIFF"), "a.tiff").text
    assert words(text) == NOTICE


@installed
def test_letters_of_a_screenshot_are_read() -> None:
    page = scan_image(NOTICE)
    small = page.resize((page.width // 4, page.height // 4), Image.Resampling.LANCZOS)
    with Extractor(ENGLISH) as extractor:
        assert words(extractor.extract(saved(small, "PNG"), "a.png").text) == NOTICE


@installed
def test_frames_of_an_animation_are_counted_not_read() -> None:
    frames = [scan_image(NOTICE), scan_image(SECOND)]
    data = saved(frames[0], "WEBP", save_all=True, append_images=frames[1:], lossless=True)
    with Extractor(ENGLISH) as extractor:
        text = extractor.extract(data, "a.webp")
    assert words(text.text) == NOTICE
    left_out = "left out: frames of an animation after the first (1)"
    assert text.warnings == ("read by OCR", left_out)


@installed
def test_a_page_that_is_damaged_is_named_and_the_others_are_read() -> None:
    first, second = scan_image(NOTICE), scan_image(SECOND)
    data = bytearray(saved(second, "TIFF", save_all=True, append_images=[first]))
    second_offset = struct.unpack_from("<I", data, 4)[0]
    (count,) = struct.unpack_from("<H", data, second_offset)
    following = struct.unpack_from("<I", data, second_offset + 2 + 12 * count)[0]
    (count,) = struct.unpack_from("<H", data, following)
    for at in range(following + 2, following + 2 + 12 * count, 12):
        if struct.unpack_from("<H", data, at)[0] == 259:  # the compression
            struct.pack_into("<H", data, at + 8, 8)
    with Extractor(ENGLISH) as extractor:
        text = extractor.extract(bytes(data), "a.tiff")
    assert words(text.text) == SECOND
    assert text.warnings == ("read by OCR", "left out: pages that cannot be read (1: 2)")


@installed
def test_a_picture_without_text_says_so() -> None:
    blank = saved(Image.new("L", (600, 400), 200), "PNG")
    with Extractor(ENGLISH) as extractor, pytest.raises(NoTextLayer, match="no text in the image"):
        extractor.extract(blank, "a.png")


@installed
def test_an_image_that_ends_too_early_is_broken() -> None:
    cut = saved(scan_image(NOTICE), "JPEG")[:2000]
    with Extractor(ENGLISH) as extractor, pytest.raises(BrokenFile):
        extractor.extract(cut, "a.jpg")


def test_without_tesseract_the_advice_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    page = saved(scan_image(NOTICE), "PNG")
    with Extractor(ExtractSettings()) as extractor, pytest.raises(NoTextLayer) as raised:
        extractor.extract(page, "scan.png")
    assert "an image" in raised.value.detail
    assert "Install tesseract" in raised.value.advice


def test_where_ocr_is_off_the_advice_names_the_setting() -> None:
    page = saved(scan_image(NOTICE), "WEBP")
    with Extractor(ExtractSettings(ocr="off")) as extractor, pytest.raises(NoTextLayer) as raised:
        extractor.extract(page, "scan.webp")
    assert "extract.ocr is off" in raised.value.advice


@pytest.mark.parametrize("size", [(11_000, 11_000), (20_000, 20_000), (1_000_000, 1_000_000)])
def test_an_image_of_too_many_pixels_is_refused_before_it_is_unpacked(
    size: tuple[int, int],
) -> None:
    with pytest.raises(ExtractionLimit, match="120 million pixels"):
        extract(claimed(*size), "bomb.png", ExtractSettings())


@pytest.mark.parametrize(
    "data", [b"\x89PNG\r\n\x1a\n" + bytes(40), b"\xff\xd8\xff\xe0junk", b"II*\0junk", b"MM\0*"]
)
def test_a_signature_alone_is_a_broken_image(data: bytes) -> None:
    with pytest.raises(BrokenFile):
        extract(data, "a.png", ExtractSettings())


@pytest.mark.parametrize("kind", TYPES)
def test_an_image_cut_anywhere_ends_in_a_named_error(kind: str) -> None:
    data = saved(scan_image(NOTICE).resize((300, 400)), kind)
    for at in range(12, len(data), max(1, len(data) // 40)):
        with pytest.raises(CallslipError):
            extract(data[:at], f"a.{kind.lower()}", ExtractSettings())
