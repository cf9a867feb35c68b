"""The tables of a run: figures of each system, ratios with their spread, and survival."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.peers.measuring import Round
from callslip.evals.tables import figure, table

OWN = "callslip"

Rounds = Mapping[str, Sequence[Round]]
"""The rounds of each system; the rounds with one index were measured after one another."""


@dataclass(frozen=True)
class Row:
    """A row of the tables."""

    key: str
    title: str
    more_is_better: bool = False
    digits: int = 1


ROWS = (
    Row("ingest documents/s", "ingestion, documents/s", more_is_better=True, digits=2),
    Row("ingest processor ms", "… processor ms a document"),
    *(
        row
        for clients in (1, 4, 16)
        for row in (
            Row(f"search {clients}/s", f"searches/s, {clients} at one time", more_is_better=True),
            Row(f"search {clients} p50", "… p50, ms"),
            Row(f"search {clients} p95", "… p95, ms"),
            Row(f"search {clients} processor ms", "… processor ms a search"),
        )
    ),
    Row("change s", "1 % changed, s", digits=2),
    Row("delete s", "10 % deleted, s", digits=2),
    Row("memory peak", "memory at most, MB", digits=0),
    Row("memory at rest", "memory at rest, MB", digits=0),
    Row("disk", "disk, MB"),
)

NDCG = "ndcg@10"


@dataclass(frozen=True)
class Ratio:
    """How many times better Callslip is: the median over the rounds, the least and the most."""

    median: float
    low: float
    high: float

    def __str__(self) -> str:
        if self.low == self.high:
            return f"{self.median:.2f}"
        return f"{self.median:.2f} ({self.low:.2f} to {self.high:.2f})"


def ratio(own: Sequence[float], other: Sequence[float], *, more_is_better: bool) -> Ratio:
    """Return by how much Callslip is better, above 1 if it is ahead.

    Each round of Callslip is compared with the other system's round of the same index.
    """
    pairs = list(zip(own, other, strict=False))
    ratios = [a / b if more_is_better else b / a for a, b in pairs if a and b]
    if not ratios:
        return Ratio(float("nan"), float("nan"), float("nan"))
    return Ratio(statistics.median(ratios), min(ratios), max(ratios))


def figures(rounds: Rounds) -> str:
    """Return the median of each figure for each system."""
    rows = [
        (row.title, *(f"{_median(each, row.key):,.{row.digits}f}" for each in rounds.values()))
        for row in ROWS
    ]
    rows.append(("nDCG@10", *(figure(_median(each, NDCG)).lstrip("0") for each in rounds.values())))
    return table(("Median of the rounds", *rounds), rows)


def ratios(rounds: Rounds) -> str:
    """Return Callslip compared with each other system; above 1 Callslip is ahead."""
    others = {name: each for name, each in rounds.items() if name != OWN}
    rows = [
        (
            row.title,
            *(
                str(
                    ratio(
                        _values(rounds[OWN], row.key),
                        _values(each, row.key),
                        more_is_better=row.more_is_better,
                    )
                )
                for each in others.values()
            ),
        )
        for row in ROWS
    ]
    own = _median(rounds[OWN], NDCG)
    differences = (figure(own - _median(each, NDCG), "+") for each in others.values())
    rows.append(("nDCG@10, difference", *differences))
    return table(("Callslip is better by", *others), rows)


def survival(rounds: Rounds) -> str:
    """Return what each system kept after it was killed, of each round."""
    rows = []
    for name, each in rounds.items():
        survivals = [one.survival for one in each if one.survival is not None]
        rows.append(
            (
                name,
                *(
                    ", ".join(str(getattr(one, field)) for one in survivals) or "ended before"
                    for field in ("acknowledged", "at_once", "at_last", "partial")
                ),
            )
        )
    head = ("acknowledged", "whole at the next start", "whole at last", "in part")
    return table(("After kill -9, documents", *head), rows)


def remarks(rounds: Rounds) -> str:
    """Return what was not as expected, a line each."""
    lines = {f"{name}: {text}" for name, each in rounds.items() for r in each for text in r.remarks}
    return "\n".join(f"- {line}" for line in sorted(lines))


def _values(rounds: Sequence[Round], key: str) -> list[float]:
    return [each.figures[key] for each in rounds]


def _median(rounds: Sequence[Round], key: str) -> float:
    return statistics.median(_values(rounds, key))
