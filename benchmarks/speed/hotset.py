"""The time that the hotset saves a search: `python -m benchmarks.speed.hotset --chunks 20000`.

The benchmark fills a scratch collection with synthetic chunks and records for every question that
its first hit was helpful. Then it asks each question with and without the hotset, in turns. No
model runs: the vectors of the questions are known. Without `chroma.url` the benchmark starts a
Chroma server.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import cast

import numpy as np

from benchmarks.speed.pipeline import COLLECTION, fill
from benchmarks.stores.rows import DIMENSION, Rows
from benchmarks.stores.scratch import placed
from callslip.config.load import load
from callslip.config.sections.ranking import MemorySettings
from callslip.config.settings import Settings
from callslip.errors import CallslipError
from callslip.evals.tables import header, table, tell
from callslip.models.embedders.contract import Embedder
from callslip.models.entities import Recognizer
from callslip.models.text.analyzer import Analyzer
from callslip.retrieval.candidates.resources import Resources
from callslip.retrieval.messages import SearchRequest
from callslip.retrieval.run import search, traced
from callslip.retrieval.tracing.recording import Learning
from callslip.stores.backend import Backend
from callslip.stores.blobs import Blobs
from callslip.stores.ledger import Ledger
from callslip.stores.ledger.base.database import Database
from callslip.stores.records import Vector
from callslip.stores.registry import make_store

WARM_UP = 10

_LETTERS = str.maketrans("0123456789", "abcdefghij")


@dataclass
class KnownVectors:
    """An embedder that knows the vectors of all questions."""

    vectors: dict[str, Vector]
    model: str = "made up"
    dimension: int = DIMENSION
    lexical_only: bool = False

    def query(self, text: str) -> Vector:
        """Return the vector of a known question."""
        return self.vectors[text]


class AsWritten:
    """An analyzer for synthetic texts, whose words are already terms except for their digits."""

    def analyze(self, text: str) -> str:
        """Return the text with letters instead of digits, so that no term is a number."""
        return text.translate(_LETTERS)


@dataclass
class Times:
    """Milliseconds of the same questions with and without the hotset."""

    what: str
    hot: list[float] = field(default_factory=list)
    cold: list[float] = field(default_factory=list)

    @property
    def cells(self) -> tuple[str, ...]:
        """A row of the table, with medians, 95th percentiles and the ratio of the medians."""
        (h50, h95), (c50, c95) = (np.percentile(s, (50, 95)) for s in (self.hot, self.cold))
        cells = f"{h50:.1f} / {h95:.1f}", f"{c50:.1f} / {c95:.1f}"
        return self.what, str(len(self.hot)), *cells, f"{h50 / c50:.2f}"


def main() -> None:
    """Measure and print; after a failure, print the reason and exit with 1."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.speed.hotset", description=__doc__)
    parser.add_argument("--chunks", type=int, default=20_000, help="in the collection")
    parser.add_argument("--questions", type=int, default=200, help="that were answered before")
    options = parser.parse_args()
    try:
        with placed(load().settings, "chroma") as settings:
            run(settings, options.chunks, options.questions)
    except CallslipError as error:
        sys.exit(f"{error.detail}\n{error.advice}")


def run(settings: Settings, chunks: int, questions: int) -> None:
    """Fill a collection, learn from the questions, measure searches and print the table."""
    rows, analyzer = Rows(), AsWritten()
    search = settings.search.model_copy(update={"hotset": questions, "result_cache": 0})
    memory = MemorySettings(exploration="off")
    settings = settings.model_copy(update={"search": search, "memory": memory})
    print(f"{header(settings)}; Chroma, {chunks:,} chunks.\n")
    with (
        closing(make_store(settings, "chroma")) as store,
        closing(Ledger(settings.ledger_url)) as ledger,
        closing(Database(settings.ledger_url)) as database,
    ):
        ledger.create()
        made = (replace(c, terms=analyzer.analyze(c.terms)) for c in rows.chunks(chunks))
        fill(ledger, database, store, KnownVectors.model, made, dated=False)
        vectors = {q.terms: q.vector for q in rows.questions(2 * questions)}
        known, new = list(vectors)[:questions], list(vectors)[questions:]
        models = cast(Embedder, KnownVectors(vectors)), cast(Analyzer, analyzer)
        engine = Resources(
            Backend(settings, ledger, Blobs(settings.blobs_url), lambda _: store),
            *models,
            Recognizer(),
        )
        tell("Learning")
        _learn(engine, known)
        tell("Searching")
        results = [_measure(engine, "answered before", known), _measure(engine, "new", new)]
        head = ("questions", "n", "with, ms p50 / p95", "without, ms p50 / p95", "with ÷ without")
        print(table(head, [times.cells for times in results]))
        print(f"\nThe hotset answered {engine.hotset.hits} of {2 * questions + 2 * WARM_UP}.")


def _learn(engine: Resources, questions: Sequence[str]) -> None:
    """Record for each question that two users found its first hit helpful."""
    learning = Learning(engine.ledger, engine.settings.memory, engine.settings.traces)
    for question in questions:
        response, trace = traced(engine, _request(question, hotset=False))
        learning.record([trace])
        for user in ("ann", "bob"):
            chunk_ids = [response.hits[0].chunk_id]
            learning.outcome(trace.trace_id, chunk_ids, "helpful", user=user)


def _measure(engine: Resources, what: str, questions: Sequence[str]) -> Times:
    times = Times(what)
    for question in questions[:WARM_UP]:
        _milliseconds(engine, question, hotset=True)
        _milliseconds(engine, question, hotset=False)
    for number, question in enumerate(questions):
        for hotset in (True, False) if number % 2 else (False, True):
            took = _milliseconds(engine, question, hotset=hotset)
            (times.hot if hotset else times.cold).append(took)
    return times


def _milliseconds(engine: Resources, question: str, *, hotset: bool) -> float:
    request = _request(question, hotset=hotset)
    started = time.perf_counter()
    search(engine, request)
    return (time.perf_counter() - started) * 1000


def _request(question: str, *, hotset: bool) -> SearchRequest:
    return SearchRequest.model_validate(
        {"collection": COLLECTION, "query": question, "top": 10, "ranking": {"hotset": hotset}}
    )


if __name__ == "__main__":
    main()
