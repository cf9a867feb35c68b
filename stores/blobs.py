"""Stores originals and artifacts of steps in a folder, or by URL in S3 and others (fsspec).

All files of a document are under `documents/ID/`, so that one removal deletes them and no file
belongs to two documents.
"""

import contextlib
import os
import re
import uuid
from collections.abc import Iterator
from typing import IO, Protocol

import fsspec

from callslip.errors import StoreDown

_SAFE = re.compile(r"[0-9A-Za-z_-][0-9A-Za-z._-]*")
_DOCUMENT_ID = re.compile(r"[0-9a-f]{32}")
COPY_BYTES = 1 << 20


def original_name(sha256: str) -> str:
    """The name of a submitted file, for the SHA-256 of its bytes."""
    return f"original-{sha256}"


class Readable(Protocol):
    """A binary stream with the one method that `Blobs.write` needs."""

    def read(self, size: int, /) -> bytes:
        """The next bytes, at most `size`; empty at the end of the stream."""


class Blobs:
    """Whole files by name; a name appears only when its content is complete."""

    def __init__(self, url: str) -> None:
        self._fs, self._root = fsspec.core.url_to_fs(url)
        self._local = "file" in (
            self._fs.protocol if isinstance(self._fs.protocol, tuple) else (self._fs.protocol,)
        )

    def write(self, document_id: str, name: str, content: bytes | Readable) -> None:
        """Store a file atomically. A file with an existing name replaces the stored one."""
        path = self._path(document_id, name)
        partial = f"{path}.{uuid.uuid4().hex}.partial"
        try:
            self._fs.makedirs(path.rpartition("/")[0], exist_ok=True)
            with self._fs.open(partial, "wb") as file:
                if isinstance(content, bytes):
                    file.write(content)
                else:
                    while block := content.read(COPY_BYTES):
                        file.write(block)
                if self._local:
                    file.flush()
                    os.fsync(file.fileno())
            self._fs.mv(partial, path)
            if self._local:
                _keep_name(path)
        except OSError as error:
            with contextlib.suppress(OSError):
                self._fs.rm_file(partial)
            raise StoreDown(f"the blob store cannot write: {error.strerror or error}") from error

    def read(self, document_id: str, name: str) -> bytes:
        """A file's content. Raises FileNotFoundError if the file does not exist."""
        try:
            content: bytes = self._fs.cat_file(self._path(document_id, name))
        except FileNotFoundError:
            raise
        except OSError as error:
            raise StoreDown(f"the blob store cannot read: {error.strerror or error}") from error
        return content

    @contextlib.contextmanager
    def reading(self, document_id: str, name: str) -> Iterator[tuple[int, IO[bytes]]]:
        """A file's size in bytes and its content as a stream. Raises FileNotFoundError."""
        path = self._path(document_id, name)
        try:
            size, file = int(self._fs.size(path)), self._fs.open(path, "rb")
        except FileNotFoundError:
            raise
        except OSError as error:
            raise StoreDown(f"the blob store cannot read: {error.strerror or error}") from error
        with file:
            yield size, file

    def exists(self, document_id: str, name: str) -> bool:
        """Whether the file exists, which means that it is complete."""
        return bool(self._fs.exists(self._path(document_id, name)))

    def names(self, document_id: str) -> set[str]:
        """The names of a document's files."""
        try:
            files = self._fs.ls(self._folder(document_id), detail=False)
        except FileNotFoundError:
            return set()
        except OSError as error:
            raise StoreDown(f"the blob store cannot list: {error.strerror or error}") from error
        return {file.rstrip("/").rpartition("/")[2] for file in files}

    def count(self, document_id: str) -> int:
        """The number of files of a document."""
        try:
            return len(self._fs.find(self._folder(document_id)))
        except FileNotFoundError:
            return 0

    def document_ids(self) -> set[str]:
        """The ids of all documents with a folder; ignores files and folders of other programs."""
        try:
            entries = self._fs.ls(f"{self._root}/documents", detail=True)
        except FileNotFoundError:
            return set()
        except OSError as error:
            raise StoreDown(f"the blob store cannot list: {error.strerror or error}") from error
        folders = (entry["name"] for entry in entries if entry["type"] == "directory")
        names = (folder.rstrip("/").rpartition("/")[2] for folder in folders)
        return {name for name in names if _DOCUMENT_ID.fullmatch(name)}

    def changed_at(self, document_id: str) -> float:
        """The Unix time at which a document's newest file was written; 0 if it has no file."""
        try:
            files = self._fs.find(self._folder(document_id))
            return max((self._fs.modified(file).timestamp() for file in files), default=0.0)
        except FileNotFoundError:
            return 0.0

    def delete(self, document_id: str) -> None:
        """Remove every file of a document. Idempotent."""
        try:
            self._fs.rm(self._folder(document_id), recursive=True)
        except FileNotFoundError:
            pass
        except OSError as error:
            raise StoreDown(f"the blob store cannot delete: {error.strerror or error}") from error

    def _folder(self, document_id: str) -> str:
        if not _SAFE.fullmatch(document_id):
            raise ValueError(f"not a document id: {document_id!r}")
        return f"{self._root}/documents/{document_id}"

    def _path(self, document_id: str, name: str) -> str:
        if not _SAFE.fullmatch(name):
            raise ValueError(f"not a file name: {name!r}")
        return f"{self._folder(document_id)}/{name}"

    def check(self) -> None:
        """Raise StoreDown unless a file can be written and read back."""
        probe = f"probe-{uuid.uuid4().hex}"  # unique: several calls may run at once
        self.write(probe, "probe", probe.encode())
        try:
            if self.read(probe, "probe") != probe.encode():
                raise StoreDown("the blob store gives back other bytes than were written")
        finally:
            self.delete(probe)


def _keep_name(path: str) -> None:
    """Sync the folder of a file, so that the file's name survives a power failure."""
    folder = os.open(os.path.dirname(path), os.O_RDONLY)  # noqa: PTH120 - fsspec's paths are text
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
