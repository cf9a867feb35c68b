"""Makes the files of a graph in the own format of a runtime, which all processes map."""

import errno
import logging
import os
import shutil
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from filelock import FileLock

log = logging.getLogger(__name__)

T = TypeVar("T")

ROOM = 4
"""Free bytes of the disk that a conversion needs, in sizes of the graph."""


@dataclass(frozen=True)
class Conversion:
    """How a runtime makes its files of a graph."""

    runtime: str
    edition: str
    """The version of the runtime and of the program: files of other editions are removed."""
    suffix: str
    """The ending of the topology's file; the weights' file ends with `.bin`."""
    program: str
    """Python that writes the topology, its second argument, and the weights beside it.

    The first argument is the graph. It loads what it has written, to fail where that is damaged.
    """
    variant: str = ""
    """Files of other variants of an edition stay."""


def load(graph: Path, conversion: Conversion, use: Callable[[Path, Path], T]) -> T | None:
    """Return what `use` makes of the files of a graph, topology and weights.

    Return None, with a warning in the log, if the files cannot be made (the disk is full, the
    folder is read-only), or if `use` fails (the memory is too small).
    """
    try:
        files = converted(graph, conversion)
    except (OSError, subprocess.CalledProcessError) as error:
        reason = error if isinstance(error, OSError) else f"exit code {error.returncode}"
        log.warning("%s is not converted (%s): it takes more memory", graph.name, reason)
        return None
    try:
        return use(*files)
    except Exception as error:  # the runtimes' own have no class in common
        name = type(error).__name__
        log.warning("%s cannot be used (%s): it takes more memory", files[0].name, name)
        return None


def converted(graph: Path, conversion: Conversion) -> tuple[Path, Path]:
    """Return the files of a graph, topology and weights, which lie beside it.

    They are made once, in a separate process, whose end frees its memory, and again, with a warning
    in the log, where they no longer have the checksums of then. Raises OSError or
    subprocess.CalledProcessError if they cannot be made.
    """
    common = f"{graph.stem}-{conversion.runtime}"
    of_edition = f"{common}-{conversion.edition}"
    stem = f"{of_edition}-{conversion.variant}" if conversion.variant else of_edition
    topology = graph.with_name(f"{stem}{conversion.suffix}")
    weights = graph.with_name(f"{stem}.bin")
    record = graph.with_name(f"{stem}.crc32")

    def are_made() -> bool:
        try:
            return record.read_text("ascii", "replace") == _checksums(topology, weights)
        except FileNotFoundError:
            return False

    if not are_made():
        with FileLock(graph.with_name(f"{common}.lock")):
            if not are_made():
                if record.exists():
                    log.warning("%s or %s is damaged: made again", topology.name, weights.name)
                for left in graph.parent.glob(f"{common}.build-*"):  # by a process that was killed
                    shutil.rmtree(left, ignore_errors=True)
                _make(graph, (topology, weights, record), conversion.program, f"{common}.build-")
                for file in graph.parent.glob(f"{common}-*"):
                    if file.stem != of_edition and not file.stem.startswith(f"{of_edition}-"):
                        with suppress(OSError):
                            file.unlink()
    return topology, weights


def _make(graph: Path, files: tuple[Path, Path, Path], program: str, prefix: str) -> None:
    """Make topology, weights and their record in a new folder; put them in place once complete."""
    if shutil.disk_usage(graph.parent).free < ROOM * graph.stat().st_size:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=graph.parent))
    topology, weights, record = (folder / file.name for file in files)
    try:
        subprocess.run((sys.executable, "-c", program, str(graph), str(topology)), check=True)
        record.write_text(_checksums(topology, weights))
        for file in files:
            with (folder / file.name).open("rb") as written:
                os.fsync(written.fileno())
            (folder / file.name).replace(file)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _checksums(*files: Path) -> str:
    """Return the CRC-32 of each file, which takes .3 s for a GB. Raises OSError."""
    checksums = []
    for file in files:
        checksum = 0
        with file.open("rb") as content:
            while block := content.read(1 << 20):
                checksum = zlib.crc32(block, checksum)
        checksums.append(f"{checksum:08x}")
    return " ".join(checksums)
