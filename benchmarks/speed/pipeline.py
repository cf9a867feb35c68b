"""Time the stages of a search over many chunks.

`python -m benchmarks.speed.pipeline --chunks 100000`

The benchmark writes synthetic documents to its own Chroma server and its own ledger, as ingestion
would. Then it searches for each question in three ways, in turns: with the question's vector, which
is the pipeline without the two models; with the embedder; and with embedder and store alone, which
any search needs. No cache is used.
"""

import argparse
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import islice

import numpy as np
from sqlalchemy import insert

from benchmarks.stores.rows import DIMENSION, Question, Rows
from benchmarks.stores.scratch import placed
from callslip.config.load import load
from callslip.config.settings import Settings
from callslip.errors import CallslipError, StartError
from callslip.models.registry import make_analyzer, make_embedder, make_recognizer
from callslip.models.text.analyzer import VERSION as ANALYZER
from callslip.retrieval.candidates.resources import Resources
from callslip.retrieval.facets.vectors import FacetBuilder
from callslip.retrieval.messages import SearchRequest
from callslip.retrieval.run import search
from callslip.stores.backend import Backend
from callslip.stores.blobs import Blobs
from callslip.stores.contract import Store
from callslip.stores.ledger import Ledger
from callslip.stores.ledger.base import schema
from callslip.stores.ledger.base.database import Database
from callslip.stores.records import ChunkRecord, CollectionSchema, Value, VectorSpec
from callslip.stores.registry import make_store

COLLECTION, FACETS = "bench-pipeline", ("kind", "year")
BATCH, QUESTIONS, WARM_UP, TOP = 1000, 220, 20, 10
PIPELINE, WHOLE, ALONE = "pipeline without the embedder", "the whole", "embedder and store alone"


def main() -> None:
    """Measure and print Markdown; after a failure, print the reason and exit with 1."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.speed.pipeline", description=__doc__
    )
    parser.add_argument("--chunks", type=int, default=100_000, help="in the collection")
    parser.add_argument("--dated", action="store_true", help="every chunk has a time it holds from")
    options = parser.parse_args()
    try:
        with placed(load().settings, "chroma") as settings:
            run(settings, options.chunks, dated=options.dated)
    except CallslipError as error:
        sys.exit(f"{error.detail}\n{error.advice}")


def run(settings: Settings, count: int, *, dated: bool) -> None:
    """Fill a collection, search it, and print Markdown."""
    facets = settings.facets.model_copy(update={"names": ",".join(FACETS)})
    uncached = settings.search.model_copy(update={"query_cache": 0, "result_cache": 0})
    settings = settings.model_copy(update={"facets": facets, "search": uncached})
    embedder = make_embedder(settings)
    with (
        closing(make_store(settings, "chroma")) as store,
        closing(Ledger(settings.ledger_url)) as ledger,
        closing(Database(settings.ledger_url)) as database,
    ):
        ledger.create()
        rows = Rows()
        fill(ledger, database, store, embedder.model, rows.chunks(count), dated=dated)
        record = ledger.collections.get(COLLECTION)
        FacetBuilder(ledger, store, embedder, 100).rebuild(record, "", FACETS)
        engine = Resources(
            Backend(settings, ledger, Blobs(settings.blobs_url), lambda _: store),
            embedder,
            make_analyzer(),
            make_recognizer(),
        )
        took, stages = ask(engine, rows.questions(QUESTIONS))
    print(f"{count:,} chunks, {'dated' if dated else 'without dates'}, {TOP} hits\n")
    print("| ms | p50 | p95 |\n| --- | --- | --- |")
    for work, times in [*took.items(), *((f"stage: {name}", t) for name, t in stages.items())]:
        p50, p95 = np.percentile(times, (50, 95))
        print(f"| {work} | {p50:.1f} | {p95:.1f} |")
    p95s = {work: np.percentile(times, 95) for work, times in took.items()}
    print(f"\np95 of {WHOLE} ÷ {ALONE}: {p95s[WHOLE] / p95s[ALONE]:.2f}")


def fill(
    ledger: Ledger,
    database: Database,
    store: Store,
    embedder: str,
    chunks: Iterator[ChunkRecord],
    *,
    dated: bool,
) -> None:
    """Write chunks to ledger and store as ingestion would; print progress to standard error."""
    made = CollectionSchema(COLLECTION, VectorSpec(DIMENSION, normalized=True))
    ledger.collections.create(made, store="chroma", embedder=embedder, analyzer=ANALYZER)
    store.ensure_schema(made)
    documents, done, names = set[str](), 0, set[str]()
    while batch := list(islice(chunks, BATCH)):
        if not dated:
            batch = [replace(c, properties=_undated(c.properties)) for c in batch]
        if failed := store.batch_upsert_chunks(COLLECTION, batch).failed:
            raise StartError(f"{len(failed)} chunks were refused: {next(iter(failed.values()))}")
        _publish(database, {c.document_id for c in batch} - documents, batch)
        documents |= {c.document_id for c in batch}
        names |= {name for c in batch for name in c.properties}
        done += len(batch)
        print(f"\r{done:,} chunks written", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    ledger.collections.has_properties(COLLECTION, names)


def _undated(properties: Mapping[str, Value]) -> dict[str, Value]:
    return {name: value for name, value in properties.items() if name != "valid_from"}


def _publish(database: Database, documents: Collection[str], chunks: Sequence[ChunkRecord]) -> None:
    """Write the ledger's rows of documents and chunks whose first version is live."""
    now = time.time()
    live = {"collection": COLLECTION, "live_version": 1, "created_at": now}
    with database.writing() as connection:
        rows = [{"document_id": i, "name": i, **live} for i in documents]
        connection.execute(insert(schema.documents), rows)
        connection.execute(
            insert(schema.chunks),
            [
                {
                    "chunk_id": c.chunk_id,
                    "document_id": c.document_id,
                    "first_version": 1,
                    "text_hash": c.chunk_id,
                }
                for c in chunks
            ],
        )


