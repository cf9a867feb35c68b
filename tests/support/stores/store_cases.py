"""What the contract suite of stores stores and asks."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from callslip.stores.contract import Store
from callslip.stores.properties.filters import Where
from callslip.stores.records import ChunkRecord, RetrieverHit, Vector


def unit(*values: float) -> Vector:
    vector = np.array(values, np.float32)
    return np.asarray(vector / np.linalg.norm(vector), np.float32)


EAST = unit(1, 0)


def chunk(chunk_id: str, **fields: object) -> ChunkRecord:
    plain = ChunkRecord(chunk_id, "doc", f"body of {chunk_id}", "every", EAST)
    return replace(plain, **fields)  # type: ignore[arg-type]


def ids(hits: Sequence[RetrieverHit]) -> list[str]:
    return [hit.chunk_id for hit in hits]


def agrees(store: Store, collection: str, where: Where, expected: set[str]) -> None:
    """Both legs and the count find what the filter means."""
    assert set(ids(store.vector_query(collection, EAST, 99, where))) == expected
    assert set(ids(store.keyword_query(collection, "every", 99, where))) == expected
    assert store.count(collection, where) == len(expected)
