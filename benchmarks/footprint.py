"""`python -m benchmarks.footprint FOLDER…`: memory and disk of a private stack.

Prints the memory of each role at rest, at the peak while files of the folders are ingested, after
searches and answers, and after the idle time, which is shorter than by default; then the disk by
part, once the stack has stopped.
"""

import argparse
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from benchmarks.private_stack import private_stack
from benchmarks.speed import memory
from benchmarks.speed.folders import gather
from callslip.errors import CallslipError
from callslip.evals.client import JsonClient
from callslip.evals.tables import header, table, tell
from callslip.workers.supervision.runfile import RunFile

COLLECTION = "bench"
LARGEST = 150_000
"""Bytes; larger files would make a short run one of few documents."""

START_SECONDS = 20.0
"""The answer worker loads its models after it is ready."""

REST_SECONDS, SAMPLE_SECONDS = 5.0, 3.0
IDLE_SECONDS = 60.0
"""The idle time: longer than the searches and answers after the last document take."""

QUESTIONS = ("How many days of leave?", "출산 장려금은 얼마인가요?")
PARTS = ("blobs", "ledger.db", "keyword", "chroma", "valkey", "conversations.db")


def main() -> None:
    """Measure and print."""
    options = _options()
    with tempfile.TemporaryDirectory(prefix="callslip-bench-footprint-") as folder:
        scratch, home = Path(folder, "files"), Path(folder, "home")
        scratch.mkdir()
        files = gather(options.folders, 4 * options.files, scratch)
        files = [file for file in files if 0 < file.stat().st_size < LARGEST][: options.files]
        with private_stack(home):
            tell("the first start has prepared the models")
        environ = {"CALLSLIP_INGEST__IDLE_SECONDS": str(IDLE_SECONDS)}
        with private_stack(home, environ) as stack, JsonClient(stack.run.api_url) as client:
            print(header(stack.settings), end="\n\n", flush=True)
            time.sleep(START_SECONDS)
            samples = {"at rest": _sizes(stack.run)}
            samples["peak while ingesting"] = _peak(client, stack.run, files)
            for question in QUESTIONS:
                client.post("/v1/search", {"collection": COLLECTION, "query": question})
                client.post("/v1/answer", {"collection": COLLECTION, "question": question})
            time.sleep(REST_SECONDS)
            samples["at rest after use"] = _sizes(stack.run)
            time.sleep(IDLE_SECONDS + REST_SECONDS)
            samples["at rest after the idle time"] = _sizes(stack.run)
        print(_memory_table(samples), _disk_table(home, files), sep="\n\n")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, prog="python -m benchmarks.footprint")
    parser.add_argument("folders", type=Path, nargs="+", help="of files, or judged sets")
    parser.add_argument("--files", type=int, default=24, help="most of all folders together")
    return parser.parse_args()


def _sizes(run: RunFile) -> dict[str, float]:
    return {each.role: sum(each.megabytes) for each in memory.by_role(run)}


def _peak(client: JsonClient, run: RunFile, files: Sequence[Path]) -> dict[str, float]:
    client.post("/v1/collections", {"name": COLLECTION})
    for number, path in enumerate(files):
        with suppress(CallslipError):  # an empty file, or of an unknown type
            client.upload(COLLECTION, path, f"{number}-{path.name}", COLLECTION)
    peak = _sizes(run)
    while left := client.get(f"/v1/batches/{COLLECTION}")["left"]:
        tell(f"{left} left")
        peak = max(peak, _sizes(run), key=lambda sizes: sum(sizes.values()))
        time.sleep(SAMPLE_SECONDS)
    return peak


def _memory_table(samples: dict[str, dict[str, float]]) -> str:
    roles = next(iter(samples.values()))
    rows = [(role, *(f"{sizes.get(role, 0):.0f}" for sizes in samples.values())) for role in roles]
    rows.append(("all", *(f"{sum(sizes.values()):.0f}" for sizes in samples.values())))
    return table((f"MB ({memory.unit()})", *samples), rows)


def _disk_table(home: Path, files: Sequence[Path]) -> str:
    originals = sum(file.stat().st_size for file in files)
    sizes = {
        part: sum(
            file.stat().st_size
            for top in home.glob(f"{part}*")
            for file in (top, *top.rglob("*"))
            if file.is_file()
        )
        for part in PARTS
    }
    rows = [(part, f"{size / 1e6:.2f}", f"{size / originals:.1f}") for part, size in sizes.items()]
    total = sum(sizes.values())
    rows.append(("all", f"{total / 1e6:.2f}", f"{total / originals:.1f}"))
    of_files = f"{len(files)} files, {originals / 1e6:.2f} MB"
    return table((f"Disk ({of_files})", "MB", "times the originals"), rows)


if __name__ == "__main__":
    main()
