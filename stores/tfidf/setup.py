"""How the TF-IDF store is made from the settings."""

from typing import TYPE_CHECKING

from callslip.config.settings import Settings
from callslip.stores.setup import StoreSetup

if TYPE_CHECKING:
    from callslip.stores.contract import Store


def _make(settings: Settings) -> "Store":
    from callslip.stores.tfidf.store import TfidfStore  # scikit-learn takes a second to import

    return TfidfStore(settings.tfidf_dir)


TFIDF = StoreSetup(_make, lambda s: s.store == "tfidf" or s.tfidf_dir.exists())
