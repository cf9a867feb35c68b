"""The quality table: `python -m benchmarks.quality.table SET… > table.md`.

The benchmark ingests every judged set into a scratch collection of the server, unless
`--collection` names an existing one. With `--data FOLDER` it starts a server of its own over that
folder, whose collections stay: a run that was interrupted continues, and a later run ingests
nothing again. It searches every query with each of `evals.variants`, and
compares each variant with hybrid search, query by query. The table goes to standard output, set by
set.
"""

import argparse
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.quality.judged_collections import add_arguments, judged_set, named, parse, server
from callslip import __version__
from callslip.errors import CallslipError, EvaluationError, PermanentError
from callslip.evals import beir, judge
from callslip.evals.client import JsonClient
from callslip.evals.measures import Estimate, compare_with_half, estimate, measure_each
from callslip.evals.report import DEPTH, MARGIN, Comparison
from callslip.evals.run import show, show_end
from callslip.evals.tables import figure, table, tell
from callslip.evals.variants import ANY_TIME, HYBRID, KEYWORD, VARIANTS, VECTOR, Variant

PUBLISHED = {
    ("en_scifact", "keyword"): "BM25 .679",
    ("en_scifact", "vector"): "multilingual-e5-small .676, bge-small .713",
    ("ko_autorag", "keyword"): "BM25 with Okt .919",
    ("ko_autorag", "vector"): "multilingual-e5-small .801",
    ("en_xquad", "keyword"): "BM25 .965",
}
"""Published values of nDCG@10, by the set's folder and variant."""

HEAD = (
    *("set", "variant", "queries", "nDCG@10 [95 %]", "Recall@100", "MRR@10", "success@1"),
    *("nDCG@10 − hybrid [95 %]", "published"),
)


@dataclass(frozen=True)
class Row:
    """The figures of a variant on a set; `gain` is the paired difference in nDCG@10 to hybrid."""

    variant: str
    queries: int
    ndcg: Estimate
    means: Mapping[str, float]
    gain: Estimate | None


@dataclass(frozen=True)
class Quality:
    """The figures of one set: a row for each variant that the server supports, and notes.

    `comparison` is that of hybrid search with its better half, if all three are supported.
    """

    name: str
    rows: tuple[Row, ...]
    notes: tuple[str, ...]
    comparison: Comparison | None


Each = Mapping[str, Mapping[str, float]]
"""Maps a measure to a map from query to value."""


def compare(
    client: JsonClient,
    collection: str,
    judged: beir.JudgedSet,
    ids: Mapping[str, str],
    variants: Iterable[Variant] = VARIANTS,
    on_progress: judge.OnProgress = lambda progress: None,
) -> Quality:
    """Search every query with each of the variants, which must include HYBRID.

    `ids` maps the server's document ids to those of the set. A variant that the server does not
    support becomes a note. Raises the errors of `judge.search_all`.
    """
    measures: dict[str, Each] = {}
    notes: list[str] = []
    for variant in variants:
        try:
            queries = variant.prepare(client, collection, judged, ids)
        except PermanentError as error:
            notes.append(f"{variant.name} is not measured: {error.detail}")
            continue
        tell(f"{judged.name}: {variant.name}, {len(queries.queries):,} queries")
        try:
            made = judge.search_all(client, collection, queries, variant, ids, on_progress)
        finally:
            variant.undo(client, collection)
        if made is None:
            notes.append(f"{variant.name} is not measured: the server has no {variant.needs}")
            continue
        measures[variant.name] = measure_each(queries.qrels, made.run)
        notes += made.remarks(variant.name)
        if made.depth is not None and made.depth < min(DEPTH, judged.documents):
            notes.append(
                f"Recall@100 of {variant.name} saw only {made.depth} documents of some query"
            )
    ndcg = {name: each["ndcg@10"] for name, each in measures.items()}
    rows = (_row(name, each, ndcg[HYBRID.name]) for name, each in measures.items())
    compared = compare_with_half(ndcg, HYBRID.name, (KEYWORD.name, VECTOR.name))
    comparison = compared and Comparison(*compared)
    if comparison:
        notes.append(str(comparison))
    return Quality(judged.name, tuple(rows), tuple(notes), comparison)


