"""Hiding passwords in what is printed."""

import re

from config.keys import KEYS, is_secret

MASK = "********"

_PASSWORD = re.compile(r"(?<=://)([^/?#@:]*):.*@")
"""Up to the last `@`: a password that was not percent-encoded may hold `/` and `@` itself."""

_PARAMETER = re.compile(r"(?i)([?&][^=&#]*(?:password|passwd|pwd|secret|token|key)=)[^&#]*")


def masked(text: str) -> str:
    """A text with the passwords of the URLs in it hidden: `redis://user:********@host/0`."""
    return _PARAMETER.sub(rf"\1{MASK}", _PASSWORD.sub(rf"\1:{MASK}@", text))


def shown(key: str, value: object) -> str:
    """The value of a setting as it may be printed."""
    if value is None:
        return "(unset)"
    return MASK if is_secret(KEYS[key]) else masked(str(value))
