"""Passages of other documents beside the best one: whether they give the same answer or another.

Two sentences are compared by their values of the asked kind (`evidence.kinds`): dates, and amounts
of the asked dimensions, of any dimension if the question only asks for a number.
"""

from collections.abc import Sequence
from dataclasses import replace

from callslip.models.embedders.contract import Embedder
from callslip.models.entities.dates import days
from callslip.models.text.analyzer import Analyzer
from callslip.retrieval.evidence.clauses import claims_of
from callslip.retrieval.evidence.extracts import Extract, Target, extracts
from callslip.retrieval.evidence.kinds import kinds_of
from callslip.retrieval.evidence.overlap import covered
from callslip.retrieval.evidence.reading import NO_READINGS, Readings
from callslip.retrieval.messages import Hit

COMPARED = 5
"""The number of hits that are compared."""

SHARED = 0.6
"""The minimum share of the question's words in each of two sentences that contradict each other."""

Value = tuple[str, float]
"""A dimension and an amount in its smallest unit; `date` and the ordinal of a day."""


def agreeing(
    hits: Sequence[Hit],
    target: Target,
    analyzer: Analyzer,
    embedder: Embedder,
    read: Readings = NO_READINGS,
) -> frozenset[str]:
    """Return the chunk ids of the hits that answer as the first hit does: no rivals of it.

    Their best sentence has a value of the best sentence of the first hit, or contradicts it.
    """
    kinds = kinds_of(target.text, analyzer.codes)
    if not kinds or not hits:
        return frozenset()
    first = _best(hits[0], target, analyzer, embedder, read)
    others = (_best(h, target, analyzer, embedder, read) for h in _others(hits, hits[0]))
    return frozenset(
        other.hit.chunk_id
        for other in others
        if first is not None and other is not None
        if _values(first.text, kinds, analyzer) & _values(other.text, kinds, analyzer)
        or _contradict(first, other, target, analyzer)
    )


def contradicting(
    best: Extract,
    hits: Sequence[Hit],
    target: Target,
    analyzer: Analyzer,
    embedder: Embedder,
    read: Readings = NO_READINGS,
) -> Extract | None:
    """Return the first sentence of another document that contradicts an extract.

    Both sentences have most of the question's words, and different values of the asked kind.
    """
    others = (_best(h, target, analyzer, embedder, read) for h in _others(hits, best.hit))
    return next((o for o in others if o and _contradict(best, o, target, analyzer)), None)


def _others(hits: Sequence[Hit], first: Hit) -> Sequence[Hit]:
    return [h for h in hits[:COMPARED] if h.document_id != first.document_id]


def _best(
    hit: Hit, target: Target, analyzer: Analyzer, embedder: Embedder, read: Readings
) -> Extract | None:
    """Return the best sentence of a hit, by words and reader alone; None if it has none."""
    best = extracts([hit], replace(target, vector=None), analyzer, embedder, 1, read)
    return best[0] if best else None


def _contradict(one: Extract, other: Extract, target: Target, analyzer: Analyzer) -> bool:
    kinds = kinds_of(target.text, analyzer.codes)
    terms = (frozenset(analyzer.analyze(e.text).split()) for e in (one, other))
    if min(covered(target.idf, each) for each in terms) < SHARED:
        return False
    ours, theirs = (_values(e.text, kinds, analyzer) for e in (one, other))
    dimensions = {dimension for dimension, _ in ours} & {dimension for dimension, _ in theirs}
    return bool(dimensions) and not ours & theirs


def _values(text: str, kinds: frozenset[str], analyzer: Analyzer) -> frozenset[Value]:
    """Return the values of the asked kinds in a text."""
    any_dimension = kinds == {"number"}
    values = {
        (amount.dimension, round(amount.value, 6))
        for amount in claims_of(text, analyzer.codes).amounts(text)
        if amount.dimension in kinds or (any_dimension and amount.dimension not in ("", "ordinal"))
    }
    if "date" in kinds:
        values |= {("date", float(d.day.toordinal())) for d in days(text, analyzer.codes)}
    return frozenset(values)
