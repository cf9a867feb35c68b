"""Lists the current settings, each with its origin."""

from functools import reduce
from typing import NamedTuple

from callslip.config.keys import KEYS
from callslip.config.load import Loaded
from callslip.config.masking import shown


class Described(NamedTuple):
    """One setting for display; secrets in its value are masked."""

    key: str
    value: str
    origin: str
    description: str


def describe(loaded: Loaded) -> list[Described]:
    """List every current setting, in the order of the model."""
    return [
        Described(
            key,
            shown(key, reduce(getattr, key.split("."), loaded.settings)),
            loaded.origins[key],
            field.description or "",
        )
        for key, field in KEYS.items()
    ]
