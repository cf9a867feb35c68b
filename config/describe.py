"""Telling a person which settings are in force and where each came from."""

from functools import reduce
from typing import NamedTuple

from config.keys import KEYS
from config.load import Loaded
from config.masking import shown


class Described(NamedTuple):
    """One setting, ready to print; its value has secrets masked."""

    key: str
    value: str
    origin: str
    description: str


def describe(loaded: Loaded) -> list[Described]:
    """Every setting in force, in the order of the model."""
    return [
        Described(
            key,
            shown(key, reduce(getattr, key.split("."), loaded.settings)),
            loaded.origins[key],
            field.description or "",
        )
        for key, field in KEYS.items()
    ]