def _row(variant: str, each: Each, base: Mapping[str, float]) -> Row:
    ndcg = each["ndcg@10"]
    gains = [value - base[query] for query, value in ndcg.items()]
    return Row(
        variant=variant,
        queries=len(ndcg),
        ndcg=estimate(list(ndcg.values())),
        means={name: sum(values.values()) / len(values) for name, values in each.items()},
        gain=None if variant == HYBRID.name else estimate(gains),
    )


def lines(quality: Quality) -> list[tuple[str, ...]]:
    """Return the rows as cells of the table."""
    return [
        (
            quality.name,
            row.variant,
            f"{row.queries:,}",
            _interval(row.ndcg),
            *(figure(row.means[name]) for name in ("recall@100", "mrr@10", "success@1")),
            "" if row.gain is None else _interval(row.gain, sign="+"),
            PUBLISHED.get((quality.name, row.variant), ""),
        )
        for row in quality.rows
    ]


def _interval(estimated: Estimate, sign: str = "-") -> str:
    ends = f"{figure(estimated.low, sign)}, {figure(estimated.high, sign)}"
    return f"{figure(estimated.mean, sign)} [{ends}]"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; return 1 if a set cannot be measured or does not pass the gate."""
    options = _arguments(arguments)
    part = "" if options.half is None else f", half {options.half} of the queries"
    print(f"Callslip {__version__}, {datetime.now(UTC):%Y-%m-%d}{part}.\n")
    print(table(HEAD, []), flush=True)
    notes: list[str] = []
    failed = False
    with server(options) as client:
        for number, folder in enumerate(options.sets):
            remarks: list[str] = []
            try:
                quality = _measure(client, folder, named(options, number), options, remarks)
            except CallslipError as error:
                failed = True
                remarks.append(f"not measured: {error.detail}")
            else:
                remarks = [*quality.notes, *remarks]
                if options.gate and not (quality.comparison and quality.comparison.passes()):
                    failed = True
                    remarks.append(f"hybrid is below the gate of −{MARGIN}, or a half is missing")
                print("\n".join(f"| {' | '.join(line)} |" for line in lines(quality)), flush=True)
            show_end()
            notes += (f"- {folder.resolve().name}: {note.removesuffix('.')}." for note in remarks)
    if notes:
        print("\n" + "\n".join(notes))
    return int(failed)


def _measure(
    client: JsonClient,
    folder: Path,
    existing: str | None,
    options: argparse.Namespace,
    notes: list[str],
) -> Quality:
    """Measure one set, in the existing collection if there is one."""
    judged = beir.read(folder)
    notes += judged.warnings
    if options.half is not None:
        judged = judged.half(options.half)
    if options.queries is not None:
        judged = judged.at_most(options.queries)
    if not judged.queries:
        raise EvaluationError("this half has no query")
    variants = (*VARIANTS, ANY_TIME) if judged.as_of else VARIANTS
    with judged_set(client, judged, options, existing, notes) as (name, ids):
        return compare(client, name, judged, ids, variants, show)


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.quality.table",
        description="Measure keyword, vector and hybrid search, and hybrid search with the prior,"
        " the reranker and memory, on judged sets in BEIR form: Markdown on standard output.",
        epilog="Example:  python -m benchmarks.quality.table sets/en_scifact sets/ko_autorag"
        " --half 1",
    )
    add_arguments(parser, "folder in BEIR form")
    parser.add_argument(
        "--gate",
        action="store_true",
        help=f"fail where hybrid is more than {MARGIN} nDCG@10 below its better half",
    )
    parser.add_argument(
        "--half",
        type=int,
        choices=(0, 1),
        help="ask every second query, from the first or the second: choose settings on one half,"
        " report the other",
    )
    return parse(parser, arguments)


if __name__ == "__main__":
    sys.exit(main())
