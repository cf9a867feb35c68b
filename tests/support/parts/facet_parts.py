"""A small corpus with facets, live in a ledger and a store in memory, for tests of facets."""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from ledger_moves import store_chunks, submission
from memory_store import MemoryStore

from callslip.models.embedders.contract import Vectors
from callslip.retrieval.facets.vectors import FacetBuilder
from callslip.stores.ledger import Ledger
from callslip.stores.ledger.learning.facet_values import FacetScope
from callslip.stores.records import ChunkRecord, CollectionSchema, Value, VectorSpec

DIMENSION = 512
COLLECTION = FacetScope("library")

SUBJECTS = {
    "leave": [
        "parental leave lasts weeks",
        "a leave of absence for parents",
        "paid leave and weeks",
    ],
    "fire": [
        "fire doors stay closed",
        "smoke alarms and fire drills",
        "leave the building in a fire",
    ],
    "pay": ["salary is paid monthly", "a bonus is paid in salary", "monthly salary and tax"],
}
"""Values of the facet `subject`, each with sentences that stand in its documents."""


class WordEmbedder:
    """A text is the sum of its words, each a direction of its own."""

    model, dimension, lexical_only, max_tokens = "words", DIMENSION, False, 500

    def __init__(self) -> None:
        self.read: list[str] = []

    def passages(self, texts: Sequence[str]) -> Vectors:
        self.read += texts
        return np.stack([embed(text) for text in texts])

    def query(self, text: str) -> Vectors:
        return embed(text)


def embed(text: str) -> Vectors:
    total = np.zeros(DIMENSION) + 1e-3
    for word in re.findall(r"\w+", text.lower()):
        seed = int.from_bytes(hashlib.sha256(word.encode()).digest()[:8])
        total += np.random.default_rng(seed).normal(size=DIMENSION)
    return np.asarray(total / np.linalg.norm(total), np.float32)


@dataclass
class Library:
    """Documents go in and out as the pipeline would have it."""

    ledger: Ledger
    store: MemoryStore = field(default_factory=MemoryStore)
    embedder: Any = field(default_factory=WordEmbedder)

    def __post_init__(self) -> None:
        schema = CollectionSchema("library", VectorSpec(self.embedder.dimension))
        self.store.ensure_schema(schema)
        self.ledger.collections.create(
            schema, store="memory", embedder=self.embedder.model, analyzer="1"
        )

    def add(
        self, text: str, *, vector: Vectors | None = None, terms: str = "", **properties: Value
    ) -> str:
        """A document of one passage; its id."""
        name = f"{text[:40]}-{sorted(properties.items())}"
        sent = submission(text + name, name)
        document_id = hashlib.sha256(name.encode()).hexdigest()[:32]
        item = self.ledger.documents.submit("library", sent, document_id)
        chunk_id = f"c-{document_id}"
        claim = store_chunks(self.ledger, item, [chunk_id])
        chunk = ChunkRecord(
            *(chunk_id, document_id, text, terms or text),
            embed(text) if vector is None else vector,
            level=2,
            properties=properties,
        )
        self.store.batch_upsert_chunks("library", [chunk])
        self.ledger.leases.go_live(claim, [chunk_id], {})
        return document_id

    def fill(self, copies: int = 6) -> None:
        """Documents of every subject; `group` says nothing of what is in them."""
        for subject, reply in SUBJECTS.items():
            for n in range(copies):
                text = f"{reply[n % 3].capitalize()} {n}.\n{reply[(n + 1) % 3].capitalize()} here."
                self.add(text, subject=subject, group=f"group {n % 3}", number=n)

    def builder(self, max_values: int = 50) -> FacetBuilder:
        return FacetBuilder(self.ledger, self.store, self.embedder, max_values)

    def rebuild(self, *facets: str, **given: Any) -> dict[str, dict[str, int]]:
        collection = self.ledger.collections.get("library")
        return self.builder(**given).rebuild(collection, "", facets or ("subject",))
