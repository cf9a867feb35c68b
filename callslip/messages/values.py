"""Checks of single values that messages and filters share."""

import re
from typing import Annotated, Any

from pydantic import BeforeValidator

_SURROGATE = re.compile("[\ud800-\udfff]")
_WHOLE = re.compile("-?[0-9]{1,20}")


def is_unicode(text: str) -> bool:
    """Whether the text can be encoded as UTF-8, which half a surrogate pair cannot."""
    return text.isascii() or not _SURROGATE.search(text)


def whole_number(text: str) -> int:
    """The whole number that a text writes in the digits 0 to 9.

    Raises ValueError for any other text, also for one that `int` reads (`1_0`, ` 10`, `١٠`).
    """
    if not _WHOLE.fullmatch(text):
        raise ValueError("is not a whole number in the digits 0 to 9")
    return int(text)


def _whole(value: Any) -> Any:
    return whole_number(value) if isinstance(value, str) else value


Whole = Annotated[int, BeforeValidator(_whole)]
"""A whole number of a query or a form, where it is a text."""

OptionalWhole = Annotated[int | None, BeforeValidator(_whole)]
"""The same or none; `Whole | None` would lose its bounds in the description of the API."""
