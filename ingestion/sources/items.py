"""The files that a source lists, and their contents while they are fetched."""

import hashlib
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Protocol

from callslip.config.settings import MEGABYTE
from callslip.errors import EmptyFile, FileTooLarge

BLOCK_BYTES = 1 << 18
IN_MEMORY_BYTES = 1 << 20
"""The maximum size of a file that waits in memory for the blob store; a larger one is on disk."""

Tick = Callable[[], None]
"""Called repeatedly during a long operation; raises an error if the operation must stop."""


@dataclass(frozen=True)
class Item:
    """One file as its source lists it; unknown texts are empty, an unknown size is None.

    `path` is relative to the source, with its parts joined by `/`.
    """

    path: str
    etag: str = ""
    modified: str = ""
    size: int | None = None

    def same_as(self, other: "Item") -> bool:
        """Whether both items certainly have the same content."""
        validators = (self.etag, self.modified)
        return any(validators) and (*validators, self.size) == (
            other.etag,
            other.modified,
            other.size,
        )


@dataclass(frozen=True)
class Caught:
    """A local copy of a file's content, positioned at its start, and the item as it was read."""

    content: IO[bytes]
    size: int
    sha256: str


class Origin(Protocol):
    """The content behind a source's address."""

    @property
    def complete(self) -> bool:
        """Whether the last listing was complete: only then may missing files be deleted."""

    def items(self) -> Iterator[Item]:
        """List every file; raises SourceDown or SourceError if that fails."""

    def fetch(self, item: Item, known: Item | None, tick: Tick) -> "Fetching":
        """Start to read a file, or report that it has not changed since `known`.

        Raises SourceDown, which is temporary, SourceError or FileTooLarge.
        """

    def address(self, item: Item) -> str:
        """Return the file's URL."""

    def close(self) -> None:
        """Release the connections."""


@dataclass(frozen=True)
class Fetching:
    """A file that is being read. `blocks` is None if the file has not changed.

    `settle` is called after the last block and returns the item as it was read.
    """

    blocks: Iterable[bytes] | None
    settle: Callable[[], Item]


@contextmanager
def caught(blocks: Iterable[bytes], most_mb: int, name: str, tick: Tick) -> Iterator[Caught]:
    """Copy the blocks to a local file; raises EmptyFile, or FileTooLarge as early as possible."""
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
    """Return the error for a file above the limit."""
    return FileTooLarge(f"{name!r} is larger than {most_mb} MB")
