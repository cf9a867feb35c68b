"""The quality table: `python -m evals.quality SET… > table.md`.

Every judged set is ingested into a scratch collection of the desk (or is there already, see
`--collection`), every query is searched in each of `evals.ways`, and each way is held against
hybrid search, query by query. The table goes to standard output, set by set.
"""

import argparse
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from callslip import __version__
from callslip.errors import CallslipError, EvaluationError, PermanentError
from config import load
from evals import beir, judge
from evals.client import Desk
from evals.measures import Estimate, estimate, measure_each
from evals.report import DEPTH
from evals.run import show, show_end
from evals.tables import table, tell
from evals.ways import ANY_TIME, HYBRID, WAYS, Way
from workers.up import running_url

PUBLISHED = {
    ("en_scifact", "keyword"): "BM25 .679",
    ("en_scifact", "vector"): "multilingual-e5-small .676, bge-small .713",
    ("ko_autorag", "keyword"): "BM25 with Okt .919",
    ("ko_autorag", "vector"): "multilingual-e5-small .801",
    ("en_xquad", "keyword"): "BM25 .965",
}
"""nDCG@10 that others report, by the set's folder and way."""

HEAD = (
    *("set", "way", "queries", "nDCG@10 [95 %]", "Recall@100", "MRR@10", "success@1"),
    *("nDCG@10 − hybrid [95 %]", "published"),
)


@dataclass(frozen=True)
class Row:
    """One way on one set. `gain` is the paired difference to hybrid in nDCG@10; None: hybrid's."""

    way: str
    queries: int
    ndcg: Estimate
    means: Mapping[str, float]
    gain: Estimate | None


@dataclass(frozen=True)
class Quality:
    """One set: a row for each way that the desk can search, and what must be known beside them."""

    name: str
    rows: tuple[Row, ...]
    notes: tuple[str, ...]


Each = Mapping[str, Mapping[str, float]]
"""Measure to query to value."""


def compare(
    desk: Desk,
    collection: str,
    judged: beir.JudgedSet,
    ids: Mapping[str, str],
    ways: Iterable[Way] = WAYS,
    on_progress: judge.OnProgress = lambda progress: None,
) -> Quality:
    """Search every query in each of the ways, HYBRID among them.

    `ids` are the desk's document ids to the set's. A way that the desk cannot search is a note.
    Raises what `judge.search_all` raises.
    """
    found: dict[str, Each] = {}
    notes: list[str] = []
    for way in ways:
        try:
            asked = way.prepare(desk, collection, judged, ids)
        except PermanentError as error:
            notes.append(f"{way.name} is not measured: {error.detail}")
            continue
        tell(f"{judged.name}: {way.name}, {len(asked.queries):,} queries")
        try:
            made = judge.search_all(desk, collection, asked, way, ids, on_progress)
        finally:
            way.undo(desk, collection)
        if made is None:
            notes.append(f"{way.name} is not measured: the desk has no {way.needs}")
            continue
        found[way.name] = measure_each(asked.qrels, made.run)
        notes += made.said(way.name)
        if made.depth is not None and made.depth < min(DEPTH, judged.documents):
            notes.append(f"Recall@100 of {way.name} saw only {made.depth} documents of some query")
    base = found[HYBRID.name]["ndcg@10"]
    rows = (_row(name, each, base) for name, each in found.items())
    return Quality(judged.name, tuple(rows), tuple(notes))


def _row(way: str, each: Each, base: Mapping[str, float]) -> Row:
    ndcg = each["ndcg@10"]
    gains = [value - base[query] for query, value in ndcg.items()]
    return Row(
        way=way,
        queries=len(ndcg),
        ndcg=estimate(list(ndcg.values())),
        means={name: sum(values.values()) / len(values) for name, values in each.items()},
        gain=None if way == HYBRID.name else estimate(gains),
    )


def lines(quality: Quality) -> list[tuple[str, ...]]:
    """The rows as cells of the table."""
    return [
        (
            quality.name,
            row.way,
            f"{row.queries:,}",
            _told(row.ndcg),
            *(_figure(row.means[name]) for name in ("recall@100", "mrr@10", "success@1")),
            "" if row.gain is None else _told(row.gain, sign="+"),
            PUBLISHED.get((quality.name, row.way), ""),
        )
        for row in quality.rows
    ]


