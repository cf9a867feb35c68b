"""`python -m evals.extraction FOLDER…`: reading files beside the library of their format alone.

Of many formats a folder holds one or two small files, of which nothing can be learned: so as many
as asked for are made of the folders' texts, of each format that can be written here.
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

from callslip.errors import CallslipError
from config.settings import ExtractSettings
from evals import made_files
from evals.alone import ALONE
from evals.folders import FILES, gather
from evals.tables import table, tell
from ingestion.isolation import Extractor

ROUNDS = 5
"""The best of these counts: what else the machine does only ever adds to a time."""


@dataclass
class Ratio:
    """Processor seconds for all files of one media type: Callslip in both processes, the library.

    Not those of the clock, which on a machine with other work say more of that.
    """

    media_type: str
    files: int = 0
    megabytes: float = 0.0
    ours: float = 0.0
    alone: float = 0.0


def measure(paths: Sequence[Path]) -> list[Ratio]:
    """Time both in turns, file by file; those that Callslip refuses or has no library for not."""
    found: dict[str, Ratio] = {}
    with Extractor(ExtractSettings()) as extractor:
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
                ratio = found.setdefault(media_type, Ratio(media_type))
                ratio.files += 1
                ratio.megabytes += len(data) / 1e6
                ratio.ours += min(ours)
                ratio.alone += min(alone)
    return sorted(found.values(), key=lambda ratio: -ratio.alone)


def _seconds(read: Callable[[bytes], object], data: bytes) -> float:
    children = psutil.Process().children()
    started = _spent(children)
    with suppress(Exception):  # a library that gives up where Callslip reads on
        read(data)
    try:
        return _spent(children) - started
    except psutil.NoSuchProcess:  # a child is replaced from time to time
        return math.inf


def _spent(children: Sequence[psutil.Process]) -> float:
    """Processor seconds of this thread and of the children."""
    return time.thread_time() + sum(map(_spent_by, children))


def _spent_by(child: psutil.Process) -> float:
    """psutil counts in hundredths of a second on Linux, whose scheduler counts nanoseconds."""
    told = Path(f"/proc/{child.pid}/schedstat")
    if told.exists():
        return int(told.read_text().split()[0]) / 1e9
    times = child.cpu_times()
    return float(times.user + times.system)


def _ours(extractor: Extractor, name: str, data: bytes) -> int:
    return len(extractor.extract(data, name).text)


def shown(found: Sequence[Ratio]) -> str:
    """As a table."""
    rows = [
        (
            each.media_type,
            str(each.files),
            f"{each.megabytes:.1f}",
            f"{1000 * each.ours:.0f}",
            f"{1000 * each.alone:.0f}",
            f"{each.ours / each.alone:.2f}",
        )
        for each in found
    ]
    head = ("Extraction", "files", "MB", "Callslip, ms", "library alone, ms", "ratio")
    return table(head, rows)


def main() -> None:
    """Measure and print; a failure prints what is wrong and exits with 1."""
    parser = argparse.ArgumentParser(prog="python -m evals.extraction", description=__doc__)
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
