"""Free space of the data folder: below a mark, nothing is taken in and no step begins."""

import errno
import os
from pathlib import Path

from callslip.config.settings import MEGABYTE, Settings
from callslip.errors import DiskFull

STEPS_SHARE = 0.5
"""The share of `ingest.min_free_mb` below which no step begins: the documents that were taken in
before need room too."""

NO_ROOM = "the disk of data_dir is full"

_FULL = {errno.ENOSPC, errno.EDQUOT}


def free_bytes(folder: Path) -> int:
    """The bytes that this process may still write on the disk of a folder, which may be missing."""
    there = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    stats = os.statvfs(there)
    return stats.f_bavail * stats.f_frsize


def check_space(settings: Settings, share: float = 1.0) -> None:
    """Raise DiskFull if data_dir has less room than this share of `ingest.min_free_mb`."""
    least = int(settings.ingest.min_free_mb * MEGABYTE * share)
    free = free_bytes(settings.data_dir)
    if free < least:
        raise DiskFull(
            f"{free // MEGABYTE} MB are free on the disk of data_dir, at least"
            f" {least // MEGABYTE} are needed"
        )


def is_disk_full(error: BaseException) -> bool:
    """Whether the system refused a write because the disk, or a quota, is full."""
    return isinstance(error, OSError) and error.errno in _FULL
