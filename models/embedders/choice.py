"""Chooses the embedder of a collection, while some collections still have the previous one."""

from callslip.models.embedders.contract import Embedder


def embedder_of(model: str, present: Embedder, previous: Embedder | None) -> Embedder:
    """The previous embedder if its vectors are those of the collection, else the present one.

    `model` is the embedder that the collection's record names.
    """
    return previous if previous is not None and previous.model == model else present
