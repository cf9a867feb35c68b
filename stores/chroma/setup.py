"""How the Chroma store is made from the settings."""

from typing import TYPE_CHECKING

from callslip.config.settings import Settings
from callslip.errors import SettingsError
from callslip.stores.setup import StoreSetup

if TYPE_CHECKING:
    from callslip.stores.contract import Store


def _make(settings: Settings) -> "Store":
    from callslip.stores.chroma.store import ChromaStore  # its client takes a second to import
    from callslip.stores.fulltext.index import KeywordFolder
    from callslip.stores.fulltext.service import KeywordService

    if settings.chroma.url is None:
        raise SettingsError(
            "chroma.url is not set.",
            hint="`callslip up` runs one if the setting `store` is chroma: start it, or stop it and"
            " start it with CALLSLIP_STORE=chroma. Or set CALLSLIP_CHROMA__URL to a server's"
            " address for every process.",
        )
    tenant = settings.chroma.tenant
    indexes = KeywordService(settings.keyword) if settings.keyword.url else None
    return ChromaStore(
        settings.chroma.url,
        indexes or KeywordFolder(settings.index_dir),
        tenant.get_secret_value() if tenant else None,
    )


CHROMA = StoreSetup(_make, lambda settings: settings.chroma.url is not None, "Chroma")


def _make_attached(settings: Settings) -> "Store":
    from callslip.stores.chroma.attached import AttachedChroma
    from callslip.stores.ledger import Ledger

    return AttachedChroma(settings.chroma, Ledger(settings.ledger_url))


ATTACHED_COLLECTIONS = StoreSetup(_make_attached, lambda _: False)
"""Never set up for Callslip's own collections: they belong to other programs."""
