"""Reads files in a child process, so that a hostile file can crash only the child.

The child is a plain subprocess, not one of `multiprocessing`, because `multiprocessing` and its
pools cannot start children in Celery's prefork pool, whose processes are daemonic.
"""

import json
import os
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType, TracebackType
from typing import IO, Any, Self, TypeVar

from callslip.config.settings import MEGABYTE, ExtractSettings
from callslip.errors import BrokenFile, ExtractionLimit, Overloaded
from callslip.ingestion.boxes import Area
from callslip.ingestion.isolation.frames import LENGTHS, check, frame, outcome, sizes
from callslip.ingestion.values import ExtractedText

MAX_FILES = 1000
"""A child is replaced after this many files, so that memory leaks of libraries do not add up."""

USUAL_FIELDS: Mapping[str, str] = MappingProxyType({})
"""No overrides: the settings name the fields of JSON records."""

PASSED_ON = frozenset(
    {
        *("PATH", "HOME", "LANG", "TZ", "TMPDIR", "LD_LIBRARY_PATH", "TESSDATA_PREFIX"),
        *("PYTHONHOME", "PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX"),
    }
)
"""The variables that a child gets, and those of the locale (LC_…). Keys and passwords are in
others: no library that reads files, and no program that it starts, needs them."""

PNG = b"\x89PNG\r\n"
"""The first bytes of a PNG image."""

T = TypeVar("T")

READ_SIZE = 1 << 20
DRAW_WAIT_SECONDS = 3.0
"""The longest wait of a thread for the child that draws for another one."""

GRACE_SECONDS = 2.0
"""Added to the time limit, for the start of the child and the transfer of file and text."""


