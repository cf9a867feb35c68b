"""What a source lists and what is fetched from it."""

import hashlib
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Protocol

from callslip.errors import EmptyFile, FileTooLarge
from config.settings import MEGABYTE

BLOCK_BYTES = 1 << 18
IN_MEMORY_BYTES = 1 << 20
"""A file on its way to the blob store rests on disk above this."""

Tick = Callable[[], None]
"""Called again and again while something takes long; raises where it must end."""


@dataclass(frozen=True)
class Item:
    """One file as its source tells of it; the texts are empty and the size None where it does not.

    `path` is below the source, its parts joined by `/`.
    """

    path: str
    etag: str = ""
    modified: str = ""
    size: int | None = None

    def same_as(self, other: "Item") -> bool:
        """Whether the content cannot have changed between the two."""
        told = (self.etag, self.modified)
        return any(told) and (*told, self.size) == (other.etag, other.modified, other.size)


@dataclass(frozen=True)
class Caught:
    """A file's content at its start, on this machine, and how the source told of it."""

    content: IO[bytes]
    size: int
    sha256: str


class Place(Protocol):
    """What a source's address leads to."""

    @property
    def complete(self) -> bool:
        """Whether the last listing saw everything: only then may what it lacks be deleted."""

    def items(self) -> Iterator[Item]:
        """Every file; SourceDown or SourceError where it cannot be listed."""

    def fetch(self, item: Item, known: Item | None, tick: Tick) -> "Fetching":
        """Begin to read a file, or find that it is as it was `known`.

        Errors are SourceDown, which passes, SourceError and FileTooLarge.
        """

    def address(self, item: Item) -> str:
        """The file's URL."""

    def close(self) -> None:
        """Give back its connections."""


@dataclass(frozen=True)
class Fetching:
    """A file that is being read. `blocks` is None where nothing has changed since.

    `settle` is called at the end of the blocks and tells of the file as it was read.
    """

    blocks: Iterable[bytes] | None
    settle: Callable[[], Item]


@contextmanager
def caught(blocks: Iterable[bytes], most_mb: int, name: str, tick: Tick) -> Iterator[Caught]:
    """The blocks in a file of this machine; EmptyFile, or FileTooLarge as soon as it is known."""
    digest, size = hashlib.sha256(), 0
    with tempfile.SpooledTemporaryFile(max_size=IN_MEMORY_BYTES) as file:
        for block in blocks:
            tick()
            size += len(block)
            if size > most_mb * MEGABYTE:
                raise too_large(name, most_mb)
            digest.update(block)
            file.write(block)
        if size == 0:
            raise EmptyFile(f"{name!r} has no bytes")
        file.seek(0)
        yield Caught(file, size, digest.hexdigest())


def too_large(name: str, most_mb: int) -> FileTooLarge:
    """The error for a file above the limit."""
    return FileTooLarge(f"{name!r} is larger than {most_mb} MB")
