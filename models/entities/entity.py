"""One entity, and how finds that overlap are settled."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Kind = Literal["person", "organisation", "place", "law", "programme", "date", "name"]
"""`name` is a proper noun of which nothing else is known."""


@dataclass(frozen=True)
class Entity:
    """A span of a text, and what stands there as it is filtered by: a day in ISO 8601 form."""

    name: str
    kind: Kind
    start: int
    end: int


def settle(*finds: Iterable[Entity]) -> list[Entity]:
    """Of finds that overlap those of the earlier argument, of one argument the longer; in order."""
    kept: list[Entity] = []
    for found in finds:
        for entity in sorted(found, key=lambda e: e.start - e.end):
            if all(entity.end <= other.start or other.end <= entity.start for other in kept):
                kept.append(entity)
    return sorted(kept, key=lambda e: e.start)
