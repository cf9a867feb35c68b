"""What attaching a table and attaching a Chroma collection share."""

from dataclasses import dataclass

from callslip.errors import CollectionNotFound, InvalidRequest
from callslip.models.embedders.contract import Embedder
from callslip.stores.ledger import CollectionRecord, Ledger
from callslip.vocabulary import Vectors

UNKNOWN = "unknown"
"""The recorded embedder and analyzer of vectors whose maker nobody stated."""


@dataclass(frozen=True)
class Embedders:
    """The embedder of the settings and the previous one."""

    ours: Embedder
    previous: Embedder | None

    def named(self, vectors: Vectors, hint: str) -> Embedder | None:
        """The embedder that made the vectors; None if it is unknown.

        Raises InvalidRequest with `hint` if the settings have no such embedder.
        """
        if vectors == "none":
            return None
        chosen = self.previous if vectors == "previous" else self.ours
        if chosen is None or chosen.lexical_only:
            which = "previous embedder" if vectors == "previous" else "embedder"
            raise InvalidRequest(f"this installation has no {which}", hint=hint)
        return chosen


def check_vectors(
    what: str, dimension: int, unit: bool | None, embedder: Embedder, hint: str
) -> None:
    """Raise InvalidRequest with `hint` if this embedder cannot have made the vectors.

    `unit`: whether the vectors of a sample have length 1; None without a sample.
    """
    if dimension != embedder.dimension:
        raise InvalidRequest(
            f"the vectors of the {what} have {dimension} dimensions,"
            f" those of {embedder.model} {embedder.dimension}",
            hint=hint,
        )
    if unit is False:
        raise InvalidRequest(
            f"the vectors of the {what} have not the length 1, those of {embedder.model} have",
            hint=hint,
        )


def known(ledger: Ledger, name: str) -> CollectionRecord | None:
    """The collection of this name, if there is one."""
    try:
        return ledger.collections.get(name)
    except CollectionNotFound:
        return None
