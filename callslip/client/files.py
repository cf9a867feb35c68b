"""Uploads of files: opening them, their names, and the progress of sending."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from callslip.client.models import Submitted
from callslip.errors import InvalidRequest, PermanentError

Content = str | os.PathLike[str] | bytes | BinaryIO
"""A path, the bytes themselves, or a file that is open for reading bytes."""


@dataclass(frozen=True)
class Sent:
    """How much of a file was handed to the network."""

    name: str
    bytes_sent: int
    size: int | None
    """In bytes; None if the file cannot seek."""


@dataclass(frozen=True)
class FolderProgress:
    """How many files of a folder are submitted; `waiting_seconds` is a pause for a full backlog."""

    done: int
    total: int
    name: str
    """The name of the next file, after the end of the last one."""
    waiting_seconds: float = 0.0


@dataclass(frozen=True)
class Refused:
    """A file that the server refused, and the error."""

    name: str
    error: PermanentError


@dataclass(frozen=True)
class SentFolder:
    """The result of an upload of a folder; `batch_id` names the batch of the submitted files."""

    batch_id: str
    submitted: list[Submitted] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)


class Opened:
    """A file that httpx reads part by part; it calls `on_progress` after each part."""

    def __init__(
        self, file: BinaryIO, name: str, on_progress: Callable[[Sent], object] | None
    ) -> None:
        self._file, self.name, self._on_progress = file, name, on_progress
        self.can_repeat = file.seekable()
        self._size = _size(file) if self.can_repeat else None
        self._sent = 0

    def read(self, size: int = -1) -> bytes:
        """Read up to `size` bytes, and report them."""
        part = self._file.read(size)
        self._sent += len(part)
        if self._on_progress is not None and part:
            self._on_progress(Sent(self.name, self._sent, self._size))
        return part

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Set the position: httpx returns to the start before each sending."""
        self._sent = self._seekable().seek(offset, whence)
        return self._sent

    def tell(self) -> int:
        """The position; httpx finds the size with it."""
        return self._seekable().tell()

    def _seekable(self) -> BinaryIO:
        if not self.can_repeat:
            raise io.UnsupportedOperation("seek")
        return self._file

    def __iter__(self) -> Iterator[bytes]:
        while part := self.read(1 << 16):
            yield part


def _size(file: BinaryIO) -> int:
    at = file.tell()
    size = file.seek(0, os.SEEK_END)
    file.seek(at)
    return size


def opened(content: Content, filename: str | None) -> tuple[BinaryIO, str, bool]:
    """Open the content; return the file, its name, and whether the client must close it.

    Raises InvalidRequest if there is no name or no file of bytes, and PermanentError if the
    file cannot be read.
    """
    if isinstance(content, bytes | bytearray):
        if not filename:
            raise InvalidRequest("bytes have no name", hint="Say it: filename='handbook.pdf'.")
        return io.BytesIO(content), filename, True
    if isinstance(content, str | os.PathLike):
        path = Path(content)
        try:
            return path.open("rb"), filename or path.name, True
        except OSError as error:
            raise PermanentError(
                f"{str(path)!r} cannot be read: {error.strerror}",
                hint="Check that it is a file and its permissions.",
            ) from error
    if not hasattr(content, "read") or isinstance(content, io.TextIOBase):
        raise InvalidRequest(
            f"{type(content).__name__} is no file of bytes",
            hint="Give a path, bytes, or a file that is opened with 'rb'.",
        )
    name = filename or getattr(content, "name", None)
    if not isinstance(name, str) or not Path(name).name:
        raise InvalidRequest("the file has no name", hint="Say it: filename='handbook.pdf'.")
    return content, Path(name).name, False


def files_of(
    folder: str | os.PathLike[str] | Iterable[str | os.PathLike[str]], pattern: str = "**/*"
) -> list[tuple[Path, str]]:
    """The files of a folder, or of a list, each with the name for its document.

    The name is the path below the folder (hidden files are left out), or the file's own name.
    Raises InvalidRequest if there is no file, or two files have one name.
    """
    if isinstance(folder, str | os.PathLike):
        root = Path(folder)
        inside = ((path, path.relative_to(root)) for path in root.glob(pattern) if path.is_file())
        files = sorted(
            (path, name.as_posix())
            for path, name in inside
            if not any(part.startswith(".") for part in name.parts)
        )
        if not files:
            raise InvalidRequest(f"{str(root)!r} has no file that fits {pattern!r}")
        return files
    files = [(Path(path), Path(path).name) for path in folder]
    names = [name for _, name in files]
    if not files:
        raise InvalidRequest("no file is named")
    if twice := {name for name in names if names.count(name) > 1}:
        raise InvalidRequest(
            f"two files would be known as {min(twice)!r}",
            hint="Name the folder above both, and they are known by their paths below it.",
        )
    return files
