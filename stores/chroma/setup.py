"""How the Chroma store is made from the settings."""

from callslip.config.settings import Settings
from callslip.errors import SettingsError
from callslip.stores.contract import Store
from callslip.stores.setup import StoreSetup


def _make(settings: Settings) -> Store:
    from callslip.stores.chroma.store import ChromaStore  # its client takes a second to import

    if settings.chroma.url is None:
        raise SettingsError(
            "chroma.url is not set.",
            hint="Start `callslip up`, which runs one, or set CALLSLIP_CHROMA__URL to a server's.",
        )
    return ChromaStore(settings.chroma.url, settings.index_dir)


CHROMA = StoreSetup(_make, lambda settings: settings.chroma.url is not None, "Chroma")
