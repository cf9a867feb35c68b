"""The interface of the baseline clients."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from callslip.stores.records import ChunkRecord, Vector

KIND = "kind"
"""The property that the filtered queries use."""


FIELDS = (
    *("document_id", "parent_id", "section", "heading", "title", "filename", "lang"),
    *("level", "ordinal", "start", "end"),
)


def fields(chunk: ChunkRecord) -> dict[str, str | int]:
    """Return the fields of a chunk except its id, body, terms, vector and properties."""
    return {name: getattr(chunk, name) for name in FIELDS}


class Baseline(ABC):
    """Writes and searches one collection with both retrievers, also with a filter on `kind`."""

    writes: ClassVar[bool] = True
    """False if `upsert` only collects batches for `settle`."""

    @abstractmethod
    def create(self, dimension: int) -> None:
        """Make the empty collection."""

    @abstractmethod
    def upsert(self, chunks: Sequence[ChunkRecord]) -> None:
        """Write one batch, which is visible to the next query."""

    @abstractmethod
    def vector(self, vector: Vector, limit: int, kind: str | None) -> list[str]:
        """Return the ids of the nearest chunks."""

    @abstractmethod
    def keyword(self, terms: str, limit: int, kind: str | None) -> list[str]:
        """Return the ids of the best chunks for these terms."""

    def hybrid(self, vector: Vector, terms: str, limit: int, kind: str | None) -> list[str]:
        """Return the ids from both retrievers, those of the vectors first."""
        return self.vector(vector, limit, kind) + self.keyword(terms, limit, kind)

    def settle(self) -> None:  # noqa: B027 - most have nothing to wait for
        """Finish the work that remains after all writes."""

    @abstractmethod
    def drop(self) -> None:
        """Remove the collection."""
