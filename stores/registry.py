"""The kinds of stores: a new kind is a folder next to this file and a line in `STORES`."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from callslip.config.settings import Settings
from callslip.errors import InvalidRequest, SettingsError
from callslip.stores.chroma.setup import ATTACHED_COLLECTIONS, CHROMA
from callslip.stores.crate.setup import ATTACHED_TABLES, CRATE
from callslip.stores.setup import StoreSetup
from callslip.stores.tfidf.setup import TFIDF
from callslip.stores.weaviate.setup import WEAVIATE

if TYPE_CHECKING:
    from callslip.stores.contract import Store

STORES: Mapping[str, StoreSetup] = {
    "chroma": CHROMA,
    "weaviate": WEAVIATE,
    "crate": CRATE,
    "attached": ATTACHED_TABLES,
    "attached-chroma": ATTACHED_COLLECTIONS,
    "tfidf": TFIDF,
}


def make_store(settings: Settings, kind: str) -> "Store":
    """Make the store of this kind for this process, after a fork. It connects at its first use.

    Raises SettingsError for an unknown kind, and if a needed setting is missing.
    """
    if kind not in STORES:
        raise SettingsError(f"There is no store {kind!r}; there are: {', '.join(STORES)}.")
    return STORES[kind].make(settings)


def kinds(settings: Settings) -> list[str]:
    """The kinds of stores that are set up, and so may have collections of Callslip."""
    return [kind for kind, setup in STORES.items() if setup.is_set_up(settings)]


def check_set_up(settings: Settings, kind: str) -> None:
    """Raise InvalidRequest if `kind` is a store with a server, and the server is not set up."""
    setup = STORES.get(kind)
    if setup is not None and setup.server and not setup.is_set_up(settings):
        raise InvalidRequest(
            f"this server has no {setup.server}: {kind}.url is not set",
            hint=f"Set CALLSLIP_{kind.upper()}__URL to the server's address and start it again.",
        )
