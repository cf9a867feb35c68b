"""A backend of one store, for tests."""

from callslip.config.settings import Settings
from callslip.stores.backend import Backend
from callslip.stores.blobs import Blobs
from callslip.stores.contract import Store
from callslip.stores.ledger import Ledger


def backend_of(
    ledger: Ledger, store: Store, settings: Settings | None = None, blobs: Blobs | None = None
) -> Backend:
    """A backend whose only store answers for every kind; its blobs are in memory."""
    return Backend(
        settings or Settings(),
        ledger,
        blobs or Blobs("memory://backend"),
        lambda _: store,
        kinds=(store.kind,),
    )
