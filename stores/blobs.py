"""Originals and artifacts of steps: a folder by default, S3 and the like by URL (fsspec).

Everything of a document lies under `documents/ID/`, so that deleting it is one removal and no file
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
    """The name of the bytes that were submitted."""
    return f"original-{sha256}"


class Readable(Protocol):
    """A binary stream, as far as writing needs one."""

    def read(self, size: int, /) -> bytes:
        """The next bytes, at most so many; none at its end."""


class Blobs:
    """Whole files by name; a name appears only when its content is complete."""

    def __init__(self, url: str) -> None:
        self._fs, self._root = fsspec.core.url_to_fs(url)
        self._local = "file" in (
            self._fs.protocol if isinstance(self._fs.protocol, tuple) else (self._fs.protocol,)
        )

    def write(self, document_id: str, name: str, content: bytes | Readable) -> None:
        """Store a file, atomically; the same name again replaces. Bytes or a binary stream."""
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
        """A file's content; FileNotFoundError where there is none."""
        try:
            content: bytes = self._fs.cat_file(self._path(document_id, name))
        except FileNotFoundError:
            raise
        except OSError as error:
            raise StoreDown(f"the blob store cannot read: {error.strerror or error}") from error
        return content

    @contextlib.contextmanager
    def reading(self, document_id: str, name: str) -> Iterator[tuple[int, IO[bytes]]]:
        """A file's size in bytes and its content as a stream; FileNotFoundError where none is."""
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
        """Whether the file is there, whole."""
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
        """How many files a document has."""
        try:
            return len(self._fs.find(self._folder(document_id)))
        except FileNotFoundError:
            return 0

    def document_ids(self) -> set[str]:
        """Ids of every document that has a folder; what else lies beside them is not ours."""
        try:
            found = self._fs.ls(f"{self._root}/documents", detail=True)
        except FileNotFoundError:
            return set()
        except OSError as error:
            raise StoreDown(f"the blob store cannot list: {error.strerror or error}") from error
        folders = (entry["name"] for entry in found if entry["type"] == "directory")
        names = (folder.rstrip("/").rpartition("/")[2] for folder in folders)
        return {name for name in names if _DOCUMENT_ID.fullmatch(name)}

    def changed_at(self, document_id: str) -> float:
        """When a document's newest file was written (Unix time); 0 where it has none."""
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
        probe = f"probe-{uuid.uuid4().hex}"  # of this call alone: many may look at once
        self.write(probe, "probe", probe.encode())
        try:
            if self.read(probe, "probe") != probe.encode():
                raise StoreDown("the blob store gives back other bytes than were written")
        finally:
            self.delete(probe)


def _keep_name(path: str) -> None:
    """A name outlives a power cut only when its folder was written out too."""
    folder = os.open(os.path.dirname(path), os.O_RDONLY)  # noqa: PTH120 - fsspec's paths are text
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
