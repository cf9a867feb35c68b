"""Hides passwords in output."""

import re

from callslip.config.keys import field_of, is_secret

MASK = "********"

_PASSWORD = re.compile(r"(?<=://)([^/?#@:]*):.*@")
"""Up to the last `@`: a password without percent-encoding may contain `/` and `@`."""

_PARAMETER = re.compile(r"(?i)([?&][^=&#]*(?:password|passwd|pwd|secret|token|key)=)[^&#]*")


def masked(text: str) -> str:
    """Hide the passwords of all URLs in a text: `redis://user:********@host/0`."""
    return _PARAMETER.sub(rf"\1{MASK}", _PASSWORD.sub(rf"\1:{MASK}@", text))


def shown(key: str, value: object) -> str:
    """The value of a setting for display."""
    if value is None:
        return "(unset)"
    field = field_of(key)
    return MASK if field is None or is_secret(field) else masked(str(value))
