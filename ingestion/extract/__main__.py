"""The child of `ingestion.isolation`: reads one file after another until its input ends.

Run as `python -m ingestion.extract LIMITS`, the limits as JSON.
"""

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

from callslip.errors import CallslipError, ExtractionLimit, NoTextLayer
from config.settings import MEGABYTE, ExtractSettings
from ingestion.extract import extract, ocr, recognize
from ingestion.parts import ExtractedText
from ingestion.wire import LENGTHS, error_frame, more_time_frame, text_frame

PARENT_CHECK_SECONDS = 0.5


def main(arguments: list[str]) -> None:
    """Answer each frame on stdin with one on stdout; whatever libraries print goes elsewhere."""
    limits = ExtractSettings.model_validate_json(arguments[0])
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the owner's to handle
    threading.Thread(target=_end_with_parent, args=(os.getppid(),), daemon=True).start()
    _confine(limits)
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    while lengths := sys.stdin.buffer.read(LENGTHS.size):
        head_length, body_length = LENGTHS.unpack(lengths)
        head = json.loads(sys.stdin.buffer.read(head_length))
        own = limits.model_copy(update=head["json_fields"])
        _start_clock(limits.timeout_seconds)
        try:
            data = sys.stdin.buffer.read(body_length)
            answer: tuple[bytes, ...] = text_frame(_text(data, head["filename"], own, replies))
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
    """The text of a file, by OCR where it has none and that can be done; its owner is told."""
    try:
        return extract(data, filename, limits)
    except NoTextLayer:
        if not ocr.available(limits):
            raise
    replies.write(b"".join(more_time_frame()))
    replies.flush()
    _start_clock(limits.ocr_timeout_seconds)
    return recognize(data, filename, limits)


def _confine(limits: ExtractSettings) -> None:
    """Take no more memory than this child has now and one file may need; leave no core file."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":  # macOS does not enforce it
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        limit = pages * resource.getpagesize() + limits.memory_mb * MEGABYTE
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def _start_clock(seconds: float) -> None:
    """The CPU limit ends this child even where its owner no longer can."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    most = math.ceil(usage.ru_utime + usage.ru_stime + seconds)
    resource.setrlimit(resource.RLIMIT_CPU, (most, resource.RLIM_INFINITY))


def _end_with_parent(parent: int) -> None:
    # Not PR_SET_PDEATHSIG: that fires when the thread ends that started this process.
    while os.getppid() == parent:
        time.sleep(PARENT_CHECK_SECONDS)
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
