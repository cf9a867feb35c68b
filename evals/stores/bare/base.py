"""What every bare client can do."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from stores.records import ChunkRecord, Vector

KIND = "kind"
"""The property that the filtered queries ask for."""


FIELDS = (
    *("document_id", "parent_id", "section", "heading", "title", "filename", "lang"),
    *("level", "ordinal", "start", "end"),
)


def fields(chunk: ChunkRecord) -> dict[str, str | int]:
    """What is kept of a chunk beside its id, body, terms, vector and properties."""
    return {name: getattr(chunk, name) for name in FIELDS}


class Bare(ABC):
    """Writes and asks one collection; both legs, with and without a filter on `kind`."""

    writes: ClassVar[bool] = True
    """False where a batch is only remembered until `settle`."""

    @abstractmethod
    def create(self, dimension: int) -> None:
        """Make the collection, empty."""

    @abstractmethod
    def upsert(self, chunks: Sequence[ChunkRecord]) -> None:
        """Write one batch so that the next query finds it."""

    @abstractmethod
    def vector(self, vector: Vector, limit: int, kind: str | None) -> list[str]:
        """Ids of the nearest chunks."""

    @abstractmethod
    def keyword(self, terms: str, limit: int, kind: str | None) -> list[str]:
        """Ids of the best chunks by words."""

    def hybrid(self, vector: Vector, terms: str, limit: int, kind: str | None) -> list[str]:
        """Ids of both legs."""
        return self.vector(vector, limit, kind) + self.keyword(terms, limit, kind)

    def settle(self) -> None:  # noqa: B027 - most have nothing to wait for
        """Finish what goes on in the background after writing."""

    @abstractmethod
    def drop(self) -> None:
        """Remove the collection."""