def _told(found: Estimate, sign: str = "-") -> str:
    ends = f"{_figure(found.low, sign)}, {_figure(found.high, sign)}"
    return f"{_figure(found.mean, sign)} [{ends}]"


def _figure(value: float, sign: str = "-") -> str:
    """Three digits, without the zero before them: .679, 1.000, and with a sign +.012, −.003."""
    value = round(value, 3) or 0.0  # no −.000
    return f"{value:{sign}.3f}".replace("0.", ".", 1).replace("-", "−")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; 1 where a set could not be measured."""
    asked = _arguments(arguments)
    settings = load().settings
    url = asked.url or settings.api.url or running_url(settings) or settings.api_url
    part = "" if asked.half is None else f", half {asked.half} of the queries"
    print(f"Callslip {__version__}, {datetime.now(UTC):%Y-%m-%d}{part}.\n")
    print(table(HEAD, []), flush=True)
    notes: list[str] = []
    failed = False
    with Desk(url, key=settings.api.key) as desk:
        for number, folder in enumerate(asked.sets):
            at = asked.collection[number] if asked.collection else None
            said: list[str] = []
            try:
                quality = _measure(desk, folder, at, asked, said)
            except CallslipError as error:
                failed = True
                said.append(f"not measured: {error.detail}")
            else:
                said = [*quality.notes, *said]
                print("\n".join(f"| {' | '.join(line)} |" for line in lines(quality)), flush=True)
            show_end()
            notes += (f"- {folder.resolve().name}: {note.removesuffix('.')}." for note in said)
    if notes:
        print("\n" + "\n".join(notes))
    return int(failed)


def _measure(
    desk: Desk, folder: Path, collection: str | None, asked: argparse.Namespace, notes: list[str]
) -> Quality:
    """Measure one set, in a collection that is there or in one of its own."""
    judged = beir.read(folder)
    notes += judged.warnings
    if asked.half is not None:
        judged = judged.half(asked.half)
    if asked.queries is not None:
        judged = judged.at_most(asked.queries)
    if not judged.queries:
        raise EvaluationError("this half has no query")
    ways = (*WAYS, ANY_TIME) if judged.as_of else WAYS
    name = collection or judge.scratch_name(judged.name)
    with _ids(desk, name, judged, asked, notes) as ids:
        return compare(desk, name, judged, ids, ways, show)


def _ids(
    desk: Desk, name: str, judged: beir.JudgedSet, asked: argparse.Namespace, notes: list[str]
) -> AbstractContextManager[dict[str, str]]:
    if asked.collection:
        return nullcontext(judge.already_there(desk, name, judged))
    tell(f"{judged.name}: {judged.documents:,} documents go into {name}")
    if asked.keep:
        notes.append(f"kept as collection {name}")
    return judge.ingested(desk, name, judged, notes, asked.store, show, keep=asked.keep)


def _arguments(given: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m evals.quality",
        description="Measure keyword, vector and hybrid search, and hybrid search with the prior,"
        " the reranker and memory, on judged sets in BEIR form: Markdown on standard output.",
        epilog="Example:  python -m evals.quality sets/en_scifact sets/ko_autorag --half 1",
    )
    parser.add_argument("sets", nargs="+", type=Path, metavar="SET", help="folder in BEIR form")
    parser.add_argument("--url", help="where the desk runs; default: the one of the settings")
    parser.add_argument(
        *("--collection", "-c"),
        action="append",
        metavar="NAME",
        help="where the set was ingested before, once for each set in their order; default: it is"
        " ingested into a scratch collection",
    )
    parser.add_argument("--store", help="of the scratch collection; default: as the desk does")
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
    asked = parser.parse_args(given)
    if asked.collection and len(asked.collection) != len(asked.sets):
        parser.error(f"{len(asked.collection)} times --collection for {len(asked.sets)} sets")
    return asked


def _count(text: str) -> int:
    if (count := int(text)) < 1:
        raise argparse.ArgumentTypeError("at least 1 is needed")
    return count


if __name__ == "__main__":
    sys.exit(main())
