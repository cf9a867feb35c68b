"""The stores there are; a new one is a folder beside this file and a line in it."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from callslip.errors import InvalidRequest, SettingsError
from config.settings import Settings
from stores.contract import Store

if TYPE_CHECKING:
    from stores.crate.connection import Connection


def make_store(settings: Settings, kind: str) -> Store:
    """Make the store of this kind for this process, after a fork; it connects at its first use.

    Raises SettingsError for an unknown kind and where a needed setting is missing.
    """
    if kind not in STORES:
        raise SettingsError(f"There is no store {kind!r}; there are: {', '.join(STORES)}.")
    return STORES[kind](settings)


def _chroma(settings: Settings) -> Store:
    from stores.chroma import ChromaStore  # its client takes a second to import

    if settings.chroma.url is None:
        raise SettingsError(
            "chroma.url is not set.",
            hint="Start `callslip up`, which runs one, or set CALLSLIP_CHROMA__URL to a server's.",
        )
    return ChromaStore(settings.chroma.url, settings.index_dir)


def _weaviate(settings: Settings) -> Store:
    from stores.weaviate import WeaviateStore  # its client takes a second to import

    server = settings.weaviate
    if server.url is None:
        raise SettingsError(
            "weaviate.url is not set.",
            hint="Set CALLSLIP_WEAVIATE__URL and CALLSLIP_WEAVIATE__GRPC_URL for every process.",
        )
    key = server.api_key.get_secret_value() if server.api_key else None
    return WeaviateStore(server.url, server.grpc_url, key, server.timeout_seconds)


def _tfidf(settings: Settings) -> Store:
    from stores.tfidf import TfidfStore  # scikit-learn takes a second to import

    return TfidfStore(settings.tfidf_dir)


def _crate(settings: Settings) -> Store:
    from stores.crate import CrateStore
    from stores.crate.tables import Layout

    crate = settings.crate
    layout = Layout(crate.schema_name, crate.shards, crate.replicas)
    return CrateStore(crate_connection(settings), layout)


def crate_connection(settings: Settings) -> "Connection":
    """The connection to the CrateDB of the settings; SettingsError where they name none."""
    from stores.crate.connection import Connection  # its client takes a while to import

    crate = settings.crate
    if crate.url is None:
        raise SettingsError(
            "crate.url is not set.", hint="Set CALLSLIP_CRATE__URL for every process."
        )
    password = crate.password.get_secret_value() if crate.password else None
    return Connection(crate.url, crate.user, password, crate.timeout_seconds)


def _attached(settings: Settings) -> Store:
    from stores.crate.attached import AttachedStore
    from stores.ledger import Ledger

    return AttachedStore(crate_connection(settings), Ledger(settings.ledger_url))


def kinds(settings: Settings) -> list[str]:
    """The kinds of stores that are set up here, and may hold something of ours."""
    set_up = {
        "chroma": settings.chroma.url is not None,
        "weaviate": settings.weaviate.url is not None,
        "crate": settings.crate.url is not None,
        "attached": False,
        "tfidf": settings.store == "tfidf" or settings.tfidf_dir.exists(),
    }
    return [kind for kind in STORES if set_up[kind]]


def check_set_up(settings: Settings, kind: str) -> None:
    """InvalidRequest where a request asks for a kind of store that is not set up here."""
    if kind in ADDRESSED and kind not in kinds(settings):
        raise InvalidRequest(
            f"this desk has no {ADDRESSED[kind]}: {kind}.url is not set",
            hint=f"Set CALLSLIP_{kind.upper()}__URL to the server's address and start it again.",
        )


ADDRESSED = {"chroma": "Chroma", "weaviate": "Weaviate", "crate": "CrateDB"}
"""Stores that are servers, as people call them."""

STORES: Mapping[str, Callable[[Settings], Store]] = {
    "chroma": _chroma,
    "weaviate": _weaviate,
    "crate": _crate,
    "attached": _attached,
    "tfidf": _tfidf,
}
