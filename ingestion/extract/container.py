"""Extracts files from a file within limits, under safe names."""

import hashlib
import io
import re
import zipfile
from pathlib import PurePosixPath

from callslip.config.settings import MEGABYTE, ExtractSettings
from callslip.errors import ExtractionLimit
from callslip.ingestion.values import Attachment
from callslip.models.text.normalization import normalized

LONGEST_NAME = 512
"""Characters of a member's name with its folders."""

NOT_READ = "attachments that are not read"
"""The kind of files within a file in the warning about what is left out."""

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]+")
"""Control characters, and marks of writing direction, which can show `fdp.exe` as `exe.pdf`."""

_DRIVE = re.compile(r"^[A-Za-z]:")


def open_package(data: bytes, limits: ExtractSettings) -> zipfile.ZipFile:
    """Open a ZIP file that is one document.

    Raises ExtractionLimit if its unpacked size is above a quarter of `limits.memory_mb`.
    """
    archive = zipfile.ZipFile(io.BytesIO(data))
    unpacked = sum(entry.file_size for entry in archive.infolist())
    if unpacked > limits.memory_mb * MEGABYTE // 4:
        raise ExtractionLimit(f"the container unpacks to {unpacked // MEGABYTE:,} MB")
    return archive


class Members:
    """Collects the files that become documents of their own, and counts their number and size."""

    def __init__(self, limits: ExtractSettings) -> None:
        self._limits = limits
        self._size = 0
        self._taken: dict[str, Attachment] = {}

    @property
    def room(self) -> int:
        """The number of bytes that may still be extracted."""
        return self._limits.max_members_mb * MEGABYTE - self._size

    def add(self, name: str, content: bytes) -> None:
        """Add one file; ExtractionLimit if the files are too many or too large together."""
        if len(self._taken) == self._limits.max_members:
            raise ExtractionLimit(
                f"the file holds more than {self._limits.max_members:,} files",
                hint="Send them by themselves, or raise extract.max_members in the settings.",
            )
        if len(content) > self.room:
            raise ExtractionLimit(
                f"the files in it have more than {self._limits.max_members_mb:,} MB",
                hint="Send them by themselves, or raise extract.max_members_mb in the settings.",
            )
        self._size += len(content)
        name = self._free(safe_name(name) or f"unnamed-{len(self._taken) + 1}")
        digest = hashlib.sha256(content).hexdigest()
        self._taken[name] = Attachment(name, digest, len(content), content)

    def all(self) -> tuple[Attachment, ...]:
        """Return the files, in order."""
        return tuple(self._taken.values())

    def _free(self, name: str) -> str:
        """Return the name, with a number appended if it is taken."""
        path, number, free = PurePosixPath(name), 2, name
        while free in self._taken:
            free = str(path.with_name(f"{path.stem} ({number}){path.suffix}"))
            number += 1
        return free


def safe_name(name: str) -> str:
    """Return a relative path of clean parts, without drives and `..`.

    It is empty if no letter and no digit remains.
    """
    name = _CONTROL.sub(" ", normalized("NFC", name.encode("utf-8", "replace").decode()))
    parts = (part.strip() for part in _DRIVE.sub("", name.strip()).replace("\\", "/").split("/"))
    path = "/".join(part for part in parts if part.strip("."))
    if not any(map(str.isalnum, path)):
        return ""
    return path if len(path) <= LONGEST_NAME else _shortened(path)


def _shortened(path: str) -> str:
    """Return a hash of the whole path and the end of the path, which identifies the file best."""
    mark = hashlib.blake2b(path.encode(), digest_size=6).hexdigest()
    return f"{mark}-{path[len(mark) + 1 - LONGEST_NAME :].lstrip('/. ')}"
