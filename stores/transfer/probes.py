"""Probe queries: sends the same queries to both sides of a move and compares their hits.

A probe is a random chunk: its vectors and some of its terms are the queries.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from callslip.errors import MetricNotIndexed, StoreCannot
from callslip.stores.contract import Store, score_chunks
from callslip.stores.ledger import Ledger
from callslip.stores.records import RetrieverHit, StoredChunk
from callslip.stores.ties import ranked

PROBES = 20
DEPTH = 10
"""Hits that are compared: overlap@10."""

POOL = 50
"""Hits that each side returns, so that 10 remain if some of them are not live."""

TERMS = 5
LEAST_RECALL = 0.9
"""Least mean recall of a vector retriever; indexes are approximate."""


@dataclass(frozen=True)
class Probe:
    """A query: the id of the chunk whose vectors are the query vectors, and terms of the chunk."""

    tenant: str
    chunk_id: str
    terms: str


Answers = Mapping[str, list[str]]
"""Chunk ids, best first, by retriever of the store: `vector`, `vector:NAME` or `keyword`."""


@dataclass
class Comparison:
    """Compares the answers of two sides, by retriever.

    `overlaps` has overlap@10 of each probe, `same_first` whether both have the same first hit.
    `firsts` says for each side whether the probe's own
    chunk is the first hit. `recalls` has each side's recall of the nearest chunks by exact distance
    among the hits of both sides: an approximate index may miss some.
    """

    overlaps: dict[str, list[float]] = field(default_factory=dict)
    same_first: dict[str, list[bool]] = field(default_factory=dict)
    firsts: dict[str, list[tuple[bool, bool]]] = field(default_factory=dict)
    recalls: dict[str, list[tuple[float, float]]] = field(default_factory=dict)

    def add(self, probe: Probe, one: Answers, other: Answers, nearest: Answers) -> None:
        """Add the answers of both sides to a probe; `nearest` is the result of `best_of_both`."""
        for retriever in one.keys() & other.keys():
            wanted, got = one[retriever], other[retriever]
            if not wanted and not got:
                continue
            self.overlaps.setdefault(retriever, []).append(_share(wanted, got))
            self.same_first.setdefault(retriever, []).append(wanted[:1] == got[:1])
            first = ([probe.chunk_id] == wanted[:1], [probe.chunk_id] == got[:1])
            self.firsts.setdefault(retriever, []).append(first)
            if best := nearest.get(retriever):
                recall = (_share(best, wanted), _share(best, got))
                self.recalls.setdefault(retriever, []).append(recall)

    def faults(self) -> list[str]:
        """The vector retrievers of the other side with a mean recall below LEAST_RECALL."""
        return [
            f"the {retriever} retriever finds {mean:.2f} of the nearest,"
            f" at least {LEAST_RECALL} are wanted"
            for retriever, recalls in sorted(self.recalls.items())
            if (mean := sum(got for _, got in recalls) / len(recalls)) < LEAST_RECALL
        ]

    def as_json(self) -> dict[str, Any]:
        """The number of probes and the means, by retriever. A pair has one value for each side."""
        summary: dict[str, Any] = {}
        for retriever, overlaps in sorted(self.overlaps.items()):
            summary[retriever] = {
                "probes": len(overlaps),
                f"overlap@{DEPTH}": round(sum(overlaps) / len(overlaps), 4),
                "same_first": round(sum(self.same_first[retriever]) / len(overlaps), 4),
                "itself_first": _means(self.firsts[retriever]),
            }
            if retriever in self.recalls:
                summary[retriever][f"recall@{DEPTH}"] = _means(self.recalls[retriever])
        return summary


def _share(wanted: Sequence[str], got: Sequence[str]) -> float:
    return len(set(wanted) & set(got)) / max(len(wanted), len(got))


def _means(pairs: Sequence[tuple[float, float]]) -> list[float]:
    return [round(sum(pair[side] for pair in pairs) / len(pairs), 4) for side in (0, 1)]


def draw(
    ledger: Ledger, store: Store, collection: str, analyze: Callable[[str], str] | None = None
) -> list[Probe]:
    """Choose probes among the chunks of live documents.

    Their terms are some of the stored ones, or with `analyze` those of some words of the text.
    """
    probes = []
    for document_id in ledger.transcripts.sample(collection, PROBES):
        snapshot = ledger.transcripts.read(document_id)
        if snapshot is None or not snapshot.transcript.chunks:
            continue
        tenant = snapshot.transcript.tenant
        chunk_id = random.choice(sorted(snapshot.transcript.chunks))  # noqa: S311 - a sample
        chunks = store.get_chunks(collection, [chunk_id], tenant=tenant, include_terms=True)
        for chunk in chunks:
            words = sorted(set((chunk.body if analyze else chunk.terms or "").split()))
            some = " ".join(random.sample(words, min(TERMS, len(words))))
            probes.append(Probe(tenant, chunk_id, analyze(some) if analyze else some))
    return probes


def ask(ledger: Ledger, store: Store, collection: str, probe: Probe) -> Answers:
    """The best live chunks by retriever; empty if the probe's chunk is gone."""
    chunks = store.get_chunks(
        collection, [probe.chunk_id], tenant=probe.tenant, include_vector=True
    )
    answers: dict[str, list[str]] = {}
    for chunk in chunks:
        for name in ("", *sorted(chunk.named)):
            try:
                hits = _nearest(store, collection, probe.tenant, chunk, name)
            except (MetricNotIndexed, StoreCannot):
                continue  # one side has no such query: there is nothing to compare
            answers[f"vector:{name}" if name else "vector"] = _live(ledger, hits, probe)
    if chunks and probe.terms:
        hits = store.keyword_query(collection, probe.terms, POOL, tenant=probe.tenant)
        answers["keyword"] = _live(ledger, hits, probe)
    return answers