def ask(
    engine: Resources, questions: Sequence[Question]
) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
    """Return the milliseconds of each question for each variant, and of each pipeline stage."""
    store, embedder = engine.store_of("chroma"), engine.embedder
    pool = engine.settings.search.pool
    stages = defaultdict[str, list[float]](list)

    def whole(q: Question) -> None:
        request = {"collection": COLLECTION, "query": q.terms, "top": TOP}
        search(engine, SearchRequest.model_validate(request))

    def pipeline(q: Question) -> None:
        request = {"collection": COLLECTION, "query": q.terms, "top": TOP}
        with_vector = {**request, "query_embedding": q.vector.tolist()}
        response = search(engine, SearchRequest.model_validate(with_vector))
        for stage, milliseconds in response.timings.items():
            stages[stage].append(milliseconds)

    def alone(q: Question) -> None:
        vector = embedder.query(q.terms)
        terms = engine.analyzer.analyze(q.terms)
        response = store.hybrid_query(COLLECTION, vector, terms, 2 * pool, pool=pool)
        store.get_chunks(COLLECTION, [c.chunk_id for c in response[:TOP]])

    variants: list[tuple[str, Callable[[Question], None]]]
    variants = [(PIPELINE, pipeline), (WHOLE, whole), (ALONE, alone)]
    took: dict[str, list[float]] = {name: [] for name, _ in variants}
    for question in questions[:WARM_UP]:
        for _, variant in variants:
            variant(question)
    stages.clear()
    for turn, question in enumerate(questions[WARM_UP:]):
        for at in range(len(variants)):
            name, variant = variants[(turn + at) % len(variants)]
            started = time.perf_counter()
            variant(question)
            took[name].append((time.perf_counter() - started) * 1000)
    return took, stages


if __name__ == "__main__":
    main()
