"""What the hotset spares a search: `python -m evals.hotset --chunks 20000`.

A scratch collection is filled with chunks that are made up, every question is said to have been
helped by its first hit, and is then asked with and without the hotset in turns. No model is run:
questions come with their vectors. Without `chroma.url` a Chroma server is started for the time.
"""

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import cast, get_args

import numpy as np

from callslip.errors import CallslipError, EvaluationError
from config.load import load
from config.ranking import MemorySettings
from config.settings import Settings, StoreKind
from evals.stores.__main__ import placed
from evals.stores.rows import DIMENSION, Rows
from evals.tables import header, table, tell
from models.analyzer import Analyzer
from models.embedder import Embedder
from models.entities import Recognizer
from retrieval.engine import Engine
from retrieval.learning import Learning
from retrieval.messages import SearchRequest
from stores.contract import Store
from stores.ledger import STEPS, Claim, Ledger, Step, Submission
from stores.records import ChunkRecord, CollectionSchema, Vector, VectorSpec
from stores.registry import make_store

COLLECTION = "bench-hotset"
PER_DOCUMENT = 1000
LEASE_SECONDS = 600.0
WARM_UP = 10

_LETTERS = str.maketrans("0123456789", "abcdefghij")


@dataclass
class KnownVectors:
    """An embedder that has embedded all questions before."""

    vectors: dict[str, Vector]
    model: str = "made up"
    dimension: int = DIMENSION
    lexical_only: bool = False

    def query(self, text: str) -> Vector:
        """The vector of a known question."""
        return self.vectors[text]


class AsWritten:
    """An analyzer of what is terms already, but that made-up words are no numbers."""

    def analyze(self, text: str) -> str:
        """The text with letters for digits."""
        return text.translate(_LETTERS)


@dataclass
class Times:
    """Milliseconds of the same questions with and without the hotset."""

    what: str
    hot: list[float] = field(default_factory=list)
    cold: list[float] = field(default_factory=list)

    @property
    def cells(self) -> tuple[str, ...]:
        """A row of the table: medians, 95th percentiles, and the ratio of the medians."""
        (h50, h95), (c50, c95) = (np.percentile(s, (50, 95)) for s in (self.hot, self.cold))
        told = f"{h50:.1f} / {h95:.1f}", f"{c50:.1f} / {c95:.1f}"
        return self.what, str(len(self.hot)), *told, f"{h50 / c50:.2f}"


def main() -> None:
    """Measure and print; a failure prints what is wrong and exits with 1."""
    parser = argparse.ArgumentParser(prog="python -m evals.hotset", description=__doc__)
    parser.add_argument("--store", choices=get_args(StoreKind), default="chroma")
    parser.add_argument("--chunks", type=int, default=20_000, help="in the collection")
    parser.add_argument("--questions", type=int, default=200, help="that were answered before")
    asked = parser.parse_args()
    try:
        with placed(load().settings, asked.store) as settings:
            run(settings, asked.store, asked.chunks, asked.questions)
    except CallslipError as error:
        sys.exit(f"{error.detail}\n{error.advice}")


def run(settings: Settings, kind: str, chunks: int, questions: int) -> None:
    """Fill, learn, ask, print."""
    rows = Rows()
    search = settings.search.model_copy(update={"hotset": questions, "result_cache": 0})
    memory = MemorySettings(exploration="off")
    settings = settings.model_copy(update={"search": search, "memory": memory})
    print(f"{header(settings)}; {kind}, {chunks:,} chunks.\n")
    with _filled(settings, kind, rows, chunks) as (ledger, store):
        asked = {q.terms: q.vector for q in rows.questions(2 * questions)}
        known, new = list(asked)[:questions], list(asked)[questions:]
        models = cast(Embedder, KnownVectors(asked)), cast(Analyzer, AsWritten())
        engine = Engine(settings, ledger, lambda _: store, *models, Recognizer())
        tell("Learning")
        _learn(engine, known)
        tell("Searching")
        found = [_measure(engine, "answered before", known), _measure(engine, "new", new)]
        head = ("questions", "n", "with, ms p50 / p95", "without, ms p50 / p95", "with ÷ without")
        print(table(head, [times.cells for times in found]))
        print(f"\nThe hotset answered {engine.hotset.hits} of {2 * questions + 2 * WARM_UP}.")