class Extractor:
    """Runs `ingestion.extract.extract` in a child process under a time and a memory limit.

    Threads may share an instance. One child reads all files, one at a time. It starts with the
    first file (.5 s), and again after a file that ended it. It ends when this process ends, even
    when this process is killed. A file costs .2 ms in addition, so harmless formats are read in the
    child too. 100 MB take .2 s to transfer.
    """

    def __init__(self, limits: ExtractSettings) -> None:
        self._limits = limits
        self._lock = threading.Lock()
        self._child: subprocess.Popen[bytes] | None = None
        self._files = 0
        self._seconds = limits.timeout_seconds  # of the present stage: OCR has a limit of its own

    def extract(
        self, data: bytes, filename: str, json_fields: Mapping[str, str] = USUAL_FIELDS
    ) -> ExtractedText:
        """Read a file; `json_fields` override settings such as `json_title` for this file.

        Raises the errors of `ingestion.extract.extract`; also ExtractionLimit if the file takes too
        much time or memory, and BrokenFile if it crashes its reader.
        """
        head = {"filename": filename, "json_fields": dict(json_fields)}
        return self._answer(data, head, filename, outcome)

    def read_converted(self, data: bytes, filename: str) -> ExtractedText:
        """Read the document that a layout server made of a file; the errors are those of `extract`.

        `filename` is the name of the original.
        """
        head = {"filename": filename, "json_fields": {}, "converted": True}
        return self._answer(data, head, filename, outcome)

    def draw(
        self, data: bytes, filename: str, page: int, areas: Sequence[Area], width: int
    ) -> bytes:
        """Return a page of a PDF (from 1) as a PNG image of `width` pixels, with areas marked.

        Raises PageNotFound, NeedsPassword, BrokenFile or ExtractionLimit; Overloaded if the child
        draws for others all the time.
        """
        head = {
            "filename": filename,
            "json_fields": {},
            "draw": {"page": page, "areas": [tuple(area) for area in areas], "width": width},
        }
        return self._answer(data, head, filename, _image, DRAW_WAIT_SECONDS)

    def _answer(
        self,
        data: bytes,
        head: dict[str, Any],
        filename: str,
        result: Callable[[dict[str, Any], bytes, list[bytes]], T],
        wait_seconds: float = -1,
    ) -> T:
        if not self._lock.acquire(timeout=wait_seconds):
            raise Overloaded(
                "other pages are being drawn", hint="Repeat the request in a few seconds."
            )
        try:
            child = self._ready_child()
            try:
                return result(*self._ask(child, data, head))
            except TimeoutError:  # before OSError, its base class
                self._end()
                raise self._too_slow(filename) from None
            except (OSError, EOFError):
                raise self._verdict(self._end(), filename) from None
            except (KeyError, TypeError, ValueError):
                self._end()
                raise BrokenFile(f"{filename} made its reader answer nonsense") from None
        finally:
            self._lock.release()

    def close(self) -> None:
        """End the child. Idempotent; the next file starts another child."""
        with self._lock:
            self._end()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _ready_child(self) -> subprocess.Popen[bytes]:
        if self._child is None or self._child.poll() is not None or self._files >= MAX_FILES:
            self._end()
            self._files = 0
            self._child = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "callslip.ingestion.extract",
                    self._limits.model_dump_json(),
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,  # messages of libraries quote files
                bufsize=0,
                env=child_environment(os.environ),
            )
        self._files += 1
        return self._child

    def _ask(
        self, child: subprocess.Popen[bytes], data: bytes, head: dict[str, Any]
    ) -> tuple[dict[str, Any], bytes, list[bytes]]:
        assert child.stdin is not None and child.stdout is not None  # noqa: S101, PT018
        deadline = self._deadline(self._limits.timeout_seconds)
        for piece in frame(head, data):
            _write(child.stdin, piece, deadline)
        frame_head, body = self._frame(child.stdout, deadline)
        if "ocr" in frame_head:  # the child reads the file by OCR, which is slow
            deadline = self._deadline(self._limits.ocr_timeout_seconds)
            frame_head, body = self._frame(child.stdout, deadline)
        files = sizes(frame_head)
        if sum(files) > self._limits.max_members_mb * MEGABYTE or min(files, default=0) < 0:
            raise ValueError("larger than files within a file may be")
        return frame_head, body, [_read(child.stdout, size, deadline) for size in files]

    def _deadline(self, seconds: float) -> float:
        self._seconds = seconds
        return time.monotonic() + seconds + GRACE_SECONDS

    def _frame(self, pipe: IO[bytes], deadline: float) -> tuple[dict[str, Any], bytes]:
        head, body = LENGTHS.unpack(_read(pipe, LENGTHS.size, deadline))
        if head + body > 16 * self._limits.max_chars + 2 * READ_SIZE:
            raise ValueError("longer than any text can be")
        return json.loads(_read(pipe, head, deadline)), _read(pipe, body, deadline)

    def _end(self) -> int:
        """Kill the child, if there is one; return its exit code, negative for a signal."""
        child, self._child = self._child, None
        if child is None:
            return 0
        child.kill()  # no effect on a child that is already ending
        for pipe in (child.stdin, child.stdout):
            if pipe is not None:
                pipe.close()
        return child.wait()

    def _verdict(self, exit_code: int, filename: str) -> ExtractionLimit | BrokenFile:
        """Return the error for a child that exited in the middle of a file."""
        if exit_code == -signal.SIGXCPU:
            return self._too_slow(filename)
        if exit_code == -signal.SIGKILL:  # by the kernel, because no memory is left
            return ExtractionLimit(f"{filename} needs more memory than there is to read")
        return BrokenFile(f"{filename} crashed its reader (exit code {exit_code})")

    def _too_slow(self, filename: str) -> ExtractionLimit:
        return ExtractionLimit(f"{filename} took longer than {self._seconds:g} s to read")


def _image(head: dict[str, Any], body: bytes, _: list[bytes]) -> bytes:
    """Return the image of a frame, or raise the error of the frame."""
    check(head)
    if not body.startswith(PNG):
        raise ValueError("no image")
    return body


def child_environment(inherited: Mapping[str, str]) -> dict[str, str]:
    """The environment of a child: without the secrets that this process has in its own."""
    passed_on = {
        name: value
        for name, value in inherited.items()
        if name in PASSED_ON or name.startswith("LC_")
    }
    return passed_on | {
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "OPENBLAS_NUM_THREADS": "1",  # even an idle thread takes memory
    }


def _write(pipe: IO[bytes], data: bytes, deadline: float) -> None:
    """Write all of the data. Raises TimeoutError at the deadline, if the child reads too slowly."""
    os.set_blocking(pipe.fileno(), False)
    rest = memoryview(data)
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_WRITE)
        while rest:
            if not selector.select(max(0.0, deadline - time.monotonic())):
                raise TimeoutError
            rest = rest[os.write(pipe.fileno(), rest) :]


def _read(pipe: IO[bytes], size: int, deadline: float) -> bytes:
    """Read `size` bytes. Raises TimeoutError at the deadline, EOFError if the child ends before."""
    received = bytearray()
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        while len(received) < size:
            if not selector.select(max(0.0, deadline - time.monotonic())):
                raise TimeoutError
            piece = os.read(pipe.fileno(), min(READ_SIZE, size - len(received)))
            if not piece:
                raise EOFError
            received += piece
    return bytes(received)
