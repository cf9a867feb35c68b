"""The benchmark of stores: rows made up for it, and both sides timed in turns."""

from collections.abc import Sequence

import numpy as np
import pytest
from memory_store import MemoryStore

from benchmarks.stores import __main__ as bench
from benchmarks.stores.baseline.base import KIND, Baseline
from benchmarks.stores.rows import DIMENSION, Rows
from callslip.stores.properties.checks import chunk_fault
from callslip.stores.records import ChunkRecord, CollectionSchema, Vector, VectorSpec

SCHEMA = CollectionSchema(bench.COLLECTION, VectorSpec(DIMENSION, normalized=True))


class Counting(Baseline):
    """Counts what it is asked."""

    def __init__(self) -> None:
        self.rows = 0
        self.requests: list[str | None] = []

    def create(self, dimension: int) -> None:
        self.rows = 0

    def upsert(self, chunks: Sequence[ChunkRecord]) -> None:
        self.rows += len(chunks)

    def vector(self, vector: Vector, limit: int, kind: str | None) -> list[str]:
        self.requests.append(kind)
        return []

    def keyword(self, terms: str, limit: int, kind: str | None) -> list[str]:
        self.requests.append(kind)
        return []

    def drop(self) -> None:
        self.rows = 0


def test_rows_are_storable_and_the_same_for_the_same_seed() -> None:
    one, other = list(Rows().chunks(30)), list(Rows().chunks(30))
    assert [chunk_fault(chunk, SCHEMA) for chunk in one] == [None] * 30
    assert [c.terms for c in one] == [c.terms for c in other]
    assert all(np.array_equal(a.vector, b.vector) for a, b in zip(one, other, strict=True))
    assert len({len(c.terms.split()) for c in one}) > 10


def test_both_sides_get_the_same_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "LIMIT", 5)
    store, baseline, rows = MemoryStore(), Counting(), Rows()
    store.ensure_schema(SCHEMA)
    filled = bench._fill(store, baseline, rows.chunks(50), 20)
    assert (store.count(bench.COLLECTION), baseline.rows) == (50, 50)
    assert len(filled.ours) == len(filled.baseline) == 3
    pairs = list(bench.ask(store, baseline, rows.questions(10)))
    assert [pair.work for pair in pairs] == [
        f"{retriever}, {what}"
        for what in ("all", "filtered")
        for retriever in ("vector", "keyword", "hybrid")
    ]
    assert all(len(pair.ours) == len(pair.baseline) == 9 for pair in pairs)
    assert baseline.requests.count(None) == 40
    assert {kind for kind in baseline.requests if kind} <= {
        str(c.properties[KIND]) for c in rows.chunks(10)
    }
