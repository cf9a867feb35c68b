"""The file server's own folder: a file appears complete and never replaces another file."""

import os
import shutil
import stat
import time
from contextlib import suppress
from pathlib import Path
from typing import IO

from callslip.compat.annotator import names
from callslip.errors import NotFound, StoreReadOnly

SWEEP_SECONDS = 600.0

_SWEPT, _DRAFT = ".swept", ".draft-"
"""Names of the folder's own files. No file name begins with a dot, so these are never served."""


class Folder:
    """The folder of the file server; `write` also removes files older than `keep_days`.

    Threads and processes may share it.
    """

    def __init__(self, path: Path, keep_days: float | None = None) -> None:
        self._path, self._keep_days = path, keep_days

    def write(self, content: IO[bytes], name: str) -> str:
        """Write a file; return its name, a new one if a different file has the requested name.

        Raises StoreReadOnly if the file cannot be written.
        """
        draft = self._path / f"{_DRAFT}{names.random(20)}"
        try:
            self._path.mkdir(parents=True, exist_ok=True)
            self._sweep()
            with draft.open("xb") as file:
                shutil.copyfileobj(content, file)
                file.flush()
                os.fsync(file.fileno())
            return self._publish(draft, name)
        except OSError as error:
            raise StoreReadOnly(
                f"the file server cannot keep a file ({type(error).__name__})"
            ) from error
        finally:
            with suppress(OSError):
                draft.unlink()

    def read(self, name: str) -> bytes:
        """Return a file's content; raise NotFound if there is no file of this name."""
        with self.open(name) as file:
            return file.read()

    def open(self, name: str) -> IO[bytes]:
        """Open the file of this name for reading; raise NotFound if there is none."""
        path = self._path / names.checked(name)
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
        except OSError:
            raise NotFound("there is no file of this name") from None
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise NotFound("there is no file of this name")
        return os.fdopen(descriptor, "rb")

    def _publish(self, draft: Path, name: str) -> str:
        tried = name
        while True:
            try:
                os.link(draft, self._path / tried)  # a rename would replace an existing file
                return tried
            except FileExistsError:
                if _same(draft, self._path / tried):
                    return tried
                tried = names.numbered(name)

    def _sweep(self) -> None:
        if self._keep_days is None:
            return
        marker, now = self._path / _SWEPT, time.time()
        with suppress(FileNotFoundError):
            if now - marker.stat().st_mtime < SWEEP_SECONDS:
                return
        marker.touch()
        for path in self._path.iterdir():
            with suppress(OSError):
                if path != marker and now - path.stat().st_mtime > self._keep_days * 86_400:
                    path.unlink()


def _same(one: Path, other: Path) -> bool:
    with suppress(OSError):
        if one.stat().st_size == other.stat().st_size:
            return one.read_bytes() == other.read_bytes()
    return False
