"""A folder or bucket with backups.

    backup.json          magic, format, and of an encrypted destination the salt and a check value
    manifests/NAME       one backup each, written last; the name begins with its time in UTC
    objects/xx/NAME      content by its SHA-256, zlib-compressed, shared by all backups
    purges/NAME          receipts of purges, which every later restore applies

Where a passphrase is set, everything but backup.json is encrypted, and the name of an object is an
HMAC of its SHA-256.
"""

import contextlib
import hashlib
import json
import os
import re
import uuid
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import fsspec

from callslip.errors import BackupError, CallslipError, StoreDown
from callslip.stores.backup.encryption import SALT_BYTES, Cipher

MAGIC, FORMAT = "callslip backup", 1
COPY_BYTES = 1 << 20

LARGEST = 1 << 26
"""Bytes of the largest object of rows, manifest or receipt; a small file may expand to any size."""

LARGEST_HEAD = 1 << 16

_SHA256 = re.compile(r"[0-9a-f]{64}")
_SALT = re.compile(rf"[0-9a-f]{{{2 * SALT_BYTES}}}")

KEY_HINT = "Set backup.key (CALLSLIP_BACKUP__KEY), or name a file with --key-file."


class Destination:
    """Objects, manifests and purge receipts at an fsspec URL."""

    def __init__(self, url: str, passphrase: str | None = None, *, make: bool = False) -> None:
        """Open a destination; with `make`, create it if there is none.

        Raises BackupError if there is no destination, it is a file or cannot be made, credentials
        are missing, its format is unknown, or the passphrase is wrong, missing or not needed;
        StoreDown if it cannot be reached.
        """
        self.url = url
        self._cipher: Cipher | None = None
        with _opening(url):
            self._fs, self._root = fsspec.core.url_to_fs(url)
            protocol = self._fs.protocol
            self._local = "file" in (protocol if isinstance(protocol, tuple) else (protocol,))
            if self._local:
                _check_folder(Path(self._root))
            head = self._head(passphrase, make=make)
        if head.get("magic") != MAGIC or head.get("format") != FORMAT:
            raise BackupError(f"{url} has backups of another format than {FORMAT}")
        salt = head.get("salt", "")
        if salt is not None and not (isinstance(salt, str) and _SALT.fullmatch(salt)):
            raise BackupError(f"backup.json in {url} is damaged: it has no sound salt")
        if (salt is None) != (passphrase is None):
            state = "not encrypted" if salt is None else "encrypted"
            raise BackupError(f"the backups in {url} are {state}", hint=KEY_HINT)
        if passphrase is not None and salt is not None:
            self._cipher = Cipher(passphrase, bytes.fromhex(salt))
            if self._cipher.check != head.get("check"):
                raise BackupError(f"the passphrase is not that of {url}", hint=KEY_HINT)

    def name(self, sha256: str) -> str:
        """The name of the object with this content. Raises BackupError if `sha256` is not one."""
        if not (isinstance(sha256, str) and _SHA256.fullmatch(sha256)):
            raise BackupError("the backup names an object by what is no SHA-256")
        return self._cipher.name(sha256) if self._cipher else sha256

    def put(self, sha256: str, content: Iterable[bytes]) -> None:
        """Write an object, which appears only when it is complete."""
        name = self.name(sha256)
        digest = hashlib.sha256()

        def checked() -> Iterator[bytes]:
            for block in content:
                digest.update(block)
                yield block
            if digest.hexdigest() != sha256:
                raise BackupError("a file changed while it was copied", hint="Run it again.")

        self._write(_path(name), self._sealed(name, _compressed(checked())))

    def read(self, sha256: str, most: int = LARGEST) -> Iterator[bytes]:
        """The content of an object.

        Raises BackupError if it is missing, damaged or larger than `most` bytes.
        """
        name, digest, size = self.name(sha256), hashlib.sha256(), 0
        try:
            for block in _expanded(self._opened(name, self._blocks(_path(name)))):
                size += len(block)
                if size > most:
                    raise BackupError(f"object {name} of the backup is larger than {most} bytes")
                digest.update(block)
                yield block
        except (FileNotFoundError, zlib.error, EOFError) as error:
            lost = isinstance(error, FileNotFoundError)
            raise BackupError(
                f"object {name} of the backup is {'missing' if lost else 'damaged'}",
                hint="Restore an older backup, and make a new one in another place.",
            ) from error
        if digest.hexdigest() != sha256:
            raise BackupError(f"object {name} of the backup is damaged")

    def objects(self) -> Iterator[str]:
        """The names of all complete objects."""
        for prefix in range(256):
            for file in self._list(f"objects/{prefix:02x}"):
                if not file.endswith(".partial"):
                    yield file

    def sweep(self) -> None:
        """Remove the incomplete objects of backups that were killed."""
        for prefix in range(256):
            for file in self._list(f"objects/{prefix:02x}"):
                if file.endswith(".partial"):
                    self._remove(f"objects/{prefix:02x}/{file}")

    def remove_object(self, name: str) -> None:
        """Remove an object by its name. Idempotent."""
        self._remove(_path(name))

    def write(self, folder: str, name: str, value: dict[str, Any]) -> None:
        """Write a JSON value as a file of `manifests` or `purges`."""
        path = f"{folder}/{name}"
        content = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
        self._write(path, self._sealed(path, _compressed([content])))

    def load(self, folder: str, name: str) -> dict[str, Any]:
        """Read a JSON value. Raises BackupError if it is missing or damaged."""
        path, content = f"{folder}/{name}", bytearray()
        try:
            for block in _expanded(self._opened(path, self._blocks(path))):
                content += block
                if len(content) > LARGEST:
                    raise BackupError(f"{path} in {self.url} is larger than {LARGEST} bytes")
        except (FileNotFoundError, zlib.error, EOFError) as error:
            raise BackupError(f"{path} in {self.url} is missing or damaged") from error
        value = parsed(content, f"{path} in {self.url}")
        if not isinstance(value, dict):
            raise BackupError(f"{path} in {self.url} is damaged: it is no object of JSON")
        return value

    def names(self, folder: str) -> list[str]:
        """The names of the files of `manifests` or `purges`, oldest first."""
        return sorted(file for file in self._list(folder) if not file.endswith(".partial"))

    def remove(self, folder: str, name: str) -> None:
        """Remove a file of `manifests` or `purges`. Idempotent."""
        self._remove(f"{folder}/{name}")

    def _head(self, passphrase: str | None, *, make: bool) -> dict[str, Any]:
        try:
            with _translated("read"), self._fs.open(f"{self._root}/backup.json", "rb") as file:
                known = parsed(file.read(LARGEST_HEAD), f"backup.json in {self.url}")
            if not isinstance(known, dict):
                raise BackupError(f"backup.json in {self.url} is damaged: it is no object of JSON")
            return known
        except FileNotFoundError:
            if not make:
                raise BackupError(f"there are no backups in {self.url}", hint="") from None
        if self._local:  # it has the texts of documents
            try:
                Path(self._root).mkdir(mode=0o700, parents=True, exist_ok=True)
            except OSError as error:
                raise BackupError(
                    f"{self.url} cannot be made: {error.strerror}", hint="Name another folder."
                ) from error
        salt = os.urandom(SALT_BYTES) if passphrase is not None else None
        head = {
            "magic": MAGIC,
            "format": FORMAT,
            "salt": salt and salt.hex(),
            "check": Cipher(passphrase, salt).check if passphrase and salt else None,
        }
        self._write("backup.json", [json.dumps(head).encode()])
        return head

    def _sealed(self, name: str, content: Iterable[bytes]) -> Iterable[bytes]:
        return self._cipher.encrypt(name, content) if self._cipher else content

    def _opened(self, name: str, content: Iterable[bytes]) -> Iterable[bytes]:
        return self._cipher.decrypt(name, content) if self._cipher else content

    def _write(self, path: str, content: Iterable[bytes]) -> None:
        final = f"{self._root}/{path}"
        # A bucket shows a file only when all of it is uploaded; a folder needs another name.
        target = f"{final}.{uuid.uuid4().hex}.partial" if self._local else final
        with _translated("write"):
            self._fs.makedirs(final.rpartition("/")[0], exist_ok=True)
            try:
                with self._fs.open(target, "wb") as file:
                    if self._local:  # the folder may be there before, and open to others
                        os.fchmod(file.fileno(), 0o600)
                    for block in content:
                        file.write(block)
                    if self._local:
                        file.flush()
                        os.fsync(file.fileno())
                if self._local:
                    self._fs.mv(target, final)
            except BaseException:
                with contextlib.suppress(OSError):
                    self._fs.rm_file(target)
                raise

    def _blocks(self, path: str) -> Iterator[bytes]:
        with _translated("read"), self._fs.open(f"{self._root}/{path}", "rb") as file:
            while block := file.read(COPY_BYTES):
                yield block

    def _list(self, folder: str) -> list[str]:
        self._fs.invalidate_cache()
        try:
            with _translated("list"):
                files = self._fs.ls(f"{self._root}/{folder}", detail=False)
        except FileNotFoundError:
            return []
        return [file.rstrip("/").rpartition("/")[2] for file in files]

    def _remove(self, path: str) -> None:
        with contextlib.suppress(FileNotFoundError), _translated("delete"):
            self._fs.rm_file(f"{self._root}/{path}")


