"""`python -m benchmarks.speed.ingest FOLDER…`: ingests folders of real files in a private stack.

Prints tables. A folder may also be a judged set; each document of its corpus is then a text file.
"""

import argparse
import math
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.private_stack import PrivateStack, private_stack
from benchmarks.speed import extraction, memory
from benchmarks.speed.folders import FILES, gather
from callslip.errors import CallslipError
from callslip.evals.client import JsonClient
from callslip.evals.tables import header, table, tell
from callslip.stores.ledger import STEPS

PAGE_CHARS = 3000
"""The characters of a page, for formats without pages."""

COLLECTION, BATCH = "bench", "bench"
POLL_SECONDS, SAMPLE_SECONDS = 1.0, 2.0
LISTED = 1000


@dataclass
class Memory:
    """MB of each process of the ingest worker, largest first, at each sample."""

    samples: list[tuple[float, ...]] = field(default_factory=list)

    def peaks(self, samples: Sequence[tuple[float, ...]]) -> list[float]:
        """Return the peak memory of the largest process, of the second largest, and so on."""
        width = max(map(len, samples), default=0)
        return [max(s[i] for s in samples if len(s) > i) for i in range(width)]


@dataclass
class Run:
    """The final states of the files, and the time of each step."""

    seconds: float
    states: dict[str, int]
    pages: int
    chunks: int
    steps: dict[str, float]
    """Seconds in each step, summed over documents; two workers spend two of them per second."""


def main() -> None:
    """Measure and print; after a failure, print the reason and exit with 1."""
    options = _options()
    try:
        with tempfile.TemporaryDirectory(prefix="callslip-bench-files-") as folder:
            files = gather(options.folders, options.files, Path(folder))
            tell(f"{len(files)} files, {sum(f.stat().st_size for f in files) / 1e6:.1f} MB")
            print(extraction.shown(extraction.measure(files)), end="\n\n", flush=True)
            with private_stack() as stack, JsonClient(stack.run.api_url) as client:
                print(header(stack.settings), end="\n\n", flush=True)
                with _sampled(stack) as sampled:
                    run = _ingest(client, files)
                print(_step_table(run, len(files)), end="\n\n")
                print(_memory_table(sampled))
    except CallslipError as error:
        sys.exit(f"{error.detail}\n{error.advice}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.speed.ingest", description=__doc__)
    parser.add_argument("folders", type=Path, nargs="+", help="of files, or judged sets")
    parser.add_argument("--files", type=int, default=FILES, help="most of all folders together")
    return parser.parse_args()


def _ingest(client: JsonClient, files: Sequence[Path]) -> Run:
    """Send one file after the other, wait for all; count refused files (empty, too large) too."""
    client.post("/v1/collections", {"name": COLLECTION})
    started, refused = time.perf_counter(), 0
    for number, path in enumerate(files):
        try:
            client.upload(COLLECTION, path, f"{number}-{path.name}", BATCH)
        except CallslipError:
            refused += 1
    while (batch := client.get(f"/v1/batches/{BATCH}"))["left"]:
        tell(f"{batch['submitted'] - batch['left']} of {batch['submitted']} done")
        time.sleep(POLL_SECONDS)
    run = Run(time.perf_counter() - started, batch["states"], 0, 0, defaultdict(float))
    if refused:
        run.states["refused"] = refused
    for item in client.get(f"/v1/batches/{BATCH}/documents", limit=LISTED, state="live")[
        "documents"
    ]:
        _add(run, client.get(f"/v1/documents/{item['document_id']}"))
    return run


def _add(run: Run, document: dict[str, Any]) -> None:
    steps = {step["step"]: step for step in document["steps"]}
    extracted = steps["extract"]["counts"]
    run.pages += extracted["pages"] or math.ceil(extracted["chars"] / PAGE_CHARS)
    run.chunks += steps["upsert"]["counts"]["chunks"]
    for name, step in steps.items():
        run.steps[name] += step["seconds"]


@contextmanager
def _sampled(stack: PrivateStack) -> Iterator[Memory]:
    sampled, stop = Memory(), threading.Event()

    def sample() -> None:
        while not stop.wait(SAMPLE_SECONDS):
            roles = {each.role: each.megabytes for each in memory.by_role(stack.run)}
            sampled.samples.append(roles["ingest"])

    thread = threading.Thread(target=sample)
    thread.start()
    try:
        yield sampled
    finally:
        stop.set()
        thread.join()


def _step_table(run: Run, files: int) -> str:
    total = sum(run.steps.values())
    outside = 1 - run.steps["embed"] / total
    states = ", ".join(f"{count} {state}" for state, count in sorted(run.states.items()))
    rows: list[tuple[str, ...]] = [
        (step, f"{run.steps[step]:.1f}", f"{run.pages / run.steps[step]:.1f}", _share(run, step))
        for step in STEPS
    ]
    rows.append(("all", f"{total:.1f}", f"{run.pages / total:.1f}", "100%"))
    return (
        f"{files} files ({states}), {run.pages:,} pages, {run.chunks:,} chunks in"
        f" {run.seconds:.0f} s: {run.pages / run.seconds:.1f} pages/s with all workers."
        f" Outside the step embed: {outside:.0%} of the time in steps.\n\n"
    ) + table(("Step", "seconds", "pages/s of one worker", "share"), rows)


def _share(run: Run, step: str) -> str:
    return f"{run.steps[step] / sum(run.steps.values()):.0%}"


def _memory_table(sampled: Memory) -> str:
    """Return the peaks in both halves of the run; memory that grows with the folder would show."""
    middle = len(sampled.samples) // 2
    halves = {"first half": sampled.samples[:middle], "second half": sampled.samples[middle:]}
    rows = [
        (name, ", ".join(f"{peak:.0f}" for peak in sampled.peaks(samples)))
        for name, samples in halves.items()
    ]
    return table(("Ingest worker", f"most MB ({memory.unit()}) of each process"), rows)


if __name__ == "__main__":
    main()
