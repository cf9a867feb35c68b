"""Whether a collection ranks alike wherever it lies: nDCG@10 of each leg in several stores.

    callslip eval sets/en_xquad --keep
    python -m evals.stores.agreement sets/en_xquad eval-en-xquad-1a2b3c4d --to tfidf --to crate

copies the kept collection, vectors and terms and all, into a scratch collection of each store, asks
every question of the set in each, and prints a table.
"""

import argparse
import secrets
import sys
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from callslip.errors import CallslipError
from config.settings import StoreKind
from evals import beir
from evals.measures import measure, rank_documents
from models.analyzer import Analyzer
from models.embedder import Embedder
from models.registry import make_analyzer, make_embedder
from stores.contract import Store
from stores.records import ChunkRecord, Vector
from stores.registry import make_store
from workers.placement import placed_settings

LEGS = {"keyword": 0.0, "vector": 1.0, "hybrid": 0.4}
"""Leg to the weight of vectors."""

BATCH, POOL = 500, 100


@dataclass(frozen=True)
class Question:
    """A query of the set in the forms that the legs understand."""

    query_id: str
    terms: str
    vector: Vector


def main() -> None:
    """Copy, ask, print; a failure prints what is wrong and exits with 1."""
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
        print("| store | " + " | ".join(LEGS) + " |\n| --- |" + " --- |" * len(LEGS))
        with closing(make_store(settings, settings.store)) as source:
            found = ask(source, options.collection, judged, questions)
            print(_row(settings.store, found), flush=True)
            for kind in options.to:
                with closing(make_store(settings, kind)) as target:
                    found = ask_copy(source, options.collection, target, judged, questions)
                print(_row(kind, found), flush=True)
    except CallslipError as error:
        sys.exit(f"{error.detail}\n{error.advice}")


def prepare(judged: beir.JudgedSet, embedder: Embedder, analyzer: Analyzer) -> list[Question]:
    """Every question of the set, analyzed and embedded once."""
    return [
        Question(query_id, analyzer.analyze(text), embedder.query(text))
        for query_id, text in judged.queries.items()
    ]


def copy(source: Store, collection: str, target: Store, name: str) -> None:
    """Make a collection of the same schema in another store and write every chunk into it."""
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
    """Ask a copy of the collection in another store; the copy is dropped."""
    name = f"agree-{secrets.token_hex(4)}"
    try:
        copy(source, collection, target, name)
        return ask(target, name, judged, questions)
    finally:
        target.drop_collection(name)


def ask(
    store: Store, collection: str, judged: beir.JudgedSet, questions: Sequence[Question]
) -> dict[str, float]:
    """Leg to nDCG@10 over these questions; a chunk's file is named for its document in the set."""
    runs: dict[str, dict[str, dict[str, float]]] = {leg: {} for leg in LEGS}
    for question in questions:
        for leg, alpha in LEGS.items():
            found = store.hybrid_query(
                collection, question.vector, question.terms, POOL, pool=POOL, alpha=alpha
            )
            chunks = store.get_chunks(collection, [c.chunk_id for c in found[:30]])
            files = (chunk.filename.removesuffix(".txt") for chunk in chunks)
            runs[leg][question.query_id] = rank_documents(files)
    return {leg: measure(judged.qrels, run)["ndcg@10"] for leg, run in runs.items()}


def _row(kind: str, found: dict[str, float]) -> str:
    return f"| {kind} | " + " | ".join(f"{found[leg]:.4f}" for leg in LEGS) + " |"


if __name__ == "__main__":
    main()
