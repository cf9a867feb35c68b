"""Probe queries: the same questions to both sides of a move, and how alike they answer.

A probe is a chunk taken at random: its own vectors and some of its terms are the queries.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from callslip.errors import MetricNotIndexed, StoreCannot
from stores.contract import Store, score_chunks
from stores.ledger import Ledger
from stores.records import LegHit, StoredChunk
from stores.ties import ranked

PROBES = 20
DEPTH = 10
"""Hits that are compared: overlap@10."""

POOL = 50
"""Hits that are asked for, so that 10 are left where a side holds what is not live."""

TERMS = 5
LEAST_RECALL = 0.9
"""Of a vector leg on average; indexes are approximate."""


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
    """How alike two sides answer.

    overlap@10; how often the probe itself came first; and of the vector legs, each side's recall of
    the truly nearest among all that either side found: an approximate index may miss some.
    """

    overlaps: dict[str, list[float]] = field(default_factory=dict)
    firsts: dict[str, list[tuple[bool, bool]]] = field(default_factory=dict)
    recalls: dict[str, list[tuple[float, float]]] = field(default_factory=dict)

    def add(self, probe: Probe, one: Answers, other: Answers, nearest: Answers) -> None:
        """Compare what both sides answered; `nearest` has the best of both by leg."""
        for leg in one.keys() & other.keys():
            wanted, got = one[leg], other[leg]
            if not wanted and not got:
                continue
            self.overlaps.setdefault(leg, []).append(_share(wanted, got))
            first = ([probe.chunk_id] == wanted[:1], [probe.chunk_id] == got[:1])
            self.firsts.setdefault(leg, []).append(first)
            if best := nearest.get(leg):
                recall = (_share(best, wanted), _share(best, got))
                self.recalls.setdefault(leg, []).append(recall)

    def faults(self) -> list[str]:
        """Vector legs of the other side that miss too much; the keyword leg is not judged."""
        return [
            f"the {leg} leg finds {mean:.2f} of the nearest, at least {LEAST_RECALL} are wanted"
            for leg, recalls in sorted(self.recalls.items())
            if (mean := sum(got for _, got in recalls) / len(recalls)) < LEAST_RECALL
        ]

    def as_json(self) -> dict[str, Any]:
        """By leg: how many probes, and the means; pairs are of one side and of the other."""
        told: dict[str, Any] = {}
        for leg, overlaps in sorted(self.overlaps.items()):
            told[leg] = {
                "probes": len(overlaps),
                f"overlap@{DEPTH}": round(sum(overlaps) / len(overlaps), 4),
                "itself_first": _means(self.firsts[leg]),
            }
            if leg in self.recalls:
                told[leg][f"recall@{DEPTH}"] = _means(self.recalls[leg])
        return told


def _share(wanted: Sequence[str], got: Sequence[str]) -> float:
    return len(set(wanted) & set(got)) / max(len(wanted), len(got))


def _means(pairs: Sequence[tuple[float, float]]) -> list[float]:
    return [round(sum(pair[side] for pair in pairs) / len(pairs), 4) for side in (0, 1)]


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
            answers[f"vector:{name}" if name else "vector"] = _live(ledger, hits, probe)
    if found and probe.terms:
        hits = store.keyword_query(collection, probe.terms, POOL, tenant=probe.tenant)
        answers["keyword"] = _live(ledger, hits, probe)
    return answers


def best_of_both(
    store: Store, collection: str, probe: Probe, one: Answers, other: Answers
) -> dict[str, list[str]]:
    """Of all that either side found by a vector, the truly nearest by the store's own vectors."""
    best: dict[str, list[str]] = {}
    for leg in one.keys() & other.keys() - {"keyword"}:
        name, tenant = leg.removeprefix("vector").removeprefix(":"), probe.tenant
        ids = [probe.chunk_id, *{*one[leg], *other[leg]} - {probe.chunk_id}]
        found = store.get_chunks(collection, ids, tenant=tenant, include_vector=True)
        vector = found[0].named.get(name) if name else found[0].vector
        if found[0].chunk_id == probe.chunk_id and vector is not None:
            metric = store.schema(collection).vector(name).metric
            best[leg] = [h.chunk_id for h in ranked(score_chunks(found, vector, metric, name))]
            best[leg] = best[leg][:DEPTH]
    return best


def _nearest(
    store: Store, collection: str, tenant: str, chunk: StoredChunk, name: str
) -> list[LegHit]:
    vector = chunk.named[name] if name else chunk.vector
    assert vector is not None  # noqa: S101 - it was asked for
    return store.vector_query(collection, vector, POOL, tenant=tenant, vector_name=name)


def _live(ledger: Ledger, hits: Sequence[LegHit], probe: Probe) -> list[str]:
    """The best that are live; the probe before others of the same score.

    The parents of a document of one passage have its vector.
    """
    visible = ledger.chunks.visible([hit.chunk_id for hit in hits])
    hits = sorted(hits, key=lambda hit: (-hit.score, hit.chunk_id != probe.chunk_id))
    return [hit.chunk_id for hit in hits if hit.chunk_id in visible][:DEPTH]
