"""Warnings about a file, such as `left out: pictures (2), pages that cannot be read (1: 7)`.

Each says what became of some parts, then names their kinds, with numbers and, if known, locations.
"""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

MOST_NAMED = 10
"""The maximum number of locations that a warning names."""

Locations = Mapping[str, Sequence[object]]
"""Pages, chunks or names by kind."""

_NOWHERE: Locations = MappingProxyType({})


def left_out(counts: Mapping[str, int], locations: Locations = _NOWHERE) -> tuple[str, ...]:
    """Return the warning about parts that are left out, by kind; none if there are no parts.

    The number of a kind with locations may be omitted: it is that of the locations.
    """
    kinds = _kinds(counts, locations)
    return (f"left out: {kinds}",) if kinds else ()


def read_otherwise(how: str, counts: Mapping[str, int], locations: Locations = _NOWHERE) -> str:
    """Return the warning about a file, or parts of it by kind, that is read `how`, as `by OCR`."""
    kinds = _kinds(counts, locations)
    return f"read {how}: {kinds}" if kinds else f"read {how}"


def _kinds(counts: Mapping[str, int], locations: Locations) -> str:
    numbers = {kind: len(where) for kind, where in locations.items()} | dict(counts)
    return ", ".join(
        f"{kind} ({': '.join(filter(None, (f'{number:,}', _some(locations.get(kind, ())))))})"
        for kind, number in numbers.items()
        if number
    )


def _some(locations: Iterable[object]) -> str:
    named = [str(each) for each in locations if str(each)]
    return ", ".join(named[:MOST_NAMED]) + (" …" if len(named) > MOST_NAMED else "")
