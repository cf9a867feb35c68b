"""Stores originals and artifacts of steps in a folder, or by URL in S3 and others (fsspec).

All files of a document are under `documents/ID/`, so that one removal deletes them and no file
belongs to two documents.
"""

import contextlib
import os
import re
import uuid
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import IO, Any, Protocol

import fsspec

from callslip.errors import CallslipError, SettingsError, StoreDown, StoreReadOnly
from callslip.per_process import PerProcess
from callslip.stores.disk import is_disk_full

_SAFE = re.compile(r"[0-9A-Za-z_-][0-9A-Za-z._-]*")
_DOCUMENT_ID = re.compile(r"[0-9a-f]{32}")
COPY_BYTES = 1 << 20
WRITERS = 8
"""The most files that all calls of `write_all` in a process write at a time."""

_WRITERS = PerProcess(lambda: ThreadPoolExecutor(WRITERS, "blobs"))

PURGES = "purges"
"""The folder of purge receipts, in the blob store and in a destination of backups."""

BUCKETS = frozenset({"s3", "gs", "abfs"})
"""Protocols of object stores, which have no folders."""


def original_name(sha256: str) -> str:
    """The name of a submitted file, for the SHA-256 of its bytes."""
    return f"original-{sha256}"


class BlobMissing(FileNotFoundError):
    """The blob store has no file of this name."""


class Readable(Protocol):
    """A binary stream with the one method that `Blobs.write` needs."""

    def read(self, size: int, /) -> bytes:
        """The next bytes, at most `size`; empty at the end of the stream."""


