"""How the CrateDB store and the store of attached tables are made from the settings."""

from typing import TYPE_CHECKING

from callslip.config.settings import Settings
from callslip.errors import SettingsError
from callslip.stores.setup import StoreSetup

if TYPE_CHECKING:
    from callslip.stores.contract import Store
    from callslip.stores.crate.connection import Connection


def crate_connection(settings: Settings) -> "Connection":
    """The connection to the configured CrateDB. Raises SettingsError if `crate.url` is not set."""
    from callslip.stores.crate.connection import Connection  # its client takes a while to import

    crate = settings.crate
    if crate.url is None:
        raise SettingsError(
            "crate.url is not set.",
            hint="`callslip up` starts no CrateDB: start one (docs/operations.md, Servers of"
            " stores), set CALLSLIP_CRATE__URL to its address for every process, and start"
            " `callslip up` again with it.",
        )
    password = crate.password.get_secret_value() if crate.password else None
    return Connection(crate.url, crate.user, password, crate.timeout_seconds)


def _make(settings: Settings) -> "Store":
    from callslip.stores.crate.store import CrateStore
    from callslip.stores.crate.tables import Layout

    crate = settings.crate
    layout = Layout(crate.schema_name, crate.shards, crate.replicas)
    return CrateStore(crate_connection(settings), layout)


def _make_attached(settings: Settings) -> "Store":
    from callslip.stores.crate.attached import AttachedStore
    from callslip.stores.ledger import Ledger

    return AttachedStore(crate_connection(settings), Ledger(settings.ledger_url))


CRATE = StoreSetup(_make, lambda settings: settings.crate.url is not None, "CrateDB")

ATTACHED_TABLES = StoreSetup(_make_attached, lambda _: False)
"""Never set up for Callslip's own collections: the tables belong to other programs."""
