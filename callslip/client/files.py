"""Files on their way to the desk: what is sent, under which name, and how far it is."""

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
    """In bytes; None where that is not known before the end."""


@dataclass(frozen=True)
class FolderProgress:
    """How many of a folder's files were taken; `waiting_seconds` while the desk takes no more."""

    done: int
    total: int
    name: str
    """Of the file that is next, or was last."""
    waiting_seconds: float = 0.0


@dataclass(frozen=True)
class Refused:
    """A file that was not taken, and why."""

    name: str
    error: PermanentError


@dataclass(frozen=True)
class SentFolder:
    """What became of the files of a folder; `batch_id` follows them."""

    batch_id: str
    submitted: list[Submitted] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)


class Opened:
    """A file that tells how much of it was read; httpx reads it part by part."""

    def __init__(self, file: BinaryIO, name: str, told: Callable[[Sent], object] | None) -> None:
        self._file, self.name, self._told = file, name, told
        self.can_repeat = file.seekable()
        self._size = _size(file) if self.can_repeat else None
        self._sent = 0

    def read(self, size: int = -1) -> bytes:
        """A part of it."""
        part = self._file.read(size)
        self._sent += len(part)
        if self._told is not None and part:
            self._told(Sent(self.name, self._sent, self._size))
        return part

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """httpx goes back to the start before it sends a file, again too."""
        self._sent = self._seekable().seek(offset, whence)
        return self._sent

    def tell(self) -> int:
        """Where it is; httpx asks for the size so."""
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
    """The content as an open file, its name, and whether it is to be closed.

    InvalidRequest where it has no name, or is no file; PermanentError where it cannot be read.
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
    """The files of a folder with their paths below it, hidden ones left out; or those named.

    InvalidRequest where there is none, or two would be known by one name.
    """
    if isinstance(folder, str | os.PathLike):
        root = Path(folder)
        inside = ((path, path.relative_to(root)) for path in root.glob(pattern) if path.is_file())
        found = sorted(
            (path, name.as_posix())
            for path, name in inside
            if not any(part.startswith(".") for part in name.parts)
        )
        if not found:
            raise InvalidRequest(f"{str(root)!r} has no file that fits {pattern!r}")
        return found
    found = [(Path(path), Path(path).name) for path in folder]
    names = [name for _, name in found]
    if not found:
        raise InvalidRequest("no file is named")
    if twice := {name for name in names if names.count(name) > 1}:
        raise InvalidRequest(
            f"two files would be known as {min(twice)!r}",
            hint="Name the folder above both, and they are known by their paths below it.",
        )
    return found
