"""Images of pages: PNG, JPEG, WebP and TIFF with any number of pages, read by OCR.

`read` checks an image and finds no text in it, as for a scanned PDF; `recognize` reads it.
"""

import io
import math
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from PIL import Image, ImageOps, UnidentifiedImageError
from PIL.JpegImagePlugin import JpegImageFile
from PIL.MpoImagePlugin import MpoImageFile
from PIL.PngImagePlugin import PngImageFile
from PIL.TiffImagePlugin import TiffImageFile
from PIL.WebPImagePlugin import WebPImageFile

from callslip.config.settings import ExtractSettings
from callslip.errors import BrokenFile, ExtractionLimit, NoTextLayer
from callslip.ingestion.extract.composer import Composer
from callslip.ingestion.extract.readers.tesseract import MOST_PIXELS, Tesseract
from callslip.ingestion.extract.sniff import JPEG, PNG, TIFF, WEBP
from callslip.ingestion.left_out import left_out, read_otherwise
from callslip.ingestion.values import ExtractedText

MOST_UNPACKED = 120_000_000
"""The maximum pixels of an image that is opened: a page of A0 at 300 dots per inch has 139 million,
one of A1 70 million. A pixel takes up to 4 bytes, and a file of a few kilobytes may claim any
number."""

SMALL = 4_000_000
"""An image of up to this many pixels, such as a screenshot, is doubled: of letters 9 pixels high
tesseract reads 90 % as they are, and 98 % at twice the size."""

FINE = 200
"""Dots per inch of a scan that is not doubled."""

_TYPES = {
    PngImageFile.format: PNG,
    JpegImageFile.format: JPEG,
    MpoImageFile.format: JPEG,  # a photo with further versions of it behind, opened as JPEG
    TiffImageFile.format: TIFF,
    WebPImageFile.format: WEBP,
}
"""The formats that are read, whose modules have to be imported; Pillow knows dozens."""

_OPENED = [name for name in _TYPES if name != MpoImageFile.format]

_WHITE = 255

_INSTALL = (
    "Install tesseract where the ingest worker runs (Debian: tesseract-ocr tesseract-ocr-kor) and"
    " submit the file again."
)


def read(data: bytes, limits: ExtractSettings) -> ExtractedText:
    """Raise NoTextLayer for an image that OCR may read.

    Raises BrokenFile for a damaged one, ExtractionLimit for one of too many pixels.
    """
    with _opened(data) as (_, pages):
        what = "an image" if pages == 1 else f"{pages} images"
    raise NoTextLayer(f"the file is {what}, whose text only OCR can read", hint=_INSTALL)


def recognize(data: bytes, limits: ExtractSettings) -> ExtractedText:
    """Read each page of an image that `read` checked.

    Raises NoTextLayer if no text is recognized, and the errors of `Tesseract`.
    """
    tesseract = Tesseract(limits)
    composer = Composer(limits)
    has_text = False
    unread: list[int] = []
    with _opened(data) as (image, pages):
        media_type = _TYPES[image.format or ""]
        for number in range(pages):
            composer.page()
            try:
                image.seek(number)
                _check(image)
                drawn = _drawn(image)
            except (OSError, SyntaxError, ValueError, EOFError):
                unread.append(number + 1)
                continue
            text = tesseract.text(*drawn.size, drawn.tobytes())
            composer.paragraph(text)
            has_text = has_text or bool(text.strip())
        frames = getattr(image, "n_frames", 1)
    if len(unread) == pages:
        raise BrokenFile("the image is damaged")
    if not has_text:
        raise NoTextLayer("OCR found no text in the image", hint="There may be none.")
    further = frames - pages if image.format != "MPO" else 0
    lost = left_out(
        {"frames of an animation after the first": further}, {"pages that cannot be read": unread}
    )
    return composer.text(media_type, warnings=(read_otherwise("by OCR", {}), *lost))


@contextmanager
def _opened(data: bytes) -> Iterator[tuple[Image.Image, int]]:
    """Open an image; yield it with the number of its pages: only a TIFF has several."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of odd metadata, and of sizes, which `_check` bounds
        try:
            image = Image.open(io.BytesIO(data), formats=_OPENED)
        except Image.DecompressionBombError:
            raise _too_large("more than twice") from None
        except (UnidentifiedImageError, OSError, SyntaxError, ValueError):
            raise BrokenFile("the image is damaged") from None
        with image:
            _check(image)
            yield image, getattr(image, "n_frames", 1) if image.format == "TIFF" else 1


def _check(image: Image.Image) -> None:
    if image.width * image.height > MOST_UNPACKED:
        raise _too_large(f"{image.width:,} × {image.height:,} pixels,")


def _too_large(size: str) -> ExtractionLimit:
    return ExtractionLimit(
        f"the image has {size} more than {MOST_UNPACKED // 1_000_000} million pixels",
        hint="Save it with fewer dots per inch (300 are enough), or in several images.",
    )


def _drawn(image: Image.Image) -> Image.Image:
    """Return the image as tesseract reads it best: upright, black on white, large enough."""
    resolution = float(image.info.get("dpi", (0, 0))[0] or 0)
    if image.format in ("JPEG", "MPO") and image.width * image.height > MOST_PIXELS:
        image.draft("L", (image.width // 2, image.height // 2))  # decodes at half of the size
    grey = _grey(ImageOps.exif_transpose(image))
    pixels = grey.width * grey.height
    if pixels > MOST_PIXELS:
        scale = math.sqrt(MOST_PIXELS / pixels)
    elif pixels <= SMALL and resolution < FINE:
        scale = 2.0
    else:
        return grey
    size = max(1, round(grey.width * scale)), max(1, round(grey.height * scale))
    return grey.resize(size, Image.Resampling.LANCZOS)


def _grey(image: Image.Image) -> Image.Image:
    """Return the image in 8-bit grey; what is transparent becomes white."""
    if image.mode.startswith("I"):  # 16 or 32 bits; plain conversion would clip them
        low, high = image.getextrema()
        span = max(float(high) - float(low), 1.0)  # type: ignore[arg-type]
        return image.convert("F").point(lambda v: (v - low) * (255.0 / span)).convert("L")
    if image.has_transparency_data:
        image = image.convert("RGBA")
        paper = Image.new("RGBA", image.size, (_WHITE, _WHITE, _WHITE, _WHITE))
        paper.alpha_composite(image)
        image = paper
    return image.convert("L")
