"""`python -m benchmarks.speed.unchanged [--files N]`: ingests an unchanged folder again.

The ledger of a private stack gets the documents of N small files, all live, as copies of one row.
Then `callslip ingest FOLDER` runs several times, and a source of some of the files is looked at in
this process. Prints the best of the rounds; the figures of the command contain its start.
"""

import argparse
import hashlib
import math
import resource
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import psutil
from sqlalchemy import Connection, Table, create_engine, insert, select, update

from benchmarks.private_stack import private_stack
from callslip.config.keys import PREFIX
from callslip.config.settings import Settings
from callslip.errors import CallslipError, EvaluationError
from callslip.evals.tables import header, table, tell
from callslip.ingestion.sources.folder import Folder
from callslip.ingestion.sources.sync import Crawl, sync
from callslip.stores.blobs import Blobs
from callslip.stores.ledger import Ledger, Submission
from callslip.stores.ledger.base import schema
from callslip.stores.records import CollectionSchema, VectorSpec
from callslip.workers.supervision.runfile import RunFile

FILES, OF_SOURCE, PER_FOLDER, ROUNDS = 5000, 500, 100, 3

COLLECTION = "bench"

LEASE_SECONDS = 3600.0


def main() -> None:
    """Measure and print; after a failure, print the reason and exit with 1."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.speed.unchanged", description=__doc__
    )
    parser.add_argument("--files", type=int, default=FILES)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="callslip-bench-") as scratch:
        home = Path(scratch)
        try:
            files = _files(home / "folder", options.files)
            settings = Settings(data_dir=home / "data")
            settings.data_dir.mkdir()
            _fill(settings, home / "folder", files)
            with private_stack(settings.data_dir, {f"{PREFIX}EMBEDDER__KIND": "none"}) as stack:
                print(header(stack.settings), end="\n\n", flush=True)
                command = [str(Path(sys.executable).with_name("callslip")), "ingest"]
                command += [str(home / "folder"), "-c", COLLECTION, "--url", stack.run.api_url]
                by_command = [
                    _rates(
                        lambda: _run(command, len(files)), len(files), partial(_spent, stack.run)
                    )
                    for _ in range(ROUNDS)
                ]
            by_source = _by_source(home)
        except CallslipError as error:
            sys.exit(f"{error.detail}\n{error.advice}")
    rows = [
        (what, f"{count:,}", *(f"{max(rates):,.0f}" for rates in zip(*rounds, strict=True)))
        for what, count, rounds in (
            ("`callslip ingest FOLDER`", len(files), by_command),
            ("a run over a source", OF_SOURCE, by_source),
        )
    ]
    head = ("Unchanged files", "files", "files/s", "files in a second of processor time")
    print(table(head, rows))


def _files(folder: Path, count: int) -> list[Path]:
    files = [folder / str(n // PER_FOLDER) / f"{n}.txt" for n in range(count)]
    for number, path in enumerate(files):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"Notice {number}: the counter is open from nine to five.\n" * 20)
    return files


def _fill(settings: Settings, folder: Path, files: list[Path]) -> None:
    """Record a live document of each file: the first by the ledger, the others as its copies."""
    tell(f"{len(files)} documents")
    with closing(Ledger(settings.ledger_url)) as ledger:
        ledger.create()
        made = CollectionSchema(COLLECTION, VectorSpec(1, normalized=True))
        ledger.collections.create(made, store="chroma", embedder="none", analyzer="2")
        first = Submission("first", "first", "", "0" * 64, 1, {})
        ledger.documents.submit(COLLECTION, first, uuid.uuid4().hex)
    documents, versions = schema.documents, schema.versions
    engine = create_engine(settings.ledger_url)
    with engine.begin() as connection:
        connection.execute(update(versions).values(state="live", turn=None))
        connection.execute(update(documents).values(live_version=1))
        document, version = _row(connection, documents), _row(connection, versions)
        named = [
            (uuid.uuid4().hex, path, hashlib.sha256(path.read_bytes()).hexdigest())
            for path in files
        ]
        connection.execute(
            insert(documents),
            [
                document | {"document_id": one, "name": path.relative_to(folder).as_posix()}
                for one, path, _ in named
            ],
        )
        connection.execute(
            insert(versions),
            [
                version | {"document_id": one, "filename": path.name, "sha256": sha256}
                for one, path, sha256 in named
            ],
        )
    engine.dispose()


def _row(connection: Connection, rows: Table) -> dict[str, Any]:
    row = connection.execute(select(rows)).one()._mapping
    return {column.key: row[column] for column in rows.c}


def _run(command: list[str], files: int) -> None:
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if f"{files} unchanged" not in done.stdout:
        raise EvaluationError(f"the files were not unchanged: {done.stdout}{done.stderr}")


def _rates(
    work: Callable[[], object], count: int, spent: Callable[[], float]
) -> tuple[float, float]:
    """Return files a second, and files in a second of the processor time that `spent` counts."""
    before, started = spent(), time.perf_counter()
    work()
    return count / (time.perf_counter() - started), count / (spent() - before)


def _spent(run: RunFile) -> float:
    """Return the processor seconds of the stack and of the commands that have ended."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    total = ended.ru_utime + ended.ru_stime
    for part in run.parts.values():
        leader = psutil.Process(part.pid)
        for process in (leader, *leader.children(recursive=True)):
            used = process.cpu_times()
            total += used.user + used.system
    return total


def _by_source(home: Path) -> list[tuple[float, float]]:
    """Look at a source of a few folders, first in order to take their files in."""
    folder, data = home / "source", home / "of_source"
    _files(folder, OF_SOURCE)
    data.mkdir()
    with closing(Ledger(f"sqlite:///{data / 'ledger.db'}")) as ledger:
        ledger.create()
        made = CollectionSchema(COLLECTION, VectorSpec(1, normalized=True))
        ledger.collections.create(made, store="chroma", embedder="none", analyzer="2")
        blobs, address = Blobs(f"file://{data}/blobs"), f"file://{folder}"
        source = ledger.sources.add(COLLECTION, "bench", address).source_id
        origin = Folder(address, most_mb=1, timeout_seconds=60.0)

        def look() -> None:
            ledger.sources.ask(source)
            run = ledger.source_runs.claim(source, lease_seconds=LEASE_SECONDS)
            if run is None:
                raise EvaluationError("another process has the source")
            with ledger.source_runs.keeper(run) as keeper:
                nothing: Callable[..., object] = lambda *_: None  # noqa: E731
                sync(
                    Crawl(
                        ledger, blobs, run, origin, 1, math.inf, nothing, nothing, nothing, keeper
                    )
                )

        look()
        return [_rates(look, OF_SOURCE, time.process_time) for _ in range(ROUNDS)]


if __name__ == "__main__":
    main()
