"""Files within a file: looked into within bounds, taken out under names that are safe."""

import hashlib
import io
import re
import zipfile
from pathlib import PurePosixPath

from callslip.errors import ExtractionLimit
from config.settings import MEGABYTE, ExtractSettings
from ingestion.parts import Attachment
from models.normal import normalized

LONGEST_NAME = 512
"""Characters of a member's name with its folders."""

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]+")
"""With the marks that turn the direction of writing, which make `fdp.exe` of `exe.pdf`."""

_DRIVE = re.compile(r"^[A-Za-z]:")


def open_package(data: bytes, limits: ExtractSettings) -> zipfile.ZipFile:
    """A ZIP that is one document; ExtractionLimit where it unpacks to over a quarter of memory."""
    archive = zipfile.ZipFile(io.BytesIO(data))
    unpacked = sum(entry.file_size for entry in archive.infolist())
    if unpacked > limits.memory_mb * MEGABYTE // 4:
        raise ExtractionLimit(f"the container unpacks to {unpacked // MEGABYTE:,} MB")
    return archive


class Members:
    """The files that become documents of their own, counted and weighed as they are taken out."""

    def __init__(self, limits: ExtractSettings) -> None:
        self._limits = limits
        self._size = 0
        self._taken: dict[str, Attachment] = {}

    @property
    def room(self) -> int:
        """How many more bytes may be taken out."""
        return self._limits.max_members_mb * MEGABYTE - self._size

    def add(self, name: str, content: bytes) -> None:
        """Take one; ExtractionLimit when there are too many, or they are too large together."""
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
        """Them, in order."""
        return tuple(self._taken.values())

    def _free(self, name: str) -> str:
        """The name, with a number where it is taken."""
        path, number, free = PurePosixPath(name), 2, name
        while free in self._taken:
            free = str(path.with_name(f"{path.stem} ({number}){path.suffix}"))
            number += 1
        return free


def safe_name(name: str) -> str:
    """A relative path of clean parts, without drives and `..`; empty where nothing is left."""
    name = _CONTROL.sub(" ", normalized("NFC", name.encode("utf-8", "replace").decode()))
    parts = (part.strip() for part in _DRIVE.sub("", name.strip()).replace("\\", "/").split("/"))
    path = "/".join(part for part in parts if part.strip("."))
    return path if len(path) <= LONGEST_NAME else _shortened(path)


def _shortened(path: str) -> str:
    """The end of a long path, which says most, and a hash of all of it."""
    mark = hashlib.blake2b(path.encode(), digest_size=6).hexdigest()
    return f"{mark}-{path[len(mark) + 1 - LONGEST_NAME :].lstrip('/. ')}"