@contextmanager
def _filled(
    settings: Settings, kind: str, rows: Rows, count: int
) -> Iterator[tuple[Ledger, Store]]:
    """A ledger and a store with so many live chunks."""
    schema = CollectionSchema(COLLECTION, VectorSpec(DIMENSION, normalized=True))
    with closing(Ledger(settings.ledger_url)) as ledger, closing(make_store(settings, kind)) as at:
        ledger.create()
        ledger.collections.create(schema, store=kind, embedder="made up", analyzer="as written")
        at.ensure_schema(schema)
        chunks = rows.chunks(count)
        try:
            tell("Filling")
            while batch := list(islice(chunks, PER_DOCUMENT)):
                _ingest(ledger, at, batch)
            at.maintain()
            yield ledger, at
        finally:
            at.drop_collection(COLLECTION)


def _ingest(ledger: Ledger, store: Store, batch: Sequence[ChunkRecord]) -> None:
    """One document of all these chunks, live."""
    new_id = batch[0].chunk_id
    given = Submission(new_id, new_id, "", new_id * 2, 1, {})
    ledger.documents.submit(COLLECTION, given, new_id)
    ledger.turns.take(1, document_id=new_id)
    for step in STEPS[:-1]:
        ledger.leases.finish(_claimed(ledger, new_id, step), step, {})
    claim = _claimed(ledger, new_id, STEPS[-1])
    ledger.chunks.expect(claim, {chunk.chunk_id: chunk.chunk_id for chunk in batch})
    analyze = AsWritten().analyze
    mine = [replace(c, document_id=new_id, terms=analyze(c.terms)) for c in batch]
    store.batch_upsert_chunks(COLLECTION, mine)
    ledger.leases.go_live(claim, [chunk.chunk_id for chunk in batch], {})


def _claimed(ledger: Ledger, document_id: str, step: Step) -> Claim:
    claim = ledger.leases.claim(
        *(document_id, 1, step), worker="bench", lease_seconds=LEASE_SECONDS, max_crashes=1
    )
    if not isinstance(claim, Claim):
        raise EvaluationError(f"the step {step} is not free: {claim}")
    return claim


def _learn(engine: Engine, questions: Sequence[str]) -> None:
    """Two people say of each question that its first hit helped."""
    learning = Learning(engine.ledger, engine.settings.memory, engine.settings.traces)
    for question in questions:
        response, trace = engine.traced(_request(question, hotset=False))
        learning.record([trace])
        for user in ("ann", "bob"):
            chunk_ids = [response.hits[0].chunk_id]
            learning.outcome(trace.trace_id, chunk_ids, "helpful", user=user)


def _measure(engine: Engine, what: str, questions: Sequence[str]) -> Times:
    times = Times(what)
    for question in questions[:WARM_UP]:
        _milliseconds(engine, question, hotset=True)
        _milliseconds(engine, question, hotset=False)
    for number, question in enumerate(questions):
        for hotset in (True, False) if number % 2 else (False, True):
            took = _milliseconds(engine, question, hotset=hotset)
            (times.hot if hotset else times.cold).append(took)
    return times


def _milliseconds(engine: Engine, question: str, *, hotset: bool) -> float:
    request = _request(question, hotset=hotset)
    started = time.perf_counter()
    engine.search(request)
    return (time.perf_counter() - started) * 1000


def _request(question: str, *, hotset: bool) -> SearchRequest:
    return SearchRequest.model_validate(
        {"collection": COLLECTION, "query": question, "top": 10, "ranking": {"hotset": hotset}}
    )


if __name__ == "__main__":
    main()
