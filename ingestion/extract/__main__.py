"""The child process of `ingestion.isolation`: reads one file after another until stdin ends.

Run as `python -m callslip.ingestion.extract LIMITS`, with the limits as JSON.
"""

import gc
import json
import math
import os
import resource
import signal
import sys
import threading
import time
from pathlib import Path
from typing import IO

import pypdfium2 as pdfium

from callslip.config.settings import MEGABYTE, ExtractSettings
from callslip.errors import BrokenFile, CallslipError, ExtractionLimit, NoTextLayer
from callslip.ingestion.boxes import Area
from callslip.ingestion.extract import extract, read_converted, recognize
from callslip.ingestion.extract.readers import tesseract
from callslip.ingestion.isolation.frames import (
    LENGTHS,
    error_frame,
    image_frame,
    more_time_frame,
    text_frame,
)
from callslip.ingestion.values import ExtractedText

PARENT_CHECK_SECONDS = 0.5

OBJECTS_BETWEEN_COLLECTIONS = 50_000
"""The pieces of a file are many objects, and no circles for the garbage collector to find."""

OCR_IS_OFF = "The setting extract.ocr is off: set it to auto, and install tesseract."


def main(arguments: list[str]) -> None:
    """Answer each frame on stdin with a frame on stdout; prints of libraries go to stderr."""
    limits = ExtractSettings.model_validate_json(arguments[0])
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
    threading.Thread(target=_end_with_parent, args=(os.getppid(),), daemon=True).start()
    _confine(limits)
    gc.freeze()
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    while lengths := sys.stdin.buffer.read(LENGTHS.size):
        head_length, body_length = LENGTHS.unpack(lengths)
        head = json.loads(sys.stdin.buffer.read(head_length))
        own = limits.model_copy(update=head["json_fields"])
        _start_clock(limits.timeout_seconds)
        try:
            data = sys.stdin.buffer.read(body_length)
            answer: tuple[bytes, ...]
            if drawing := head.get("draw"):
                answer = image_frame(_image(data, **drawing))
            elif head.get("converted"):
                answer = text_frame(read_converted(data, head["filename"], own))
            else:
                answer = text_frame(_text(data, head["filename"], own, replies))
        except CallslipError as error:
            answer = error_frame(error)
        except MemoryError:
            answer = error_frame(
                ExtractionLimit(f"{head['filename']} needs more than {limits.memory_mb} MB to read")
            )
        for piece in answer:
            replies.write(piece)
        replies.flush()


def _text(data: bytes, filename: str, limits: ExtractSettings, replies: IO[bytes]) -> ExtractedText:
    """Return the text of a file; without a text layer, announce OCR and use it if it can run."""
    try:
        return extract(data, filename, limits)
    except NoTextLayer as error:
        if limits.ocr == "off":
            raise NoTextLayer(error.detail, hint=OCR_IS_OFF) from None
        if not tesseract.available(limits):
            raise
    replies.write(b"".join(more_time_frame()))
    replies.flush()
    _start_clock(limits.ocr_timeout_seconds)
    return recognize(data, filename, limits)


def _image(data: bytes, page: int, areas: list[list[float]], width: int) -> bytes:
    """Return a page of a PDF as an image."""
    # Imported here: Pillow takes 4 MB, and most children draw nothing.
    from callslip.ingestion.extract.readers.pdf.drawing import draw

    try:
        return draw(data, page, [Area(int(number), *edges) for number, *edges in areas], width)
    except (OSError, ValueError, pdfium.PdfiumError) as error:
        raise BrokenFile(f"page {page} cannot be drawn ({type(error).__name__})") from None


def _confine(limits: ExtractSettings) -> None:
    """Limit the memory to the current use plus `limits.memory_mb`; write no core file."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":  # macOS does not enforce RLIMIT_AS
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        limit = pages * resource.getpagesize() + limits.memory_mb * MEGABYTE
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def _start_clock(seconds: float) -> None:
    """Set a limit of CPU time, which ends this child even if the parent cannot."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    most = math.ceil(usage.ru_utime + usage.ru_stime + seconds)
    resource.setrlimit(resource.RLIMIT_CPU, (most, resource.RLIM_INFINITY))


def _end_with_parent(parent: int) -> None:
    # PR_SET_PDEATHSIG acts when the thread that started this process ends, not its process.
    while os.getppid() == parent:
        time.sleep(PARENT_CHECK_SECONDS)
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
