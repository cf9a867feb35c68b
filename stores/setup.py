"""How a kind of store is made from the settings, and when it is set up.

The `setup` module of each store imports the store, its vendor's client and numpy only when a store
is made: such an import takes up to a second, and every process imports the registry.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from callslip.config.settings import Settings
from callslip.errors import StoreTooOld

if TYPE_CHECKING:
    from callslip.stores.contract import Store

OLDEST: Mapping[str, tuple[int, int, int]] = {
    "Chroma": (1, 0, 0),  # every later server of Chroma says that it is 1.0.0
    "CrateDB": (6, 3, 5),  # the oldest that ran the contract suite
    "Weaviate": (1, 33, 0),  # the first that can negate a filter
}
"""The oldest supported version of each server. A connection checks it before its first request."""


def check_version(server: str, version: str) -> None:
    """Raise StoreTooOld if a server's version, such as `6.4.3`, is older than the supported ones.

    Letters and further numbers at the end of the version are ignored. Raises ValueError for a text
    that is no version.
    """
    match = re.match(r"v?(\d+)\.(\d+)(?:\.(\d+))?", version)
    if match is None:
        raise ValueError(f"{version!r} is no version")
    if tuple(int(part or 0) for part in match.groups()) < OLDEST[server]:
        oldest = ".".join(map(str, OLDEST[server]))
        raise StoreTooOld(
            f"{server} is of version {version[:40]}; the oldest supported is {oldest}."
        )


@dataclass(frozen=True)
class StoreSetup:
    """The entry of a kind of store in the registry."""

    make: "Callable[[Settings], Store]"
    """Makes the store. Raises SettingsError if a needed setting is missing."""

    is_set_up: Callable[[Settings], bool]
    """Whether the settings name this kind of store, so that it may have collections."""

    server: str = ""
    """The product's name if the store is a server with an address in the settings; else empty."""
