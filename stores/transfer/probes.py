"""Probe queries: the same questions to both sides of a move, and how alike they answer.

A probe is a chunk taken at random: its own vectors and some of its terms are the queries.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from callslip.errors import MetricNotIndexed, StoreCannot
from stores.contract import Store
from stores.ledger import Ledger
from stores.records import LegHit, StoredChunk

PROBES = 20
DEPTH = 10
"""Hits that are compared: overlap@10."""

POOL = 50
"""Hits that are asked for, so that 10 are left where a side holds what is not live."""

TERMS = 5
LEAST_OVERLAP = 0.9
"""Of the vector leg on average; indexes are approximate, and equal scores end anywhere."""


@dataclass(frozen=True)
class Probe:
    """A query: a chunk of which the vectors are taken, and terms of it."""

    tenant: str
    chunk_id: str
    terms: str


Answers = Mapping[str, list[str]]
"""The best chunks by leg: `vector`, `vector:NAME` and `keyword`, those that the store answers."""


@dataclass
class Comparison:
    """How alike two sides answer: overlap@10 and how often the probe itself came first."""

    overlaps: dict[str, list[float]] = field(default_factory=dict)
    firsts: dict[str, list[tuple[bool, bool]]] = field(default_factory=dict)

    def add(self, probe: Probe, one: Answers, other: Answers) -> None:
        """Compare what both sides answered."""
        for leg in one.keys() & other.keys():
            wanted, got = one[leg], other[leg]
            if not wanted and not got:
                continue
            overlap = len(set(wanted) & set(got)) / max(len(wanted), len(got))
            self.overlaps.setdefault(leg, []).append(overlap)
            first = ([probe.chunk_id] == wanted[:1], [probe.chunk_id] == got[:1])
            self.firsts.setdefault(leg, []).append(first)

    def faults(self) -> list[str]:
        """Legs that do not agree well enough; the keyword leg is told and not judged."""
        return [
            f"the {leg} leg agrees by {mean:.2f} on average, at least {LEAST_OVERLAP} is wanted"
            for leg, overlaps in sorted(self.overlaps.items())
            if leg != "keyword" and (mean := sum(overlaps) / len(overlaps)) < LEAST_OVERLAP
        ]

    def as_json(self) -> dict[str, Any]:
        """By leg: how many probes, the mean overlap, and on each side the share found first."""
        told = {}
        for leg, overlaps in sorted(self.overlaps.items()):
            count, firsts = len(overlaps), self.firsts[leg]
            told[leg] = {
                "probes": count,
                f"overlap@{DEPTH}": round(sum(overlaps) / count, 4),
                "itself_first": [round(sum(f[side] for f in firsts) / count, 4) for side in (0, 1)],
            }
        return told


def draw(ledger: Ledger, store: Store, collection: str) -> list[Probe]:
    """Choose probes among the chunks of live documents."""
    probes = []
    for document_id in ledger.transcripts.sample(collection, PROBES):
        snapshot = ledger.transcripts.read(document_id)
        if snapshot is None or not snapshot.transcript.chunks:
            continue
        tenant = snapshot.transcript.tenant
        chunk_id = random.choice(sorted(snapshot.transcript.chunks))  # noqa: S311 - a sample
        found = store.get_chunks(collection, [chunk_id], tenant=tenant, include_terms=True)
        for chunk in found:
            terms = sorted(set((chunk.terms or "").split()))
            some = random.sample(terms, min(TERMS, len(terms)))
            probes.append(Probe(tenant, chunk_id, " ".join(some)))
    return probes


def ask(ledger: Ledger, store: Store, collection: str, probe: Probe) -> Answers:
    """What a store answers, of what is live; nothing where the probe is gone."""
    found = store.get_chunks(collection, [probe.chunk_id], tenant=probe.tenant, include_vector=True)
    answers: dict[str, list[str]] = {}
    for chunk in found:
        for name in ("", *sorted(chunk.named)):
            try:
                hits = _nearest(store, collection, probe.tenant, chunk, name)
            except (MetricNotIndexed, StoreCannot):
                continue  # one side cannot be asked: nothing is to be compared
            answers[f"vector:{name}" if name else "vector"] = _live(ledger, hits)
    if found and probe.terms:
        hits = store.keyword_query(collection, probe.terms, POOL, tenant=probe.tenant)
        answers["keyword"] = _live(ledger, hits)
    return answers


def _nearest(
    store: Store, collection: str, tenant: str, chunk: StoredChunk, name: str
) -> list[LegHit]:
    vector = chunk.named[name] if name else chunk.vector
    assert vector is not None  # noqa: S101 - it was asked for
    return store.vector_query(collection, vector, POOL, tenant=tenant, vector_name=name)


def _live(ledger: Ledger, hits: Sequence[LegHit]) -> list[str]:
    visible = ledger.chunks.visible([hit.chunk_id for hit in hits])
    return [hit.chunk_id for hit in hits if hit.chunk_id in visible][:DEPTH]
