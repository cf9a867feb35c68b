"""Prepares the ledger at the start of `callslip up`, while the first parts start."""

from contextlib import closing

from callslip.config.settings import Settings
from callslip.stores.ledger import Ledger
from callslip.workers.first_key import make_first_key
from callslip.workers.local_settings import upgrade_ledger


def prepare_ledger(settings: Settings) -> str | None:
    """Make or upgrade the ledger and free its leases; return the admin key if it is new.

    Raises LedgerError or SettingsError if the ledger cannot be upgraded.
    """
    upgrade_ledger(settings)
    _free_leases(settings)
    return make_first_key(settings)


def _free_leases(settings: Settings) -> None:
    """End all leases of a ledger in this folder, which no other process uses: their owners died."""
    if settings.ledger.url is None:
        with closing(Ledger(settings.ledger_url)) as ledger:
            ledger.leases.expire_all()
            ledger.source_runs.expire_all()
