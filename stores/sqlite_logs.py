"""Write-ahead logs of SQLite, which keep the size that they once had until someone empties them."""

import logging
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from callslip.config.settings import Settings

BUSY_SECONDS = 1.0
"""Seconds that emptying a log waits for transactions. Until they end, it stays as it is."""

_LOG = "-wal"

log = logging.getLogger(__name__)


def empty_logs(settings: Settings, *, quiet_seconds: float = 0.0) -> int:
    """Write the logs of Callslip's files on this machine into the files; return how many.

    Processes may have the files open. Leaves out logs that were written to within the last
    `quiet_seconds`: to write into a log that has its size is faster than to extend it.
    """
    before = time.time() - quiet_seconds
    return sum(_emptied(path) for path in _logs(settings) if _is_older(path, before))


def _logs(settings: Settings) -> Iterator[Path]:
    yield from settings.data_dir.glob(f"*.db{_LOG}")
    yield from settings.index_dir.glob(f"*/*.db{_LOG}")


def _is_older(path: Path, before: float) -> bool:
    """Tell whether a log has content and was last written before this time."""
    try:
        stat = path.stat()
    except FileNotFoundError:  # its last user closed the file meanwhile
        return False
    return stat.st_size > 0 and stat.st_mtime <= before


def _emptied(path: Path) -> bool:
    file = path.with_name(path.name.removesuffix(_LOG)).absolute().as_uri()
    try:
        opened = sqlite3.connect(f"{file}?mode=rw", timeout=BUSY_SECONDS, uri=True)
        with closing(opened) as connection:
            (busy, *_) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    except sqlite3.Error as error:
        log.warning("the log of %s stays as it is: %s", path.name, error)
        return False
    return not busy
