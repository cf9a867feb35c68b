"""The quality table: `python -m benchmarks.quality SET… > table.md`.

The benchmark ingests every judged set into a scratch collection of the server, unless
`--collection` names an existing one. With `--data FOLDER` it starts a server of its own over that
folder, whose collections stay: a run that was interrupted continues, and a later run ingests
nothing again. It searches every query with each of `evals.variants`, and
compares each variant with hybrid search, query by query. The table goes to standard output, set by
set.
"""

import argparse
import hashlib
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.private_stack import private_stack
from callslip import __version__
from callslip.config import load
from callslip.errors import CallslipError, EvaluationError, PermanentError
from callslip.evals import beir, judge
from callslip.evals.client import JsonClient
from callslip.evals.measures import Estimate, compare_with_half, estimate, measure_each
from callslip.evals.report import DEPTH, MARGIN, Comparison
from callslip.evals.run import show, show_end
from callslip.evals.tables import table, tell
from callslip.evals.variants import ANY_TIME, HYBRID, KEYWORD, VARIANTS, VECTOR, Variant, forget
from callslip.workers.up import running_url

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
            *(_figure(row.means[name]) for name in ("recall@100", "mrr@10", "success@1")),
            "" if row.gain is None else _interval(row.gain, sign="+"),
            PUBLISHED.get((quality.name, row.variant), ""),
        )
        for row in quality.rows
    ]


def _interval(estimated: Estimate, sign: str = "-") -> str:
    ends = f"{_figure(estimated.low, sign)}, {_figure(estimated.high, sign)}"
    return f"{_figure(estimated.mean, sign)} [{ends}]"


def _figure(value: float, sign: str = "-") -> str:
    """Return three decimals without a leading zero: .679, 1.000; with a sign +.012, −.003."""
    value = round(value, 3) or 0.0  # no −.000
    return f"{value:{sign}.3f}".replace("0.", ".", 1).replace("-", "−")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; return 1 if a set cannot be measured or does not pass the gate."""
    options = _arguments(arguments)
    part = "" if options.half is None else f", half {options.half} of the queries"
    print(f"Callslip {__version__}, {datetime.now(UTC):%Y-%m-%d}{part}.\n")
    print(table(HEAD, []), flush=True)
    notes: list[str] = []
    failed = False
    with _server(options) as client:
        for number, folder in enumerate(options.sets):
            at = options.collection[number] if options.collection else None
            remarks: list[str] = []
            try:
                quality = _measure(client, folder, at, options, remarks)
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


@contextmanager
def _server(options: argparse.Namespace) -> Iterator[JsonClient]:
    """A client of the server of the options, or of one that is started over the folder `--data`."""
    if options.data is not None:
        tell(f"starting a server over {options.data}")
        with private_stack(options.data) as stack, JsonClient(stack.run.api_url) as client:
            yield client
        return
    settings = load().settings
    url = options.url or settings.api.url or running_url(settings) or settings.api_url
    with JsonClient(url, key=settings.api.key) as client:
        yield client


def _lasting_name(judged: beir.JudgedSet, store: str | None) -> str:
    """The collection of a set in `--data`: another one if the corpus or the store changes."""
    with (judged.folder / beir.CORPUS).open("rb") as file:
        digest = hashlib.file_digest(file, "blake2b")
    digest.update(f"{store}".encode())
    return f"{judge.plain_name(judged.name)}-{digest.hexdigest()[:8]}"


def _measure(
    client: JsonClient,
    folder: Path,
    collection: str | None,
    options: argparse.Namespace,
    notes: list[str],
) -> Quality:
    """Measure one set, in an existing collection or in a scratch collection."""
    judged = beir.read(folder)
    notes += judged.warnings
    if options.half is not None:
        judged = judged.half(options.half)
    if options.queries is not None:
        judged = judged.at_most(options.queries)
    if not judged.queries:
        raise EvaluationError("this half has no query")
    variants = (*VARIANTS, ANY_TIME) if judged.as_of else VARIANTS
    if options.data is not None:
        name = _lasting_name(judged, options.store)
    else:
        name = collection or judge.scratch_name(judged.name)
    with _ids(client, name, judged, options, notes) as ids:
        return compare(client, name, judged, ids, variants, show)


def _ids(
    client: JsonClient,
    name: str,
    judged: beir.JudgedSet,
    options: argparse.Namespace,
    notes: list[str],
) -> AbstractContextManager[dict[str, str]]:
    if options.collection:
        return nullcontext(judge.already_there(client, name, judged))
    if options.data is not None:
        tell(f"{judged.name}: {judged.documents:,} documents, in {name}")
        ids = judge.completed(client, name, judged, options.store, show)
        forget(client, name)  # what a run that was interrupted taught
        return nullcontext(ids)
    tell(f"{judged.name}: {judged.documents:,} documents go into {name}")
    if options.keep:
        notes.append(f"kept as collection {name}")
    return judge.ingested(client, name, judged, notes, options.store, show, keep=options.keep)


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.quality",
        description="Measure keyword, vector and hybrid search, and hybrid search with the prior,"
        " the reranker and memory, on judged sets in BEIR form: Markdown on standard output.",
        epilog="Example:  python -m benchmarks.quality sets/en_scifact sets/ko_autorag --half 1",
    )
    parser.add_argument("sets", nargs="+", type=Path, metavar="SET", help="folder in BEIR form")
    parser.add_argument("--url", help="where the server runs; default: the one of the settings")
    parser.add_argument(
        "--data",
        type=Path,
        metavar="FOLDER",
        help="start a server over this folder, which keeps collections and vectors, so that a run"
        " that was interrupted continues and the next one ingests nothing again",
    )
    parser.add_argument(
        *("--collection", "-c"),
        action="append",
        metavar="NAME",
        help="where the set was ingested before, once for each set in their order; default: it is"
        " ingested into a scratch collection",
    )
    parser.add_argument("--store", help="of the scratch collection; default: as the server does")
    parser.add_argument(
        "--gate",
        action="store_true",
        help=f"fail where hybrid is more than {MARGIN} nDCG@10 below its better half",
    )
    parser.add_argument("--keep", action="store_true", help="keep the scratch collection")
    parser.add_argument(
        "--half",
        type=int,
        choices=(0, 1),
        help="ask every second query, from the first or the second: choose settings on one half,"
        " report the other",
    )
    parser.add_argument(
        "--queries", type=_count, metavar="N", help="at most so many, spread over the set"
    )
    options = parser.parse_args(arguments)
    if options.data is not None and (options.url or options.collection):
        parser.error("--data starts a server of its own: neither --url nor --collection fits")
    if options.collection and len(options.collection) != len(options.sets):
        parser.error(f"{len(options.collection)} times --collection for {len(options.sets)} sets")
    return options


def _count(text: str) -> int:
    if (count := int(text)) < 1:
        raise argparse.ArgumentTypeError("at least 1 is needed")
    return count


if __name__ == "__main__":
    sys.exit(main())
