"""Chooses the embedder of vectors: collections can have several, and some the previous one."""

from collections.abc import Iterable, Mapping

from callslip.errors import InvalidRequest
from callslip.models.embedders.contract import Embedder


def embedder_of(
    model: str, present: Embedder, previous: Embedder | None, further: Iterable[Embedder] = ()
) -> Embedder:
    """The embedder with this model, which a collection's record names; else the present one."""
    others = (previous, *further)
    return next((each for each in others if each is not None and each.model == model), present)


def further_embedder(further: Mapping[str, Embedder], name: str) -> Embedder:
    """The embedder of this name in the settings. Raises InvalidRequest, which lists the known."""
    if name not in further:
        raise InvalidRequest(
            f"there is no embedder {name!r}; there are: {', '.join(sorted(further)) or 'none'}",
            hint="The settings name them, under `embedders` (docs/settings.md).",
        )
    return further[name]
