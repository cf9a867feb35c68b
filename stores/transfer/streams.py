"""Streams that compute or verify a SHA-256 checksum while they are read."""

import hashlib
from typing import IO

from callslip.errors import ArchiveError


class Hashing:
    """A stream that computes the SHA-256 of the bytes read so far."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self.digest = hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        """The next bytes."""
        block = self._stream.read(size)
        self.digest.update(block)
        return block


class Checked(Hashing):
    """A stream that raises `error` at its end if its size or SHA-256 is not the expected one."""

    def __init__(self, stream: IO[bytes], size: int, sha256: str, error: ArchiveError) -> None:
        super().__init__(stream)
        self._left, self._promised, self._error = size, sha256, error

    def read(self, size: int = -1) -> bytes:
        """The next bytes. Raises the error at the end if size or SHA-256 differs."""
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
