"""Texts of several chunks in one compressed block: neighbours share most of their words.

A passage repeats the text of its section, and both repeat the properties of their document. Alone,
a chunk of 4 KB is compressed to 40 % of its size, in a block of 64 KB to 12 %. A block consists of
one frame or more; to read a text takes only its frame.
"""

import sqlite3
import struct
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple, TypeVar

import zstandard

LARGEST = 64_000
"""The bytes of a block at which it is full, uncompressed."""

_LEVEL = 6

T = TypeVar("T")


class Packer:
    """Packs the blocks of one transaction. It is not shared by threads."""

    def __init__(self) -> None:
        self._compressor = zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True)

    def pack(self, texts: Sequence[str], frame: int = LARGEST) -> bytes:
        """Compress the texts, in frames that are full at `frame` bytes, after a head of numbers.

        These are the numbers of texts and of frames, the length of each text, and the texts and the
        length of each frame.
        """
        contents = [text.encode() for text in texts]
        lengths = [len(content) for content in contents]
        parts = list(cut(contents, lengths, frame))
        frames = [self._compressor.compress(b"".join(part)) for part in parts]
        head = [len(texts), len(frames), *lengths, *map(len, parts), *map(len, frames)]
        return struct.pack(f"<{len(head)}I", *head) + b"".join(frames)


class Unpacker:
    """Reads texts out of blocks, each frame only once. It is not shared by threads."""

    def __init__(self) -> None:
        self._decompressor = zstandard.ZstdDecompressor()
        self._heads: dict[int, _Head] = {}
        self._frames: dict[tuple[int, int], bytes] = {}

    def text(self, number: int, block: bytes, at: int) -> str:
        """The text at a position of a block. Raises sqlite3.DatabaseError if it is damaged."""
        head = self._heads.get(number)
        if head is None:
            head = self._heads[number] = _Head.of(block)
        frame, start, end = head.find(at)
        content = self._frames.get((number, frame))
        if content is None:
            content = self._frames[number, frame] = self._opened(block, head, frame)
        return content[start:end].decode()

    def texts(self, block: bytes) -> list[str]:
        """All texts of a block. Raises sqlite3.DatabaseError if it is damaged."""
        head = _Head.of(block)
        whole = b"".join(self._opened(block, head, frame) for frame in range(len(head.ends) - 1))
        ends = accumulate(head.lengths)
        return [whole[e - n : e].decode() for e, n in zip(ends, head.lengths, strict=True)]

    def _opened(self, block: bytes, head: "_Head", frame: int) -> bytes:
        try:
            return self._decompressor.decompress(block[head.ends[frame] : head.ends[frame + 1]])
        except zstandard.ZstdError as error:
            raise _damaged(error) from error


class _Head(NamedTuple):
    """The length of each text, the texts of each frame, and where each frame begins and ends."""

    lengths: tuple[int, ...]
    counts: tuple[int, ...]
    ends: tuple[int, ...]

    @classmethod
    def of(cls, block: bytes) -> "_Head":
        try:
            texts, frames = struct.unpack_from("<2I", block)
            numbers = struct.unpack_from(f"<{texts + 2 * frames}I", block, 8)
        except struct.error as error:
            raise _damaged(error) from error
        size = 8 + 4 * len(numbers)
        sizes = numbers[texts + frames :]
        return cls(
            numbers[:texts],
            numbers[texts : texts + frames],
            tuple(accumulate(sizes, initial=size)),
        )

    def find(self, at: int) -> tuple[int, int, int]:
        """The frame of a text, and where in the frame's content it begins and ends."""
        first = 0
        for frame, count in enumerate(self.counts):
            if at < first + count:
                start = sum(self.lengths[first:at])
                return frame, start, start + self.lengths[at]
            first += count
        raise _damaged(f"it has no text {at}")


def size_of(block: bytes) -> int:
    """The bytes of a block's texts. Raises sqlite3.DatabaseError if it is damaged."""
    return sum(_Head.of(block).lengths)


def cut(entries: Sequence[T], sizes: Sequence[int], largest: int) -> Iterator[Sequence[T]]:
    """Cut entries with these sizes in bytes into parts, each full or the last one."""
    start = size = 0
    for end, more in enumerate(sizes, 1):
        size += more
        if size >= largest:
            yield entries[start:end]
            start, size = end, 0
    if start < len(entries):
        yield entries[start:]


def _damaged(why: object) -> sqlite3.DatabaseError:
    return sqlite3.DatabaseError(f"a block of stored terms is damaged: {why}")
