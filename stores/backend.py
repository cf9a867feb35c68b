"""The backend of an installation: its settings, its ledger, its blobs and its stores."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from callslip.config.settings import Settings
from callslip.stores.blobs import Blobs
from callslip.stores.contract import Store
from callslip.stores.ledger import Ledger
from callslip.stores.registry import kinds
from callslip.stores.sides import both_sides, with_sides


@dataclass(frozen=True)
class Backend:
    """The settings, ledger, blobs and stores that all code below the API and the queue uses.

    `store_of` returns the client of a kind of store, or of its second side; it raises SettingsError
    for a kind that is not set up. `kinds` are the kinds of stores that are set up; None means those
    in the settings.
    """

    settings: Settings
    ledger: Ledger
    blobs: Blobs
    store_of: Callable[[str], Store]
    kinds: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "store_of", with_sides(self.store_of))

    def stores(self) -> Mapping[str, Store]:
        """The clients of both sides (stores/sides.py) of every store that is set up."""
        names = kinds(self.settings) if self.kinds is None else self.kinds
        return {side: self.store_of(side) for side in both_sides(names)}


class OnBackend:
    """A base class for objects with a `backend`: the backend's parts are properties."""

    backend: Backend

    @property
    def settings(self) -> Settings:
        """The settings of the backend."""
        return self.backend.settings

    @property
    def ledger(self) -> Ledger:
        """The ledger of the backend."""
        return self.backend.ledger

    @property
    def blobs(self) -> Blobs:
        """The blobs of the backend."""
        return self.backend.blobs

    @property
    def store_of(self) -> Callable[[str], Store]:
        """The backend's clients of stores, by kind."""
        return self.backend.store_of
