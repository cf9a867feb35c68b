"""The server from Python: `Client`, and `AsyncClient` for those who await.

    with Client("http://127.0.0.1:8765") as client:
        document = client.wait_until_live(client.upload("main", "handbook.pdf"))
        for hit in client.search("main", "how long is parental leave?", top=3).hits:
            print(hit.title, hit.heading, hit.text)

Errors are those of `callslip.errors`. docs/client.md has more.
"""

from typing import TYPE_CHECKING, Any

from callslip.client import models
from callslip.client._sync.client import Client
from callslip.client.events import ServerEvent
from callslip.client.files import FolderProgress, Refused, Sent, SentFolder
from callslip.client.retries import NO_RETRIES, Retries

if TYPE_CHECKING:
    from callslip.client._async.client import AsyncClient
else:

    def __getattr__(name: str) -> Any:
        """Import AsyncClient at its first use: most programs need only one of the two clients."""
        if name != "AsyncClient":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from callslip.client._async.client import AsyncClient

        return AsyncClient


__all__ = [
    "NO_RETRIES",
    "AsyncClient",
    "Client",
    "FolderProgress",
    "Refused",
    "Retries",
    "Sent",
    "SentFolder",
    "ServerEvent",
    "models",
]
