"""The body of a request while it arrives: in memory up to IN_MEMORY bytes, then in a file."""

import re
from collections.abc import Callable
from tempfile import SpooledTemporaryFile

IN_MEMORY = 1 << 16

LONGEST_LINE = 1 << 12
"""Bytes of the line before a chunk, and of a trailer."""

LONGEST_TRAILERS = 1 << 14

_SIZE = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;[\t\x20-\x7e\x80-\xff]*)?")

Write = Callable[[bytes], object]


class BrokenChunks(ValueError):
    """The body is not in chunks as RFC 9112, section 7.1, defines them."""


class Body:
    """A body of `length` bytes, or in chunks if `length` is None; `file` has the content."""

    def __init__(self, length: int | None) -> None:
        self.file: SpooledTemporaryFile[bytes] = SpooledTemporaryFile(IN_MEMORY)  # noqa: SIM115
        self.size = 0
        self._decoder = Chunks() if length is None else _Counted(length)

    def feed(self, received: bytearray) -> bool:
        """Move what belongs to the body out of `received`; return whether the body is complete.

        Raises BrokenChunks, and OSError if the disk is full.
        """
        return self._decoder.feed(received, self._write)

    def _write(self, block: bytes) -> None:
        self.size += self.file.write(block)


class _Counted:
    def __init__(self, length: int) -> None:
        self._left = length

    def feed(self, received: bytearray, write: Write) -> bool:
        block = bytes(received[: self._left])
        del received[: self._left]
        self._left -= len(block)
        write(block)
        return not self._left


class Chunks:
    """Decodes chunks (RFC 9112, section 7.1) that arrive in pieces of any size."""

    def __init__(self) -> None:
        self._data_left = 0
        self._line: Callable[[bytes], bool] = self._size
        self._trailers = 0

    def feed(self, received: bytearray, write: Write) -> bool:
        """Write the content, remove what was decoded; return whether the last chunk was."""
        while True:
            if self._data_left:
                block = bytes(received[: self._data_left])
                del received[: self._data_left]
                write(block)
                self._data_left -= len(block)
                if self._data_left:
                    return False
            end = received.find(b"\r\n")
            if max(end, len(received) if end < 0 else 0) > LONGEST_LINE:
                raise BrokenChunks("a line is too long")
            if end < 0:
                return False
            line = bytes(received[:end])
            del received[: end + 2]
            if b"\r" in line or b"\n" in line:
                raise BrokenChunks("a line ends without CR LF")
            if self._line(line):
                return True

    def _size(self, line: bytes) -> bool:
        size = _SIZE.fullmatch(line)
        if not size:
            raise BrokenChunks("a chunk has no size")
        self._data_left = int(size[1], 16)
        self._line = self._end_of_data if self._data_left else self._trailer
        return False

    def _end_of_data(self, line: bytes) -> bool:
        if line:
            raise BrokenChunks("a chunk is longer than its size")
        self._line = self._size
        return False

    def _trailer(self, line: bytes) -> bool:
        self._trailers += len(line)
        if self._trailers > LONGEST_TRAILERS:
            raise BrokenChunks("the trailers are too long")
        return not line