def parsed(content: bytes | bytearray, what: str) -> Any:
    """The value of a JSON text. Raises BackupError, which names `what`, if it is not JSON."""
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise BackupError(f"{what} is damaged: it is no JSON") from error


def _path(name: str) -> str:
    return f"objects/{name[:2]}/{name}"


def _check_folder(root: Path) -> None:
    for path in (root, *root.parents):
        if path.exists() and not path.is_dir():
            what = "a file" if path.is_file() else "no folder"
            raise BackupError(f"{path} is {what}; name a folder", hint="")


@contextlib.contextmanager
def _opening(url: str) -> Iterator[None]:
    """Convert every error to BackupError or StoreDown; cloud clients raise types of their own."""
    try:
        yield
    except CallslipError:
        raise
    except (ImportError, ValueError) as error:
        raise BackupError(f"{url} cannot be opened: {error}", hint="") from error
    except OSError as error:
        raise StoreDown(
            f"{url} cannot be reached: {error.strerror or error}",
            hint="Check its address, and try again in a moment.",
        ) from error
    except Exception as error:
        raise BackupError(
            f"{url} cannot be opened: {str(error) or type(error).__name__}",
            hint="Check its address, and its credentials, which come from the environment.",
        ) from error


@contextlib.contextmanager
def _translated(verb: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as error:
        raise StoreDown(
            f"the backup's destination cannot {verb}: {error.strerror or error}"
        ) from error


def _compressed(content: Iterable[bytes]) -> Iterator[bytes]:
    compressor = zlib.compressobj(1)
    for block in content:
        yield compressor.compress(block)
    yield compressor.flush()


def _expanded(content: Iterable[bytes]) -> Iterator[bytes]:
    """Expand at most COPY_BYTES at a time. Raises EOFError if the end is missing."""
    expander = zlib.decompressobj()
    for block in content:
        rest = block
        while rest and not expander.eof:
            yield expander.decompress(rest, COPY_BYTES)
            rest = expander.unconsumed_tail
    yield expander.flush()
    if not expander.eof:
        raise EOFError
