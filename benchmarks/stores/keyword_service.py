"""Measures the service of the keyword index against the folder that a process opens itself.

`python -m benchmarks.stores.keyword_service --chunks 20000`

Both have the same chunks and take turns, batch by batch and query by query. The service is a
process of its own on loopback, so the difference is HTTP, JSON and the change of processes, without
the network between machines. Prints rows of a table in docs/performance.md.
"""

import argparse
import os
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

from benchmarks.stores.tfidf_scale import Library
from callslip.config.load import environment
from callslip.config.settings import KeywordSettings
from callslip.errors import CollectionNotFound, KeywordsDown, StartError
from callslip.evals.tables import table, tell
from callslip.stores.chroma.metadata import chunk_copy
from callslip.stores.fulltext.contract import Entry, Keywords
from callslip.stores.fulltext.index import KeywordFolder
from callslip.stores.fulltext.service import KeywordService
from callslip.stores.properties.filters import parse
from callslip.stores.records import visible
from callslip.workers.supervision.services import LOOPBACK, free_ports

NAME = "bench"
BATCHES = (32, 256)
THREADS = 8
START_SECONDS = 60.0
SHARES = (0.1, 0.5, 0.95)
"""Percentiles of times; the first is what a machine without other work would show."""


def main() -> None:
    """Fill two indexes and measure both."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chunks", type=int, default=20_000)
    parser.add_argument("--queries", type=int, default=300)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="callslip-bench-") as name:
        folder = Path(name)
        with service(folder / "served") as settings, closing(KeywordService(settings)) as client:
            here = KeywordFolder(folder / "here").of(NAME, NAME, _missing)
            sides = (here, client.of(NAME, NAME, _missing))
            for side in sides:
                side.create()
            rows = [*_writes(sides, options.chunks), *_reads(sides, options.queries)]
    head = ("Call", "n", "folder", "service", "service ÷ folder")
    print(f"load {os.getloadavg()[0]:.1f}\n\n{table(head, rows)}")


@contextmanager
def service(folder: Path) -> Iterator[KeywordSettings]:
    """Run `callslip run keyword` on a free port of loopback, with its data in the folder."""
    (port,), key = free_ports(1), secrets.token_hex(16)
    folder.mkdir()
    changed = {"keyword.port": port, "keyword.key": key, "data_dir": folder}
    changed["log.file"] = folder / "log"
    command = [sys.executable, "-m", "callslip.cli", "run", "keyword"]
    settings = KeywordSettings.model_validate({"url": f"http://{LOOPBACK}:{port}", "key": key})
    with subprocess.Popen(command, env=os.environ | environment(changed)) as process:
        try:
            _wait_for(settings)
            yield settings
        finally:
            process.terminate()


def _wait_for(settings: KeywordSettings) -> None:
    deadline = time.monotonic() + START_SECONDS
    with closing(KeywordService(settings)) as client:
        while True:
            try:
                return client.ping(1.0)
            except KeywordsDown as error:
                if time.monotonic() > deadline:
                    raise StartError("The service does not start.") from error
                time.sleep(0.1)


def _writes(sides: Sequence[Keywords], chunks: int) -> Iterator[Sequence[str]]:
    library, start = Library(), 0
    for size, share in zip(BATCHES, (0.1, 0.9), strict=True):
        seconds: list[list[float]] = [[], []]
        number = max(size, int(chunks * share))
        tell(f"{number} chunks in batches of {size}")
        for at in range(start, start + number, size):
            entries = [
                Entry(c.chunk_id, c.terms, visible(c), chunk_copy(c))
                for c in library.chunks(size, at)
            ]
            for side, took in _turn(sides, seconds, at // size):
                took.append(_timed(lambda index=side: index.upsert(entries)))  # type: ignore[misc]  # noqa: B023
        start += number
        rates = [size * len(took) / sum(took) for took in seconds]
        rate = f"upsert, batches of {size}, chunks/s"
        yield rate, str(len(seconds[0])), f"{rates[0]:.0f}", f"{rates[1]:.0f}", _ratio(*rates)


def _reads(sides: Sequence[Keywords], queries: int) -> Iterator[Sequence[str]]:
    library = Library(11)
    questions = [library.terms(8) for _ in range(queries)]
    where = parse({"department": "department 7"}, None)
    wide = parse({"year >=": 2012}, None)
    ids = [hit.chunk_id for hit in sides[0].search(" ".join(questions[:30]), 300, None)]
    calls: dict[str, Callable[[Keywords, str], object]] = {
        "search, 100 hits": lambda index, text: index.search(text, 100, None),
        "search, filtered": lambda index, text: index.search(text, 100, wide),
        "terms of 300 chunks": lambda index, _: index.terms(ids),
        "properties of 300 chunks": lambda index, _: index.properties(ids),
        "count, filtered": lambda index, _: index.count(where),
    }
    for name, call in calls.items():
        tell(name)
        seconds: list[list[float]] = [[], []]
        for number, text in enumerate(questions):
            for side, took in _turn(sides, seconds, number):
                took.append(_timed(lambda index=side: call(index, text)))  # type: ignore[misc]  # noqa: B023
        shown = [" / ".join(_ms(took, share) for share in SHARES) for took in seconds]
        ratios = [_ratio(*(_at(took, share) for took in seconds)) for share in SHARES[:2]]
        yield f"{name}, ms p10 / p50 / p95", str(queries), *shown, " / ".join(ratios)
    tell(f"{THREADS} threads")
    rates = [_at_once(side, questions) for side in sides]
    name = f"searches/s of {THREADS} threads"
    yield name, str(2 * queries), *(f"{rate:.0f}" for rate in rates), _ratio(*rates)


def _at_once(side: Keywords, questions: Sequence[str]) -> float:
    with ThreadPoolExecutor(THREADS) as pool:
        begun = time.perf_counter()
        list(pool.map(lambda text: side.search(text, 100, None), [*questions, *questions]))
        return 2 * len(questions) / (time.perf_counter() - begun)


def _turn(
    sides: Sequence[Keywords], seconds: Sequence[list[float]], number: int
) -> Iterator[tuple[Keywords, list[float]]]:
    """Both sides; each is the first one every other time."""
    pairs = list(zip(sides, seconds, strict=True))
    return iter(pairs if number % 2 else pairs[::-1])


def _timed(act: Callable[[], object]) -> float:
    begun = time.perf_counter()
    act()
    return time.perf_counter() - begun


def _at(took: Sequence[float], share: float) -> float:
    return sorted(took)[int(share * (len(took) - 1))]


def _ms(took: Sequence[float], share: float) -> str:
    return f"{1000 * _at(took, share):.1f}"


def _ratio(folder: float, served: float) -> str:
    return f"{served / folder:.2f}"


def _missing() -> CollectionNotFound:
    return CollectionNotFound("the index of the benchmark is gone")


if __name__ == "__main__":
    main()
