"""Lists the current settings, each with its origin."""

from typing import NamedTuple

from callslip.config.keys import field_of, values
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
            shown(key, value),
            loaded.origins[key],
            field.description or "",
        )
        for key, value in values(loaded.settings).items()
        if (field := field_of(key))
    ]
