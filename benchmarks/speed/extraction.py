"""Compare our readers with each format's library: `python -m benchmarks.speed.extraction FOLDER…`.

A folder has only one or two small files of many formats, which is too few to measure. So the
benchmark makes the requested number of files from the folders' texts, in each format that it can
write.
"""

import argparse
import math
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import psutil

from benchmarks.speed import made_files
from benchmarks.speed.alone import ALONE
from benchmarks.speed.folders import FILES, gather
from callslip.config.settings import ExtractSettings
from callslip.errors import CallslipError
from callslip.evals.tables import table, tell
from callslip.ingestion.isolation.process import Extractor

ROUNDS = 5
"""The number of runs; the fastest counts, because other work on the machine only adds time."""


@dataclass
class Ratio:
    """Processor seconds for all files of one media type, in both of Callslip's processes and alone.

    On a machine with other work, wall time would measure mostly that work.
    """

    media_type: str
    files: int = 0
    megabytes: float = 0.0
    ours: float = 0.0
    alone: float = 0.0


def measure(paths: Sequence[Path]) -> list[Ratio]:
    """Time Callslip and the library in turns, file by file.

    Files that Callslip refuses or reads by OCR, and formats without a library in `ALONE`, are
    skipped.
    """
    ratios: dict[str, Ratio] = {}
    with Extractor(ExtractSettings(ocr="off")) as extractor:
        for path in paths:
            data = path.read_bytes()
            with suppress(CallslipError):
                media_type = extractor.extract(data, path.name).media_type
                if media_type not in ALONE:
                    continue
                read, ours, alone = partial(_ours, extractor, path.name), [], []
                for _ in range(ROUNDS):
                    ours.append(_seconds(read, data))
                    alone.append(_seconds(ALONE[media_type], data))
                ratio = ratios.setdefault(media_type, Ratio(media_type))
                ratio.files += 1
                ratio.megabytes += len(data) / 1e6
                ratio.ours += min(ours)
                ratio.alone += min(alone)
    return sorted(ratios.values(), key=lambda ratio: -ratio.alone)


def _seconds(read: Callable[[bytes], object], data: bytes) -> float:
    children = psutil.Process().children()
    started = _spent(children)
    with suppress(Exception):  # a library may fail on a file that Callslip reads
        read(data)
    try:
        return _spent(children) - started
    except psutil.NoSuchProcess:  # Callslip sometimes replaces a child process
        return math.inf


def _spent(children: Sequence[psutil.Process]) -> float:
    """Return the processor seconds of this thread and of the children."""
    return time.thread_time() + sum(map(_spent_by, children))


def _spent_by(child: psutil.Process) -> float:
    """Return the processor seconds of a child.

    On Linux psutil counts hundredths of a second, while the scheduler counts nanoseconds.
    """
    schedstat = Path(f"/proc/{child.pid}/schedstat")
    if schedstat.exists():
        return int(schedstat.read_text().split()[0]) / 1e9
    times = child.cpu_times()
    return float(times.user + times.system)


def _ours(extractor: Extractor, name: str, data: bytes) -> int:
    return len(extractor.extract(data, name).text)


def shown(ratios: Sequence[Ratio]) -> str:
    """Return the ratios as a table."""
    rows = [
        (
            each.media_type,
            str(each.files),
            f"{each.megabytes:.1f}",
            f"{1000 * each.ours:.0f}",
            f"{1000 * each.alone:.0f}",
            f"{each.ours / each.alone:.2f}",
        )
        for each in ratios
    ]
    head = ("Extraction", "files", "MB", "Callslip, ms", "library alone, ms", "ratio")
    return table(head, rows)


def main() -> None:
    """Measure and print; after a failure, print the reason and exit with 1."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.speed.extraction", description=__doc__
    )
    parser.add_argument("folders", type=Path, nargs="+", help="of files, or judged sets")
    parser.add_argument("--files", type=int, default=FILES, help="most of all folders together")
    parser.add_argument("--made", type=int, default=20, help="files to make of each format")
    options = parser.parse_args()
    try:
        with tempfile.TemporaryDirectory(prefix="callslip-extraction-") as folder:
            scratch = Path(folder)
            files = gather(options.folders, options.files, scratch)
            made = made_files.write(files, scratch, options.made)
            tell(f"{len(files)} files and {len(made)} made of them")
            print("Files of the folders:", shown(measure(files)), sep="\n\n", end="\n\n")
            if made:
                print("Files made of them:", shown(measure(made)), sep="\n\n")
    except CallslipError as error:
        sys.exit(f"{error.detail}\n{error.advice}")


if __name__ == "__main__":
    main()
