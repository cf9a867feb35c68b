"""Measure a large collection from writing to backup: `python -m benchmarks.stores.scale SET…`.

SET is the folder of a judged set, whose passages become the texts. At each size of `--sizes` the
benchmark searches, builds the vectors of a facet, decays the memory of a tenth of the chunks,
audits, exports and backs up. The store starts anew after each size, so that what `maintain` set for
a large table applies to what is written next. Chunks are written as provided chunks, by the code of
`ingestion/provided_chunks.py`: so the ledger, the store and the files have what they have after
ingestion, without the embedder.

A chunk's text is made of sentences that are drawn from all passages. Its vector is resampled from
the local model's vectors of some passages (`Vectors`), because random vectors have no clusters: the
search of an approximate index among them is not that of a real one.
"""

import argparse
import json
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
import psutil

from benchmarks.stores.resampling import Texts, Vectors
from benchmarks.stores.scratch import in_folder, served
from callslip.config.load import load
from callslip.config.settings import Settings
from callslip.errors import CallslipError, EvaluationError
from callslip.ingestion import provided_chunks
from callslip.ingestion.provided_chunks import ChunkScope
from callslip.models.embedders.contract import Embedder
from callslip.models.registry import make_analyzer, make_embedder, make_recognizer
from callslip.models.text.analyzer import VERSION as ANALYZER
from callslip.retrieval.candidates.resources import Resources
from callslip.retrieval.facets.vectors import Counts, FacetBuilder
from callslip.retrieval.messages import SearchRequest
from callslip.retrieval.run import search
from callslip.stores.audit.comparison import audit_scope, audit_scopes
from callslip.stores.backend import Backend
from callslip.stores.backup.destination import Destination
from callslip.stores.backup.making import make_backup
from callslip.stores.blobs import Blobs
from callslip.stores.chunk_stats import WEEK, ChunkStats
from callslip.stores.contract import Store
from callslip.stores.ledger import Ledger
from callslip.stores.levels import PASSAGE
from callslip.stores.records import ChunkRecord, CollectionSchema, Vector, VectorSpec
from callslip.stores.registry import make_store
from callslip.stores.transfer.exporting import export_collection

COLLECTION = "scale"
PER_DOCUMENT, BATCH = 250, 250
QUESTIONS, WARM_UP, TOP = 120, 20, 10

COMPARED, NEAREST = 50, 100
"""The searches of vectors that are compared with all vectors, and their hits."""

WRITTEN, QUERIED = 8, 9
"""The seeds of the vectors of chunks and of queries."""

FACET = "kind"
"""The property that becomes a facet; it has ten values."""

REMEMBERED, DECAYED_WEEKS = 10, 2
"""One of so many chunks has memory, which is so many weeks old."""


