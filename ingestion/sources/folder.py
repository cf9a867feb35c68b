"""Reads a folder of this machine, or a bucket's prefix, through fsspec: every file below it."""

import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, Any
from urllib.parse import quote

import fsspec

from callslip.config.settings import MEGABYTE
from callslip.errors import SettingsError, SourceDown, SourceError
from callslip.ingestion.sources.items import BLOCK_BYTES, Fetching, Item, Tick, too_large

_MODIFIED = ("mtime", "LastModified", "last_modified", "updated", "modified", "created")
_ETAG = ("ETag", "etag", "md5Hash", "content_md5")


class Folder:
    """The files below a root, without hidden files and links."""

    def __init__(self, url: str, *, most_mb: int, timeout_seconds: float) -> None:
        self._url, self._most_mb, self._timeout = url.rstrip("/"), most_mb, timeout_seconds
        try:
            self._fs, self._root = fsspec.core.url_to_fs(url)
        except ImportError:
            raise SettingsError(
                f"{url.partition(':')[0]} needs a package that is not installed",
                hint="For S3: pip install '/path/to/callslip[s3]', where the ingest workers run.",
            ) from None
        self._root = self._root.rstrip("/")
        self._local = url.startswith("file:")
        self.complete = False

    def items(self) -> Iterator[Item]:
        """List every file, folder by folder; an unreadable folder makes the listing incomplete.

        Raises SourceDown or SourceError if the root itself cannot be listed.
        """
        self.complete = False
        self._fs.invalidate_cache()  # a cached listing would hide new files
        skipped = False
        waiting = [self._root]
        while waiting:
            folder = waiting.pop()
            try:
                with _as_source_down(self._url):
                    infos = self._fs.ls(folder, detail=True)
            except (SourceDown, SourceError):
                if folder == self._root:
                    raise
                skipped = True
                continue
            for info in sorted(infos, key=lambda info: str(info["name"])):
                path = str(info["name"]).rstrip("/")
                if path.rpartition("/")[2].startswith(".") or path == self._root:
                    continue
                if info["type"] == "directory":
                    waiting.append(path)
                elif info["type"] == "file":
                    yield self._item(path, info)
        self.complete = not skipped

    def address(self, item: Item) -> str:
        """Return the file's URL."""
        return f"{self._url}/{quote(item.path)}"

    def close(self) -> None:
        """Do nothing: fsspec keeps its clients for the next source."""

    def fetch(self, item: Item, known: Item | None, tick: Tick) -> Fetching:
        """Open the file; the listing has already shown that it changed."""
        if item.size is not None and item.size > self._most_mb * MEGABYTE:
            raise too_large(item.path, self._most_mb)
        tick()
        with _as_source_down(item.path):
            file = self._open(f"{self._root}/{item.path}")
        return Fetching(self._blocks(file, item), lambda: self._unmoved(item))

    def _item(self, path: str, info: dict[str, Any]) -> Item:
        size = info.get("size")
        return Item(
            path.removeprefix(self._root).lstrip("/"),
            etag=_first(info, _ETAG)[:512],
            modified=_first(info, _MODIFIED)[:64],
            size=None if size is None else int(size),
        )

    def _open(self, path: str) -> IO[bytes]:
        if not self._local:
            opened: IO[bytes] = self._fs.open(path, "rb", cache_type="readahead")
            return opened
        # A file may have become a link or a pipe since the listing.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise SourceError(f"{path!r} is no regular file")
        return os.fdopen(descriptor, "rb")

    def _blocks(self, file: IO[bytes], item: Item) -> Iterator[bytes]:
        until = time.monotonic() + self._timeout
        with file:
            while True:
                with _as_source_down(item.path):
                    block = file.read(BLOCK_BYTES)
                if not block:
                    return
                if time.monotonic() > until:
                    raise SourceDown(f"{item.path!r} took more than {self._timeout:g} s")
                yield block

    def _unmoved(self, item: Item) -> Item:
        """Return the item; SourceDown if the file changed while it was read."""
        path = f"{self._root}/{item.path}"
        with _as_source_down(item.path):
            self._fs.invalidate_cache(path.rpartition("/")[0])
            now = self._item(path, self._fs.info(path))
        if now != item:
            raise SourceDown(f"{item.path!r} is being written")
        return item


def _first(info: dict[str, Any], names: tuple[str, ...]) -> str:
    moment = next((info[name] for name in names if info.get(name)), None)
    if moment is None:
        return ""
    as_time: Callable[[], float] | None = getattr(moment, "timestamp", None)
    return str(as_time() if as_time is not None else moment).strip('"')


@contextmanager
def _as_source_down(what: str) -> Iterator[None]:
    """Convert every error to SourceDown or SourceError; cloud clients raise types of their own."""
    try:
        yield
    except (SourceDown, SourceError):
        raise
    except FileNotFoundError:
        raise SourceError(f"{what!r} is not there") from None
    except PermissionError:
        raise SourceError(f"{what!r} may not be read", hint="Check its permissions.") from None
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise SourceDown(f"{what!r} cannot be read: {reason}") from None
    except Exception as error:
        raise SourceDown(f"{what!r} cannot be read: {type(error).__name__}") from None
