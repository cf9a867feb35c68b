"""What the hotset spares a search: `python -m evals.hotset --chunks 20000`.

A scratch collection is filled with chunks that are made up, every question is said to have been
helped by its first hit, and is then asked with and without the hotset in turns. No model is run:
questions come with their vectors. Without `chroma.url` a Chroma server is started for the time.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import cast

import numpy as np

from callslip.errors import CallslipError
from config.load import load
from config.ranking import MemorySettings
from config.settings import Settings
from evals.pipeline import COLLECTION, fill
from evals.stores.place import placed
from evals.stores.rows import DIMENSION, Rows
from evals.tables import header, table, tell
from models.analyzer import Analyzer
from models.embedder import Embedder
from models.entities import Recognizer
from retrieval.engine import Engine
from retrieval.learning import Learning
from retrieval.messages import SearchRequest
from stores.ledger import Ledger
from stores.ledger.database import Database
from stores.records import Vector
from stores.registry import make_store

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
    parser.add_argument("--chunks", type=int, default=20_000, help="in the collection")
    parser.add_argument("--questions", type=int, default=200, help="that were answered before")
    asked = parser.parse_args()
    try:
        with placed(load().settings, "chroma") as settings:
            run(settings, asked.chunks, asked.questions)
    except CallslipError as error:
        sys.exit(f"{error.detail}\n{error.advice}")


def run(settings: Settings, chunks: int, questions: int) -> None:
    """Fill, learn, ask, print."""
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
        asked = {q.terms: q.vector for q in rows.questions(2 * questions)}
        known, new = list(asked)[:questions], list(asked)[questions:]
        models = cast(Embedder, KnownVectors(asked)), cast(Analyzer, analyzer)
        engine = Engine(settings, ledger, lambda _: store, *models, Recognizer())
        tell("Learning")
        _learn(engine, known)
        tell("Searching")
        found = [_measure(engine, "answered before", known), _measure(engine, "new", new)]
        head = ("questions", "n", "with, ms p50 / p95", "without, ms p50 / p95", "with ÷ without")
        print(table(head, [times.cells for times in found]))
        print(f"\nThe hotset answered {engine.hotset.hits} of {2 * questions + 2 * WARM_UP}.")


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