def main() -> None:
    """Measure and print Markdown; after a failure, print the reason and exit with 1."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.stores.scale", description=__doc__)
    parser.add_argument("sets", nargs="+", type=Path, help="folders of judged sets (corpus.jsonl)")
    parser.add_argument("--store", choices=("chroma", "tfidf"), default="chroma")
    parser.add_argument("--sizes", default="10000,100000,1000000", help="ascending, of chunks")
    parser.add_argument("--real", type=int, default=600, help="passages that the model embeds")
    options = parser.parse_args()
    sizes = [int(size) for size in options.sizes.split(",")]
    if any(size % PER_DOCUMENT for size in sizes):  # the vectors are drawn again, for the recall
        parser.error(f"each size is a multiple of {PER_DOCUMENT}")
    try:
        with in_folder(load().settings) as settings:
            Scale(settings, options.store, options.sets, options.real).run(sizes)
    except CallslipError as error:
        sys.exit(f"{error.detail}\n{error.advice}")


class Scale:
    """One run over one store; prints a line of Markdown for each size."""

    def __init__(self, settings: Settings, kind: str, sets: Sequence[Path], real: int) -> None:
        uncached = settings.search.model_copy(update={"query_cache": 0, "result_cache": 0})
        self.settings = settings.model_copy(update={"search": uncached})
        self.kind = kind
        rng = np.random.default_rng(7)
        passages = [p for folder in sets for p in _passages(folder)]
        analyzer, embedder = make_analyzer(), make_embedder(settings)
        self.embedder = embedder
        self.texts = Texts(passages, analyzer, rng)
        self.real = _embedded(embedder, passages, real, rng)
        self.vectors = Vectors(self.real, np.random.default_rng(WRITTEN))
        self.queried = Vectors(self.real, np.random.default_rng(QUERIED))
        self.questions = [self.texts.question() for _ in range(QUESTIONS)]
        self.analyzer = analyzer

    def run(self, sizes: Sequence[int]) -> None:
        """Write up to each size and measure there, with the store started anew before each size."""
        there = 0
        for size in sizes:
            with self.opened() as backend:
                store = backend.store_of(self.kind)
                if not there:
                    self.create(backend)
                wrote = seconds(partial(self.fill, backend, there, size))
                rate = (size - there) / wrote
                there = size
                refit = seconds(store.maintain)
                self.report(size, {"written, chunks/s": rate, "maintain s": refit})
                self.report(size, self.searched(backend, "search"))
                self.report(size, {"recall of the nearest vectors": self.recall(store, size)})
                self.report(size, self.weight())
                self.report(size, self.learning(backend, size))
                self.report(size, self.upkeep(backend, size))
        with self.opened() as backend:
            self.report(sizes[-1], self.searched(backend, "started anew"))

    @contextmanager
    def opened(self) -> Iterator[Backend]:
        """A backend whose server, store and ledger end with it."""
        with (
            served(self.settings, self.kind) as settings,
            closing(make_store(settings, self.kind)) as store,
            closing(Ledger(settings.ledger_url)) as ledger,
        ):
            yield Backend(settings, ledger, Blobs(settings.blobs_url), lambda _: store)

    def create(self, backend: Backend) -> None:
        """Create the ledger's tables and the collection."""
        backend.ledger.create()
        made = CollectionSchema(COLLECTION, VectorSpec(self.embedder.dimension, normalized=True))
        backend.ledger.collections.create(
            made, store=self.kind, embedder=self.embedder.model, analyzer=ANALYZER
        )
        backend.store_of(self.kind).ensure_schema(made)

    def fill(self, backend: Backend, start: int, end: int) -> None:
        """Write the chunks from `start` to `end`; print progress to standard error."""
        scope = ChunkScope(backend, self.kind, COLLECTION)
        for at in range(start, end, PER_DOCUMENT):
            chunks = list(self.chunks(at, min(PER_DOCUMENT, end - at)))
            provided_chunks.put(scope, f"document {at // PER_DOCUMENT}", chunks, BATCH)
            print(f"\r{at + len(chunks):,} chunks written", end="", file=sys.stderr, flush=True)
        print(file=sys.stderr)

    def chunks(self, start: int, count: int) -> Iterator[ChunkRecord]:
        """Iterate over chunks of one document, numbered from `start`."""
        vectors: list[Vector] = list(self.vectors.draw(count))
        for number, vector in enumerate(vectors, start):
            body, terms = self.texts.draw()
            yield ChunkRecord(
                chunk_id=f"{number:032x}",
                document_id="",
                body=body,
                terms=terms,
                vector=vector,
                heading=f"Section {number % 17}",
                title=f"Document {start // PER_DOCUMENT}",
                filename=f"{start // PER_DOCUMENT}.pdf",
                lang="en",
                level=PASSAGE,
                ordinal=number - start,
                properties={"kind": f"kind{number % 10}", "year": 2000 + number % 25},
            )

    def searched(self, backend: Backend, what: str) -> dict[str, float | str]:
        """Search with vectors at hand: the first search, then p50 / p95, and of filtered ones."""
        resources = Resources(backend, self.embedder, self.analyzer, make_recognizer())
        vectors = self.queried.draw(len(self.questions))

        def ask(number: int, **more: object) -> None:
            request = {"collection": COLLECTION, "query": self.questions[number], "top": TOP}
            request |= {"query_embedding": vectors[number].tolist(), **more}
            if not search(resources, SearchRequest.model_validate(request)).hits:
                raise EvaluationError(f"{self.questions[number]!r} has no hit")

        first = seconds(partial(ask, 0))
        for number in range(WARM_UP):
            ask(number)
        rest = range(WARM_UP, len(self.questions))
        plain = [seconds(partial(ask, n)) for n in rest]
        conditions = [{"having_all": {"kind": f"kind{n % 10}"}} for n in rest]
        filtered = [seconds(partial(ask, n, **c)) for n, c in zip(rest, conditions, strict=True)]
        return {
            f"{what}, first ms": first * 1000,
            f"{what} ms": _percentiles(plain),
            f"{what}, a tenth passes ms": _percentiles(filtered),
        }

    def recall(self, store: Store, size: int) -> float:
        """The share of the true nearest of `size` vectors that a search of vectors finds."""
        queries = self.queried.draw(COMPARED)
        shares = []
        for query, true in zip(queries, self.nearest(queries, size), strict=True):
            hits = {hit.chunk_id for hit in store.vector_query(COLLECTION, query, NEAREST)}
            shares.append(len(hits & {f"{number:032x}" for number in true}) / NEAREST)
        return float(np.mean(shares))

    def nearest(self, queries: npt.NDArray[np.float32], size: int) -> npt.NDArray[np.int64]:
        """The numbers of the nearest written vectors, shape (queries, NEAREST), drawn once more."""
        drawn = Vectors(self.real, np.random.default_rng(WRITTEN))
        scores = np.empty((len(queries), 0), np.float32)
        numbers = np.empty((len(queries), 0), np.int64)
        for at in range(0, size, PER_DOCUMENT):
            some = queries @ drawn.draw(min(PER_DOCUMENT, size - at)).T
            scores = np.hstack((scores, some))
            every = np.broadcast_to(np.arange(at, at + some.shape[1]), some.shape)
            numbers = np.hstack((numbers, every))
            best = np.argsort(-scores, axis=1)[:, :NEAREST]
            scores = np.take_along_axis(scores, best, axis=1)
            numbers = np.take_along_axis(numbers, best, axis=1)
        return numbers

    def weight(self) -> dict[str, float | str]:
        """The memory of this process and of its servers, and the disk by folder, in MB."""
        process = psutil.Process()
        memory = {"this process": process.memory_full_info().pss / 1e6}
        for child in process.children(recursive=True):
            with suppress(psutil.Error):
                memory[child.name()] = memory.get(child.name(), 0) + (
                    child.memory_full_info().pss / 1e6
                )
        disk = {}
        for entry in sorted(self.settings.data_dir.iterdir()):
            disk[entry.name] = megabytes(entry)
        return {
            **{f"memory MB, {name}": size for name, size in memory.items()},
            **{f"disk MB, {name}": size for name, size in disk.items()},
        }

    def upkeep(self, backend: Backend, size: int) -> dict[str, float | str]:
        """Audit, export and back up the collection, each once."""
        [scope] = audit_scopes(backend.ledger, {self.kind: backend.store_of(self.kind)}, COLLECTION)
        begun = time.perf_counter()
        report = audit_scope(backend.ledger, scope)
        audited = time.perf_counter() - begun
        path = self.settings.data_dir / f"{size}.tar"
        exported = seconds(lambda: export_collection(backend, COLLECTION, path, lambda *_: None))
        written = path.stat().st_size / 1e6
        path.unlink()
        folder = self.settings.data_dir / "backup"
        destination = Destination(str(folder), make=True)
        made = make_backup(backend, NoConversations(), destination, {}, keep=1)
        size_mb = megabytes(folder)
        again = make_backup(backend, NoConversations(), destination, {}, keep=1)
        shutil.rmtree(folder)
        return {
            "audit s": audited,
            "audit findings": float(len(report.findings)),
            "export s": exported,
            "export MB": written,
            "backup s": made.seconds,
            "backup MB": size_mb,
            "backup again s": again.seconds,
            "peak memory of this process MB": peak_megabytes(),
        }

    def learning(self, backend: Backend, size: int) -> dict[str, float | str]:
        """Build the vectors of a facet, twice; write the decay of a tenth of the chunks."""
        ledger, store = backend.ledger, backend.store_of(self.kind)
        most = self.settings.facets.max_values
        builder = FacetBuilder(ledger, store, self.embedder, most)
        record = ledger.collections.get(COLLECTION)
        counts: dict[str, Counts] = {}
        facet = seconds(lambda: counts.update(builder.rebuild(record, "", [FACET])))
        if not counts[FACET]["values"]:
            raise EvaluationError(f"the facet {FACET} has no value")
        again = seconds(lambda: builder.rebuild(record, "", [FACET]))
        weeks = self.settings.memory.half_life_weeks
        since = time.time() - DECAYED_WEEKS * WEEK
        memory = (
            ChunkStats(f"{number:032x}", "", useful=1, utility=1.0, utility_at=since)
            for number in range(0, size, REMEMBERED)
        )
        ledger.memory.take_in(COLLECTION, memory)
        begun = time.perf_counter()
        faded = ledger.memory.fade(weeks)
        return {
            "facet s": facet,
            "facet again s": again,
            "decayed chunks": float(faded),
            "decay s": time.perf_counter() - begun,
        }

    def report(self, size: int, figures: dict[str, float | str]) -> None:
        """Print the figures of a size, one row each."""
        for name, value in figures.items():
            shown = value if isinstance(value, str) else f"{value:,.{2 if value < 1 else 1}f}"
            print(f"| {size:,} | {name} | {shown} |", flush=True)


