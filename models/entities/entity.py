"""The type of an entity, and the choice between overlapping entities."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Kind = Literal["person", "organisation", "place", "law", "programme", "date", "name"]
"""`name` is a proper noun of unknown kind."""


@dataclass(frozen=True)
class Entity:
    """A span of a text, and its name as a filter matches it: a date is in ISO 8601."""

    name: str
    kind: Kind
    start: int
    end: int


def settle(*finds: Iterable[Entity]) -> list[Entity]:
    """Choose entities that do not overlap; return them in the order of the text.

    Of overlapping entities, one from an earlier argument takes precedence, and within one argument
    the longer entity does.
    """
    chosen: list[Entity] = []
    for candidates in finds:
        for entity in sorted(candidates, key=lambda e: e.start - e.end):
            if all(entity.end <= other.start or other.end <= entity.start for other in chosen):
                chosen.append(entity)
    return sorted(chosen, key=lambda e: e.start)
