"""Passages of other documents beside the best one: whether they give the same answer or another.

Two sentences are compared by their values of the asked kind (`evidence.kinds`): dates, and amounts
of the asked dimensions. If the question only asks for a number, sentences with an equal amount of
any dimension agree, and none contradict each other.
"""

from collections.abc import Sequence, Set
from dataclasses import replace

from callslip.models.embedders.contract import Embedder
from callslip.models.entities.dates import days
from callslip.models.text.analyzer import Analyzer
from callslip.retrieval.evidence.clauses import claims_of
from callslip.retrieval.evidence.extracts import Extract, Target, extracts
from callslip.retrieval.evidence.kinds import kinds_of
from callslip.retrieval.evidence.numbers import around, has_numbers, named_numbers
from callslip.retrieval.evidence.overlap import covered
from callslip.retrieval.evidence.reading import NO_READINGS, Readings
from callslip.retrieval.messages import Hit

COMPARED = 5
"""The maximum number of hits that are compared; the analysis of one takes milliseconds."""

NEAR = 0.05
"""The maximum distance to the best score of a hit that is compared."""

AGREE, CONTRADICT = 0.4, 0.6
"""The minimum shares of the question's words in each of two sentences, with the title and heading,
that agree, and in each of two sentences that contradict each other. Chosen, not fitted: an equal
number alone is no agreement, and another number of another thing no contradiction."""

Value = tuple[str, float]
"""A dimension and an amount in its smallest unit; `date` and the ordinal of a day."""


def agreeing(
    hits: Sequence[Hit],
    target: Target,
    analyzer: Analyzer,
    embedder: Embedder,
    read: Readings = NO_READINGS,
) -> frozenset[str]:
    """Return the chunk ids of the hits that are no rivals of the first hit.

    Their best sentence has a value of the best sentence of the first hit, or contradicts it.
    """
    kinds = kinds_of(target.text, analyzer.codes)
    if not kinds or not hits:
        return frozenset()
    first = _best(hits[0], target, analyzer, embedder, read)
    others = (_best(h, target, analyzer, embedder, read) for h in _others(hits, hits[0], target))
    return frozenset(
        other.hit.chunk_id
        for other in others
        if first is not None and other is not None
        if _agree(first, other, target, analyzer) or _contradict(first, other, target, analyzer)
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
    if not _comparable(kinds_of(target.text, analyzer.codes)):
        return None
    others = (_best(h, target, analyzer, embedder, read) for h in _others(hits, best.hit, target))
    return next((o for o in others if o and _contradict(best, o, target, analyzer)), None)


def _others(hits: Sequence[Hit], first: Hit, target: Target) -> Sequence[Hit]:
    """Return the near hits of other documents that have the named numbers of the question."""
    numbers, least = named_numbers(target.text), hits[0].score - NEAR
    return [
        h
        for h in hits[:COMPARED]
        if h.document_id != first.document_id and h.score >= least
        if has_numbers(numbers, around(h))
    ]


def _best(
    hit: Hit, target: Target, analyzer: Analyzer, embedder: Embedder, read: Readings
) -> Extract | None:
    """Return the best sentence of a hit, by words and reader alone; None if it has none."""
    best = extracts([hit], replace(target, vector=None), analyzer, embedder, 1, read)
    return best[0] if best else None


def _agree(one: Extract, other: Extract, target: Target, analyzer: Analyzer) -> bool:
    kinds = kinds_of(target.text, analyzer.codes)
    if not _values(one.text, kinds, analyzer) & _values(other.text, kinds, analyzer):
        return False
    texts = (f"{e.hit.title}\n{e.hit.heading}\n{e.text}" for e in (one, other))
    return min(_share(text, target, analyzer) for text in texts) >= AGREE


def _contradict(one: Extract, other: Extract, target: Target, analyzer: Analyzer) -> bool:
    kinds = kinds_of(target.text, analyzer.codes)
    if not _comparable(kinds):
        return False
    if min(_share(e.text, target, analyzer) for e in (one, other)) < CONTRADICT:
        return False
    ours, theirs = (_values(e.text, kinds, analyzer) for e in (one, other))
    dimensions = {dimension for dimension, _ in ours} & {dimension for dimension, _ in theirs}
    return bool(dimensions) and not ours & theirs


def _comparable(kinds: Set[str]) -> bool:
    """Whether the question says of which dimension a value is: not `number` alone."""
    return bool(kinds - {"number", "address"})


def _share(text: str, target: Target, analyzer: Analyzer) -> float:
    return covered(target.idf, frozenset(analyzer.analyze(text).split()))


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