class NoConversations:
    """The states of conversations for a backup: this ledger has no conversation."""

    def state(self, key: str) -> bytes | None:
        raise KeyError(key)

    def put_state(self, key: str, state: bytes) -> None:
        raise KeyError(key)


def seconds(act: Callable[[], object]) -> float:
    """Return the seconds of a call."""
    begun = time.perf_counter()
    act()
    return time.perf_counter() - begun


def megabytes(path: Path) -> float:
    """Return the size of a file, or of all files in a folder."""
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file()) / 1e6


def peak_megabytes() -> float:
    """Return the greatest resident memory of this process so far."""
    status = Path("/proc/self/status").read_text()
    match = re.search(r"VmHWM:\s+(\d+) kB", status)
    return int(match[1]) / 1000 if match else float("nan")


def _percentiles(times: Sequence[float]) -> str:
    p50, p95 = np.percentile(times, (50, 95)) * 1000
    return f"{p50:.1f} / {p95:.1f}"


def _passages(folder: Path) -> Iterator[str]:
    with (folder / "corpus.jsonl").open() as lines:
        for line in lines:
            yield json.loads(line)["text"]


def _embedded(
    embedder: Embedder, passages: Sequence[str], count: int, rng: np.random.Generator
) -> npt.NDArray[np.float32]:
    """Embed the beginnings of some passages; print progress to standard error."""
    chosen = [
        passages[i][:600] for i in rng.choice(len(passages), min(count, len(passages)), False)
    ]
    made: list[Vector] = []
    for at in range(0, len(chosen), 16):
        made.extend(embedder.passages(chosen[at : at + 16]))
        print(f"\r{len(made):,} passages embedded", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return np.asarray(made, np.float32)


if __name__ == "__main__":
    main()
