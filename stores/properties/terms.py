"""Properties as typed terms: the one form in which stores index and filter them.

A property term is a mark, a property's name and a value that can be compared. The mark is the type,
in lower case for a property with one value and in upper case for a member of a list; so the text
`1` and the number 1 differ. Text that is a date has two terms: the text as written and the instant.
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from callslip.stores.properties.filters import Comparable, normalize

TEXT, NUMBER, FLAG, DATE = "tnbd"

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class PropertyTerm(NamedTuple):
    """One value of one property; a date is a number of microseconds since 1970."""

    mark: str
    name: str
    value: str | float | bool | int


def property_terms(properties: Mapping[str, object]) -> Iterator[PropertyTerm]:
    """The terms of all properties. Raises ValueError for a value that `normalize` refuses."""
    for name, value in properties.items():
        if isinstance(value, list | tuple):
            for member in value:
                for mark, name_, property_term in _scalar(name, member):
                    yield PropertyTerm(mark.upper(), name_, property_term)
        else:
            yield from _scalar(name, value)


def property_term(name: str, value: Comparable, *, listed: bool = False) -> PropertyTerm:
    """The term of a property with this value, or of a list with this member if `listed`."""
    mark, plain = _marked(value)
    return PropertyTerm(mark.upper() if listed else mark, name, plain)


def _marked(value: Comparable) -> tuple[str, str | float | bool | int]:
    if isinstance(value, bool):
        return FLAG, value
    if isinstance(value, datetime):
        return DATE, (value - EPOCH) // timedelta(microseconds=1)
    return TEXT if isinstance(value, str) else NUMBER, value


def _scalar(name: str, value: object) -> Iterator[PropertyTerm]:
    normal = normalize(value)
    yield property_term(name, normal)
    if isinstance(normal, datetime) and isinstance(value, str):
        yield PropertyTerm(TEXT, name, value)
