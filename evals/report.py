"""What measuring a judged set found, for programs and for people."""

from dataclasses import dataclass
from typing import Any, Literal

from evals.measures import MEASURES

LegName = Literal["keyword", "vector", "hybrid"]

DEPTH = 100
"""Documents that Recall@100 looks at."""


@dataclass(frozen=True)
class LegReport:
    """One way of searching.

    `measures` are means over the queries. `depth` is the fewest documents of any query whose
    ranking was cut off: below DEPTH, Recall@100 is too low. None where no ranking was cut off.
    """

    measures: dict[str, float]
    depth: int | None
    seconds: float


@dataclass(frozen=True)
class Report:
    """A judged set measured; a leg that the desk cannot run (no vectors) is missing.

    `seconds` is the wall time of everything, `ingest_seconds` until all documents were live.
    """

    name: str
    documents: int
    queries: int
    legs: dict[LegName, LegReport]
    seconds: float
    ingest_seconds: float
    collection: str
    kept: bool
    warnings: tuple[str, ...]

    def shallow(self) -> dict[LegName, LegReport]:
        """The legs whose Recall@100 is too low because a ranking was cut off before DEPTH."""
        return {
            name: leg
            for name, leg in self.legs.items()
            if leg.depth is not None and leg.depth < min(DEPTH, self.documents)
        }

    def as_json(self) -> dict[str, Any]:
        """For programs; seconds per phase and what is odd stand at the end."""
        return {
            "set": self.name,
            "documents": self.documents,
            "queries": self.queries,
            "legs": {name: leg.measures for name, leg in self.legs.items()},
            "seconds": round(self.seconds, 1),
            "phases": {
                "ingest": round(self.ingest_seconds, 1),
                **{name: round(leg.seconds, 1) for name, leg in self.legs.items()},
            },
            "depth": {name: leg.depth for name, leg in self.shallow().items()},
            "collection": self.collection if self.kept else None,
            "warnings": list(self.warnings),
        }


def table(report: Report) -> str:
    """The measures side by side, and what must be known beside them."""
    width = max(map(len, report.legs), default=0)
    rate = report.documents / report.ingest_seconds
    lines = [
        f"{report.name}: {report.documents:,} documents, {report.queries:,} queries",
        f"{'':{width}}" + "".join(f"{_TITLES[name]:>12}" for name in MEASURES),
        *(
            f"{name:{width}}" + "".join(f"{leg.measures[each]:12.4f}" for each in MEASURES)
            for name, leg in report.legs.items()
        ),
        f"{report.seconds:.0f} s, of these {report.ingest_seconds:.0f} s ingesting"
        f" ({rate:.1f} documents/s)",
        *(
            f"Recall@100 of {name} saw only {leg.depth} documents for some query:"
            " their passages filled the longest answer."
            for name, leg in report.shallow().items()
        ),
        *(f"Note: {warning}." for warning in report.warnings),
    ]
    if report.kept:
        lines.append(f"Kept as collection {report.collection}.")
    return "\n".join(lines)


_TITLES = {"ndcg@10": "nDCG@10", "recall@10": "Recall@10", "recall@100": "Recall@100"} | {
    "mrr@10": "MRR@10"
}
