"""The report on a judged set, as JSON and as text."""

from dataclasses import dataclass
from typing import Any, Literal

from callslip.evals.measures import MEASURES

RetrieverName = Literal["keyword", "vector", "hybrid"]

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
class Report:
    """The measures of a judged set; a retriever that the server cannot run (no vectors) is missing.

    `seconds` is the wall time of everything, `ingest_seconds` until all documents were live.
    """

    name: str
    documents: int
    queries: int
    legs: dict[RetrieverName, RetrieverReport]
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
        """The report as JSON values; seconds per phase and warnings are at the end."""
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
