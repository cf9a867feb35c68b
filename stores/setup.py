"""How a kind of store is made from the settings, and when it is set up.

The `setup` module of each store imports its vendor's client only when a store is made: such an
import takes a second, and every process imports the registry.
"""

from collections.abc import Callable
from dataclasses import dataclass

from callslip.config.settings import Settings
from callslip.stores.contract import Store


@dataclass(frozen=True)
class StoreSetup:
    """The entry of a kind of store in the registry."""

    make: Callable[[Settings], Store]
    """Makes the store. Raises SettingsError if a needed setting is missing."""

    is_set_up: Callable[[Settings], bool]
    """Whether the settings name this kind of store, so that it may have collections."""

    server: str = ""
    """The product's name if the store is a server with an address in the settings; else empty."""
