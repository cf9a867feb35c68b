"""The rules for the properties of a document."""

from collections.abc import Collection

from callslip.errors import InvalidRequest
from callslip.stores.properties.filters import instant, is_unicode
from callslip.vocabulary import VALIDITY, Value

MOST_PROPERTIES = 64
LONGEST_NAME = 128
LONGEST_TEXT = 8000
LONGEST_LIST = 256


def check_properties(properties: object, *, reserved: Collection[str]) -> dict[str, Value]:
    """Check the properties of a document, and return them as they are stored.

    A value is a string, a finite number, a boolean, or a list of one of these types; `valid_from`
    and `valid_to` are dates in this order. No name may be in `reserved`. Raises InvalidRequest,
    which names the invalid property.
    """
    if not isinstance(properties, dict):
        raise InvalidRequest("properties is not an object of names and values")
    if len(properties) > MOST_PROPERTIES:
        raise InvalidRequest(f"{len(properties)} properties, at most {MOST_PROPERTIES} are allowed")
    for name, value in properties.items():
        if not isinstance(name, str) or not name.strip() or len(name) > LONGEST_NAME:
            raise InvalidRequest(f"a property's name has 1 to {LONGEST_NAME} characters")
        if not is_unicode(name):
            raise InvalidRequest("a property's name is not valid Unicode")
        if name in reserved:
            raise InvalidRequest(
                f"property {name!r} is a field of every chunk",
                hint="Give the property another name.",
            )
        if reason := _wrong(value):
            raise InvalidRequest(f"property {name!r} {reason}")
    return properties | _validity(properties)


def _validity(properties: dict[str, Value]) -> dict[str, Value]:
    """`valid_from` and `valid_to` as whole dates: a month or a year becomes its first day."""
    dated: dict[str, Value] = {}
    moments = []
    for name in VALIDITY:
        if name in properties:
            value = str(properties[name])
            whole = value + {4: "-01-01", 7: "-01"}.get(len(value), "")
            moment = instant(whole)
            if moment is None:
                raise InvalidRequest(
                    f"property {name!r} is not a date",
                    hint="Write it as 2024-03-01, or leave it out where it is not known.",
                )
            dated[name] = whole
            moments.append(moment)
    if len(moments) == 2 and moments[1] < moments[0]:
        raise InvalidRequest(
            f"valid_to ({dated['valid_to']}) is before valid_from ({dated['valid_from']})",
            hint="valid_to is the first day on which the document no longer holds.",
        )
    return dated


def _wrong(value: object) -> str | None:
    if isinstance(value, list):
        if len(value) > LONGEST_LIST:
            return f"has {len(value)} values, at most {LONGEST_LIST} are allowed"
        if len({_kind(member) for member in value}) > 1:
            return "is a list of several types"
        return next((reason for member in value if (reason := _wrong_scalar(member))), None)
    return _wrong_scalar(value)


def _kind(value: object) -> type:
    return float if isinstance(value, int) and not isinstance(value, bool) else type(value)


def _wrong_scalar(value: object) -> str | None:
    if isinstance(value, str):
        if not is_unicode(value):
            return "is not valid Unicode"
        if len(value) > LONGEST_TEXT:
            return f"has {len(value)} characters, at most {LONGEST_TEXT} are allowed"
        return None
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        if not abs(value) <= 2**53:  # so that NaN is refused too
            return "is a number that cannot be kept exactly"
        return None
    return "is neither a string, a number, a boolean nor a list of these"
