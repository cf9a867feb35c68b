"""Streams whose bytes are counted and hashed on their way."""

import hashlib
from typing import IO

from callslip.errors import ArchiveError


class Hashing:
    """A stream that is hashed while it is read."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self.digest = hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        """The next bytes."""
        block = self._stream.read(size)
        self.digest.update(block)
        return block


class Checked(Hashing):
    """A stream that raises at its end where size or SHA-256 are not as promised."""

    def __init__(self, stream: IO[bytes], size: int, sha256: str, error: ArchiveError) -> None:
        super().__init__(stream)
        self._left, self._promised, self._error = size, sha256, error

    def read(self, size: int = -1) -> bytes:
        """The next bytes; the error where they are the last and something is wrong."""
        block = super().read(size)
        self._left -= len(block)
        if (not block and self._left) or (
            not self._left and self.digest.hexdigest() != self._promised
        ):
            raise self._error
        return block

    def __enter__(self) -> "Checked":
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()
