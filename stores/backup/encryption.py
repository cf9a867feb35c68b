"""Encrypts objects with AES-256-GCM in frames, so that memory does not grow with an object.

Each object has a key of its own, HKDF-SHA256 of the backup's key and a random salt. The nonce of a
frame has its number and whether it is the last one (the STREAM construction: Hoang, Reyhanitabar,
Rogaway, Vizár 2015), so frames cannot be left out or reordered; the object's name is authenticated
too, so that objects cannot be exchanged.
"""

import hashlib
import hmac
import os
from collections.abc import Iterable, Iterator

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from callslip.errors import BackupError

SALT_BYTES = 16
FRAME_BYTES = 1 << 20
TAG_BYTES = 16

_COST, _BLOCK, _PARALLEL = 1 << 15, 8, 1  # scrypt: 32 MB, .1 s


class Cipher:
    """Encrypts and decrypts with the key that scrypt makes of a passphrase and the salt."""

    def __init__(self, passphrase: str, salt: bytes) -> None:
        key = hashlib.scrypt(
            passphrase.encode(),
            salt=salt,
            n=_COST,
            r=_BLOCK,
            p=_PARALLEL,
            maxmem=256 * _COST * _BLOCK,
            dklen=96,
        )
        self._objects, self._names, check = key[:32], key[32:64], key[64:]
        self.check = check.hex()
        """Shows whether a passphrase is the right one, and says nothing about the keys."""

    def name(self, sha256: str) -> str:
        """The name of an object, which does not reveal the SHA-256 of its content."""
        return hmac.new(self._names, sha256.encode(), hashlib.sha256).hexdigest()

    def encrypt(self, name: str, content: Iterable[bytes]) -> Iterator[bytes]:
        """The encrypted form of the content of the object with this name."""
        salt = os.urandom(SALT_BYTES)
        yield salt
        cipher = self._of(salt)
        for number, frame, last in _frames(content, FRAME_BYTES):
            yield cipher.encrypt(_nonce(number, last), frame, name.encode())

    def decrypt(self, name: str, content: Iterable[bytes]) -> Iterator[bytes]:
        """The content of the object with this name. Raises BackupError if the object is damaged."""
        blocks = _Blocks(content)
        salt = blocks.take(SALT_BYTES)
        cipher = self._of(salt)
        for number, frame, last in _frames(blocks, FRAME_BYTES + TAG_BYTES):
            try:
                yield cipher.decrypt(_nonce(number, last), frame, name.encode())
            except InvalidTag:
                raise BackupError(f"object {name} of the backup is damaged") from None

    def _of(self, salt: bytes) -> AESGCM:
        hkdf = HKDF(SHA256(), length=32, salt=salt, info=b"callslip backup object")
        return AESGCM(hkdf.derive(self._objects))


def _nonce(number: int, last: bool) -> bytes:
    return number.to_bytes(11, "big") + bytes([last])


class _Blocks:
    """The rest of a stream of blocks."""

    def __init__(self, content: Iterable[bytes]) -> None:
        self._blocks = (block for block in content if block)
        self._rest = b""

    def take(self, size: int) -> bytes:
        """The next bytes, fewer at the end of the stream."""
        while len(self._rest) < size and (block := next(self._blocks, b"")):
            self._rest += block
        taken, self._rest = self._rest[:size], self._rest[size:]
        return taken

    def __iter__(self) -> Iterator[bytes]:
        yield self._rest
        yield from self._blocks


def _frames(content: Iterable[bytes], size: int) -> Iterator[tuple[int, bytes, bool]]:
    """Number, bytes and end mark of frames of this size; the last one may be shorter, or empty."""
    blocks = _Blocks(content)
    frame, number = blocks.take(size), 0
    while following := blocks.take(size):
        yield number, frame, False
        frame, number = following, number + 1
    yield number, frame, True
