"""Checks of single values that messages and filters share."""

import re
from collections import Counter
from typing import Annotated, Any

from pydantic import BeforeValidator

_SURROGATE = re.compile("[\ud800-\udfff]")
_WHOLE = re.compile("-?[0-9]{1,20}")


def is_unicode(text: str) -> bool:
    """Whether the text can be encoded as UTF-8, which half a surrogate pair cannot."""
    return text.isascii() or not _SURROGATE.search(text)


class RepeatedName(ValueError):
    """A name occurs twice in an object of JSON."""


def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object of these names and values, a hook of `json.loads`; raises RepeatedName."""
    made = dict(pairs)
    if len(made) < len(pairs):
        counts = Counter(name for name, _ in pairs)
        twice = next(name for name, count in counts.items() if count > 1)
        raise RepeatedName(f"{twice[:100]!r} is there twice")
    return made


def whole_number(text: str) -> int:
    """The whole number that a text writes in the digits 0 to 9.

    Raises ValueError for any other text, also for one that `int` reads (`1_0`, ` 10`, `١٠`).
    """
    if not _WHOLE.fullmatch(text):
        raise ValueError("is not a whole number in the digits 0 to 9")
    return int(text)


def _whole(value: Any) -> Any:
    if isinstance(value, bool):  # which Python counts among the whole numbers
        raise ValueError("is not a whole number")
    return whole_number(value) if isinstance(value, str) else value


Whole = Annotated[int, BeforeValidator(_whole)]
"""A whole number of a query or a form, where it is a text."""

OptionalWhole = Annotated[int | None, BeforeValidator(_whole)]
"""The same or none; `Whole | None` would lose its bounds in the description of the API."""