class Blobs:
    """Whole files by name; a name appears only when its content is complete."""

    def __init__(self, url: str, endpoint: str | None = None) -> None:
        """Prepare the client; it connects at its first call. `endpoint` is the URL of a server that
        speaks S3.

        Raises SettingsError for a URL whose package is missing or that no package knows.
        """
        try:
            # Another process's files are in no cached listing.
            options = {"endpoint_url": endpoint} if endpoint else {}
            self._fs, self._root = fsspec.core.url_to_fs(url, use_listings_cache=False, **options)
        except (ImportError, ValueError) as error:
            raise SettingsError(
                f"blobs.url: {url.partition(':')[0]}:// cannot be opened: {type(error).__name__}",
                hint="For S3: pip install '/path/to/callslip[s3]'.",
            ) from error
        protocol = self._fs.protocol
        protocols = protocol if isinstance(protocol, tuple) else (protocol,)
        self._local = "file" in protocols
        self._is_bucket = not BUCKETS.isdisjoint(protocols)

    def write(self, document_id: str, name: str, content: bytes | Readable) -> None:
        """Store a file atomically. A file with an existing name replaces the stored one."""
        path = self._path(document_id, name)
        partial = f"{path}.{uuid.uuid4().hex}.partial"
        try:
            if not self._is_bucket:  # there it would make a bucket that is missing
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
        except Exception as error:
            with contextlib.suppress(Exception):
                self._fs.rm_file(partial)
            if isinstance(error, CallslipError):
                raise  # of the content
            raise _down("write", error) from error

    def write_all(
        self, contents: Mapping[tuple[str, str], bytes]
    ) -> dict[tuple[str, str], Exception]:
        """Store files by document id and name, as `write` does; return the errors.

        Several are written at a time: a disk or a server that confirms each takes hardly longer for
        many than for one.
        """

        def write(file: tuple[str, str]) -> Exception | None:
            try:
                self.write(*file, contents[file])
            except Exception as error:
                return error
            return None

        write_each = map if len(contents) < 2 else _WRITERS.get().map
        errors = zip(contents, write_each(write, contents), strict=True)
        return {file: error for file, error in errors if error is not None}

    def read(self, document_id: str, name: str) -> bytes:
        """A file's content. Raises BlobMissing if the file does not exist."""
        path = self._path(document_id, name)
        with _reaching("read"):
            content: bytes = self._fs.cat_file(path)
        return content

    @contextlib.contextmanager
    def reading(self, document_id: str, name: str) -> Iterator[tuple[int, IO[bytes]]]:
        """A file's size in bytes and its content as a stream. Raises BlobMissing."""
        path = self._path(document_id, name)
        with _reaching("read"):
            size, file = int(self._fs.size(path)), self._fs.open(path, "rb")
        with file:
            yield size, file

    def exists(self, document_id: str, name: str) -> bool:
        """Whether the file exists, which means that it is complete."""
        path = self._path(document_id, name)
        with _reaching("list"):
            return bool(self._fs.exists(path))

    def names(self, document_id: str) -> set[str]:
        """The names of a document's files."""
        files = self._listed(document_id, lambda folder: self._fs.ls(folder, detail=False))
        return {file.rstrip("/").rpartition("/")[2] for file in files}

    def files(self, document_id: str) -> list[tuple[str, int, str]]:
        """Name, size in bytes and a mark of the content of each file, by name.

        The mark is a time or an ETag: it changes when a file is written again.
        """
        entries = self._listed(document_id, lambda folder: self._fs.ls(folder, detail=True))
        return sorted(
            (entry["name"].rstrip("/").rpartition("/")[2], int(entry["size"]), _mark(entry))
            for entry in entries
            if not entry["name"].endswith(".partial")
        )

    def is_empty(self) -> bool:
        """Whether no document has a file, as where a folder is not mounted or a bucket is gone."""
        folder = f"{self._root}/documents"
        try:
            with _reaching("list"):
                if self._is_bucket:
                    return not self._fs.exists(folder)
                files = self._fs.ls(folder, detail=False)
        except BlobMissing:
            return True
        return not any(_DOCUMENT_ID.fullmatch(file.rpartition("/")[2]) for file in files)

    def count(self, document_id: str) -> int:
        """The number of files of a document."""
        return len(self._listed(document_id, self._fs.find))

    def document_ids(self) -> set[str]:
        """The ids of all documents with a folder; ignores files and folders of other programs."""
        try:
            with _reaching("list"):
                entries = self._fs.ls(f"{self._root}/documents", detail=True)
        except FileNotFoundError:
            return set()
        folders = (entry["name"] for entry in entries if entry["type"] == "directory")
        names = (folder.rstrip("/").rpartition("/")[2] for folder in folders)
        return {name for name in names if _DOCUMENT_ID.fullmatch(name)}

    def changed_at(self, document_id: str) -> float:
        """The Unix time at which a document's newest file was written; 0 if it has no file."""
        files = self._listed(document_id, self._fs.find)
        try:
            with _reaching("list"):
                return max((self._fs.modified(file).timestamp() for file in files), default=0.0)
        except FileNotFoundError:
            return 0.0

    def delete(self, document_id: str) -> None:
        """Remove every file of a document. Idempotent."""
        folder = self._folder(document_id)
        with contextlib.suppress(FileNotFoundError), _reaching("delete"):
            self._fs.rm(folder, recursive=True)

    def _listed(self, document_id: str, listing: Callable[[str], Any]) -> list[Any]:
        folder = self._folder(document_id)
        try:
            with _reaching("list"):
                return list(listing(folder))
        except FileNotFoundError:
            return []

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


@contextlib.contextmanager
def _reaching(purpose: str) -> Iterator[None]:
    """Raise BlobMissing or StoreDown instead of any error in the block.

    The clients of buckets have errors of their own, which are no OSError.
    """
    try:
        yield
    except FileNotFoundError as error:
        raise BlobMissing(*error.args) from error
    except Exception as error:
        raise _down(purpose, error) from error


def _down(purpose: str, error: Exception) -> StoreDown | StoreReadOnly:
    kind = StoreReadOnly if is_disk_full(error) else StoreDown
    reason = type(error).__name__
    if isinstance(error, OSError):
        reason += f": {error.strerror or error}"
    return kind(f"the blob store cannot {purpose}: {reason}")


def _mark(entry: dict[str, Any]) -> str:
    marks = (entry.get(name) for name in ("ETag", "etag", "mtime", "LastModified", "created"))
    return str(next((mark for mark in marks if mark), ""))


def _keep_name(path: str) -> None:
    """Sync the folder of a file, so that the file's name survives a power failure."""
    folder = os.open(os.path.dirname(path), os.O_RDONLY)  # noqa: PTH120 - fsspec's paths are text
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
