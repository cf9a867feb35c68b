"""The report on a judged set, as JSON and as text."""

from dataclasses import dataclass
from typing import Any, Literal

from callslip.evals.measures import MEASURES, Estimate

RetrieverName = Literal["keyword", "vector", "hybrid"]

MARGIN = 0.005
"""nDCG@10 by which hybrid search may be below its better half."""

DEPTH = 100
"""The number of documents that Recall@100 needs."""


@dataclass(frozen=True)
class RetrieverReport:
    """The measures of one variant of search.

    `measures` are means over the queries. `depth` is the fewest documents of any query whose
    ranking was cut off: below DEPTH, Recall@100 is too low. None if no ranking was cut off.
    """

    measures: dict[str, float]
    depth: int | None
    seconds: float


@dataclass(frozen=True)
class Comparison:
    """nDCG@10 of hybrid search minus that of its better half, query by query (paired)."""

    half: str
    gain: Estimate

    def passes(self) -> bool:
        """Whether hybrid search is at most MARGIN below its better half."""
        return self.gain.mean >= -MARGIN

    def as_json(self) -> dict[str, Any]:
        """The comparison as JSON values."""
        gain = {"mean": self.gain.mean, "low": self.gain.low, "high": self.gain.high}
        return {"half": self.half, "ndcg@10": {at: round(value, 4) for at, value in gain.items()}}

    def __str__(self) -> str:
        gain = self.gain
        return (
            f"hybrid - {self.half}, its better half: {gain.mean:+.4f} nDCG@10"
            f" [{gain.low:+.4f}, {gain.high:+.4f}]"
        )


@dataclass(frozen=True)
class Report:
    """The measures of a judged set; a retriever that the server cannot run (no vectors) is missing.

    `comparison` is None if keyword, vector or hybrid search is missing. `seconds` is the wall time
    of everything, `ingest_seconds` until all documents were live.
    """

    name: str
    documents: int
    queries: int
    legs: dict[RetrieverName, RetrieverReport]
    comparison: Comparison | None
    seconds: float
    ingest_seconds: float
    collection: str
    remains: bool
    warnings: tuple[str, ...]

    def shallow(self) -> dict[RetrieverName, RetrieverReport]:
        """The retrievers whose Recall@100 is too low because a ranking was cut off before DEPTH."""
        return {
            name: retriever
            for name, retriever in self.legs.items()
            if retriever.depth is not None and retriever.depth < min(DEPTH, self.documents)
        }

    def as_json(self) -> dict[str, Any]:
        """Return the report as JSON values.

        `phases` has the seconds of each phase. `hybrid_minus_half` is null without a comparison,
        `collection` if the collection was dropped.
        """
        return {
            "set": self.name,
            "documents": self.documents,
            "queries": self.queries,
            "legs": {name: retriever.measures for name, retriever in self.legs.items()},
            "seconds": round(self.seconds, 1),
            "phases": {
                "ingest": round(self.ingest_seconds, 1),
                **{name: round(retriever.seconds, 1) for name, retriever in self.legs.items()},
            },
            "hybrid_minus_half": self.comparison and self.comparison.as_json(),
            "depth": {name: retriever.depth for name, retriever in self.shallow().items()},
            "collection": self.collection if self.remains else None,
            "warnings": list(self.warnings),
        }


def table(report: Report) -> str:
    """The measures as a table, followed by the warnings."""
    width = max(map(len, report.legs), default=0)
    rate = report.documents / report.ingest_seconds
    lines = [
        f"{report.name}: {report.documents:,} documents, {report.queries:,} queries",
        f"{'':{width}}" + "".join(f"{_TITLES[name]:>12}" for name in MEASURES),
        *(
            f"{name:{width}}" + "".join(f"{retriever.measures[each]:12.4f}" for each in MEASURES)
            for name, retriever in report.legs.items()
        ),
        *([str(report.comparison)] if report.comparison else []),
        f"{report.seconds:.0f} s, of these {report.ingest_seconds:.0f} s ingesting"
        f" ({rate:.1f} documents/s)",
        *(
            f"Recall@100 of {name} saw only {retriever.depth} documents for some query:"
            " their passages filled the longest answer."
            for name, retriever in report.shallow().items()
        ),
        *(f"Note: {warning}." for warning in report.warnings),
    ]
    if report.remains:
        lines.append(f"Kept as collection {report.collection}.")
    return "\n".join(lines)


_TITLES = {"ndcg@10": "nDCG@10", "recall@10": "Recall@10", "recall@100": "Recall@100"} | {
    "mrr@10": "MRR@10"
}
