"""How the TF-IDF store is made from the settings."""

from callslip.config.settings import Settings
from callslip.stores.contract import Store
from callslip.stores.setup import StoreSetup


def _make(settings: Settings) -> Store:
    from callslip.stores.tfidf.store import TfidfStore  # scikit-learn takes a second to import

    return TfidfStore(settings.tfidf_dir)


TFIDF = StoreSetup(_make, lambda s: s.store == "tfidf" or s.tfidf_dir.exists())
