"""Whether several stores rank a collection in the same way: nDCG@10 of each retriever.

    callslip eval sets/en_xquad --keep
    python -m benchmarks.stores.agreement sets/en_xquad eval-en-xquad-1a2b3c4d --to tfidf --to crate

copies the collection with its vectors and terms into a scratch collection of each store, searches
every query of the set in each copy, and prints a table.
"""

import argparse
import secrets
import sys
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from callslip.config.settings import StoreKind
from callslip.errors import CallslipError
from callslip.evals import beir
from callslip.evals.measures import measure, rank_documents
from callslip.models.embedders.contract import Embedder
from callslip.models.registry import make_analyzer, make_embedder
from callslip.models.text.analyzer import Analyzer
from callslip.stores.contract import Store
from callslip.stores.records import ChunkRecord, Vector
from callslip.stores.registry import make_store
from callslip.workers.local_settings import placed_settings

RETRIEVERS = {"keyword": 0.0, "vector": 1.0, "hybrid": 0.4}
"""The weight of the vectors (`alpha`) for each retriever."""

BATCH, POOL = 500, 100


@dataclass(frozen=True)
class Question:
    """A query of the set in the forms that the retrievers need."""

    query_id: str
    terms: str
    vector: Vector


def main() -> None:
    """Copy, search and print; after a failure, print the reason and exit with 1."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="the judged set")
    parser.add_argument("collection", help="where it was ingested, in the store of the settings")
    parser.add_argument("--to", action="append", choices=get_args(StoreKind), default=[])
    options = parser.parse_args()
    try:
        settings = placed_settings()
        judged = beir.read(options.folder)
        questions = prepare(judged, make_embedder(settings), make_analyzer())
        print("| store | " + " | ".join(RETRIEVERS) + " |\n| --- |" + " --- |" * len(RETRIEVERS))
        with closing(make_store(settings, settings.store)) as source:
            scores = ask(source, options.collection, judged, questions)
            print(_row(settings.store, scores), flush=True)
            for kind in options.to:
                with closing(make_store(settings, kind)) as target:
                    scores = ask_copy(source, options.collection, target, judged, questions)
                print(_row(kind, scores), flush=True)
    except CallslipError as error:
        sys.exit(f"{error.detail}\n{error.advice}")


def prepare(judged: beir.JudgedSet, embedder: Embedder, analyzer: Analyzer) -> list[Question]:
    """Analyze and embed every query of the set once."""
    return [
        Question(query_id, analyzer.analyze(text), embedder.query(text))
        for query_id, text in judged.queries.items()
    ]


def copy(source: Store, collection: str, target: Store, name: str) -> None:
    """Copy a collection, with its schema and all chunks, into another store."""
    schema = source.schema(collection)
    target.ensure_schema(type(schema)(name, schema.default, schema.named, schema.tenants))
    ids = source.find_ids(collection)
    for start in range(0, len(ids), BATCH):
        chunks = source.get_chunks(
            collection, ids[start : start + BATCH], include_vector=True, include_terms=True
        )
        records = [ChunkRecord(**chunk.__dict__) for chunk in chunks]
        target.batch_upsert_chunks(name, records)
    target.maintain()


def ask_copy(
    source: Store,
    collection: str,
    target: Store,
    judged: beir.JudgedSet,
    questions: Sequence[Question],
) -> dict[str, float]:
    """Search a copy of the collection in another store; drop the copy at the end."""
    name = f"agree-{secrets.token_hex(4)}"
    try:
        copy(source, collection, target, name)
        return ask(target, name, judged, questions)
    finally:
        target.drop_collection(name)


def ask(
    store: Store, collection: str, judged: beir.JudgedSet, questions: Sequence[Question]
) -> dict[str, float]:
    """Return nDCG@10 over these queries for each retriever.

    The file name of a chunk identifies its document in the set.
    """
    runs: dict[str, dict[str, dict[str, float]]] = {retriever: {} for retriever in RETRIEVERS}
    for question in questions:
        for retriever, alpha in RETRIEVERS.items():
            scores = store.hybrid_query(
                collection, question.vector, question.terms, POOL, pool=POOL, alpha=alpha
            )
            chunks = store.get_chunks(collection, [c.chunk_id for c in scores[:30]])
            files = (chunk.filename.removesuffix(".txt") for chunk in chunks)
            runs[retriever][question.query_id] = rank_documents(files)
    return {retriever: measure(judged.qrels, run)["ndcg@10"] for retriever, run in runs.items()}


def _row(kind: str, scores: dict[str, float]) -> str:
    return (
        f"| {kind} | " + " | ".join(f"{scores[retriever]:.4f}" for retriever in RETRIEVERS) + " |"
    )


if __name__ == "__main__":
    main()
