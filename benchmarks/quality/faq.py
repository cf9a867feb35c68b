"""Retrieval quality of an FAQ for each strategy.

`python -m benchmarks.quality.faq FOLDER > table.md`

The set has BEIR form; its titles are questions and its texts their answers. The rows go into three
collections of the server as `callslip ingest-faq` sends them, and every query goes to all of these
collections with `POST /v1/compare`. A hit rate is the share of queries with an answer among the
first k hits.
"""

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import ir_measures
from ir_measures import RR, Success, nDCG

from benchmarks.quality.judged_collections import connected
from callslip import __version__
from callslip.config.sections.faq import STRATEGIES
from callslip.errors import CallslipError, CollectionNotFound, JudgedSetError, SearchTimeout
from callslip.evals import beir
from callslip.evals.client import SEARCH_TRIES, JsonClient
from callslip.evals.judge import Clock, scratch_name
from callslip.evals.measures import Estimate, Qrels, Run, estimate, rank_documents
from callslip.evals.run import show, show_end
from callslip.evals.tables import table, tell

MERGED = "merged"

MEASURES = {
    "hit rate@1": Success @ 1,
    "hit rate@5": Success @ 5,
    "hit rate@10": Success @ 10,
    "MRR@10": RR @ 10,
    "nDCG@10": nDCG @ 10,
}

INTERVAL = "nDCG@10"
"""The measure that is shown with its confidence interval."""

TOP, BATCH, LONGEST_NAME = 10, 40, 20

HEAD = ("strategy", *MEASURES, "95 % of nDCG@10")


def ask_all(
    client: JsonClient, collections: Sequence[str], judged: beir.JudgedSet
) -> dict[str, Run]:
    """Return the ranked rows for each query: those of each collection and the merged ones."""
    clock = Clock("compare", len(judged.queries), show)
    runs: dict[str, dict[str, Mapping[str, float]]] = {c: {} for c in (*collections, MERGED)}

    def ask(query: str) -> dict[str, Any]:
        body = {
            "query": judged.queries[query],
            "collections": list(collections),
            "top_k": TOP,
            "threshold": -1,
        }
        for _ in range(SEARCH_TRIES - 1):
            with suppress(SearchTimeout):
                return client.post("/v1/compare", body)
        return client.post("/v1/compare", body)

    with ThreadPoolExecutor(client.connections) as pool:
        for query, answer in zip(judged.queries, pool.map(ask, judged.queries), strict=True):
            hits_of = {**answer["collections"], MERGED: answer["merged"]}
            for name, hits in hits_of.items():
                runs[name][query] = rank_documents(hit["metadata"]["id"] for hit in hits)
            clock.tell(len(runs[MERGED]))
    show_end()
    return dict(runs)


def measured(qrels: Qrels, run: Run) -> tuple[dict[str, float], Estimate]:
    """Return the mean of each of MEASURES over all queries, and the estimate of INTERVAL."""
    aggregate = ir_measures.calc_aggregate(MEASURES.values(), qrels, run)
    each = ir_measures.iter_calc([MEASURES[INTERVAL]], qrels, run)
    means = {name: float(aggregate[measure]) for name, measure in MEASURES.items()}
    return means, estimate([float(one.value) for one in each])


@contextmanager
def ingested(
    client: JsonClient, name: str, judged: beir.JudgedSet, *, keep: bool
) -> Iterator[list[str]]:
    """Ingest the set as an FAQ and provide its collections; drop them at the end unless `keep`."""
    rows = [{"id": d.document_id, "question": d.title, "answer": d.text} for d in judged.corpus()]
    if not all(row["question"].strip() and row["answer"].strip() for row in rows):
        raise JudgedSetError(f"{judged.folder} has documents without a title or a text")
    collections = [f"{name}__{strategy}" for strategy in STRATEGIES]
    clock = Clock("ingest", len(rows), show)
    try:
        for at in range(0, len(rows), BATCH):
            client.post(f"/v1/faq/{name}", {"rows": rows[at : at + BATCH]})
            clock.tell(min(at + BATCH, len(rows)))
        show_end()
        yield collections
    finally:
        for collection in () if keep else collections:
            with suppress(CollectionNotFound):
                client.delete(f"/v1/collections/{collection}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; return 1 if the set cannot be measured."""
    options = _arguments(arguments)
    try:
        judged = beir.read(options.folder, options.queries)
        name = scratch_name(judged.name[:LONGEST_NAME])
        tell(f"{judged.name}: {judged.documents:,} rows go into {name}")
        with (
            connected(options.url) as client,
            ingested(client, name, judged, keep=options.keep) as collections,
        ):
            runs = ask_all(client, collections, judged)
    except CallslipError as error:
        print(f"{error.detail}\n{error.advice}", file=sys.stderr)
        return 1
    rows = []
    for strategy, run in zip((*STRATEGIES, MERGED), runs.values(), strict=True):
        means, interval = measured(judged.qrels, run)
        ends = f"[{_figure(interval.low)}, {_figure(interval.high)}]"
        rows.append((strategy, *map(_figure, means.values()), ends))
    print(f"Callslip {__version__}, {datetime.now(UTC):%Y-%m-%d}; {judged.name}:", end=" ")
    print(f"{judged.documents:,} rows, {len(judged.queries):,} queries.\n")
    print(table(HEAD, rows))
    return 0


def _figure(value: float) -> str:
    return f"{value:.3f}".replace("0.", ".", 1)


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.quality.faq",
        description="Measure how well questions find the rows of an FAQ, by strategy and merged:"
        " Markdown on standard output.",
        epilog="Example:  python -m benchmarks.quality.faq sets/en_stackfaq",
    )
    parser.add_argument("folder", type=Path, help="a judged set in BEIR form: title and text")
    parser.add_argument("--url", help="where the server runs; default: the one of the settings")
    parser.add_argument("--queries", type=int, metavar="N", help="at most so many")
    parser.add_argument("--keep", action="store_true", help="keep the collections")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