def still_live(ledger: Ledger, probe: Probe, answers: Answers) -> bool:
    """Whether the probe's chunk and every chunk of the answers are live."""
    ids = {probe.chunk_id}.union(*answers.values())
    return ids <= ledger.chunks.visible(sorted(ids)).keys()


def best_of_both(
    store: Store, collection: str, probe: Probe, one: Answers, other: Answers
) -> dict[str, list[str]]:
    """The nearest chunks among the vector hits of both sides, by exact distance in `store`."""
    best: dict[str, list[str]] = {}
    for retriever in one.keys() & other.keys() - {"keyword"}:
        name, tenant = retriever.removeprefix("vector").removeprefix(":"), probe.tenant
        ids = [probe.chunk_id, *{*one[retriever], *other[retriever]} - {probe.chunk_id}]
        chunks = store.get_chunks(collection, ids, tenant=tenant, include_vector=True)
        vector = chunks[0].named.get(name) if name else chunks[0].vector
        if chunks[0].chunk_id == probe.chunk_id and vector is not None:
            metric = store.schema(collection).vector(name).metric
            best[retriever] = [
                h.chunk_id for h in ranked(score_chunks(chunks, vector, metric, name))
            ]
            best[retriever] = best[retriever][:DEPTH]
    return best


def _nearest(
    store: Store, collection: str, tenant: str, chunk: StoredChunk, name: str
) -> list[RetrieverHit]:
    vector = chunk.named[name] if name else chunk.vector
    assert vector is not None  # noqa: S101 - it was requested
    return store.vector_query(collection, vector, POOL, tenant=tenant, vector_name=name)


def _live(ledger: Ledger, hits: Sequence[RetrieverHit], probe: Probe) -> list[str]:
    """The best live chunks. The probe's chunk precedes other chunks of the same score.

    In a document of one passage, the parent chunks have the same vector as the passage.
    """
    visible = ledger.chunks.visible([hit.chunk_id for hit in hits])
    hits = sorted(hits, key=lambda hit: (-hit.score, hit.chunk_id != probe.chunk_id))
    return [hit.chunk_id for hit in hits if hit.chunk_id in visible][:DEPTH]
