"""Checks of single values that messages and filters share."""

import re

_SURROGATE = re.compile("[\ud800-\udfff]")


def is_unicode(text: str) -> bool:
    """Whether the text can be encoded as UTF-8, which half a surrogate pair cannot."""
    return text.isascii() or not _SURROGATE.search(text)
