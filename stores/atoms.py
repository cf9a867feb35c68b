"""Properties as typed atoms: the one form in which the halves of a store index and filter them.

An atom is a mark, a property's name and a value that compares by itself. The mark says the type,
so that the text `1` and the number 1 never meet, in lower case for a property of one value and in
upper case for a member of a list. Text that is a date gives two atoms: as written, and the instant.
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from stores.filters import Comparable, normalize

TEXT, NUMBER, FLAG, DATE = "tnbd"

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Atom(NamedTuple):
    """One value of one property; a date is microseconds since 1970."""

    mark: str
    name: str
    value: str | float | bool | int


def atoms(properties: Mapping[str, object]) -> Iterator[Atom]:
    """Take properties apart. Raises ValueError for a value of an unknown type."""
    for name, value in properties.items():
        if isinstance(value, list | tuple):
            for member in value:
                for mark, name_, atom in _scalar(name, member):
                    yield Atom(mark.upper(), name_, atom)
        else:
            yield from _scalar(name, value)


def atom(name: str, value: Comparable, *, listed: bool = False) -> Atom:
    """The atom that a property of this value has, or a list with this member."""
    mark, held = _marked(value)
    return Atom(mark.upper() if listed else mark, name, held)


def _marked(value: Comparable) -> tuple[str, str | float | bool | int]:
    if isinstance(value, bool):
        return FLAG, value
    if isinstance(value, datetime):
        return DATE, (value - EPOCH) // timedelta(microseconds=1)
    return TEXT if isinstance(value, str) else NUMBER, value


def _scalar(name: str, value: object) -> Iterator[Atom]:
    normal = normalize(value)
    yield atom(name, normal)
    if isinstance(normal, datetime) and isinstance(value, str):
        yield Atom(TEXT, name, value)
