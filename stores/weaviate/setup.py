"""How the Weaviate store is made from the settings."""

from typing import TYPE_CHECKING

from callslip.config.settings import Settings
from callslip.errors import SettingsError
from callslip.stores.setup import StoreSetup

if TYPE_CHECKING:
    from callslip.stores.contract import Store


def _make(settings: Settings) -> "Store":
    from callslip.stores.weaviate.store import WeaviateStore  # its client takes a second to import

    server = settings.weaviate
    if server.url is None:
        raise SettingsError(
            "weaviate.url is not set.",
            hint="`callslip up` starts no Weaviate: start one (docs/operations.md, Servers of"
            " stores), set CALLSLIP_WEAVIATE__URL and CALLSLIP_WEAVIATE__GRPC_URL to its addresses"
            " for every process, and start `callslip up` again with them.",
        )
    key = server.api_key.get_secret_value() if server.api_key else None
    return WeaviateStore(server.url, server.grpc_url, key, server.timeout_seconds)


WEAVIATE = StoreSetup(_make, lambda settings: settings.weaviate.url is not None, "Weaviate")
