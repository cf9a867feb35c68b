"""The desk from Python: `Client`, and `AsyncClient` for those who await.

    with Client("http://127.0.0.1:8765") as desk:
        document = desk.wait_until_live(desk.upload("main", "handbook.pdf"))
        for hit in desk.search("main", "how long is parental leave?", top=3).hits:
            print(hit.title, hit.heading, hit.text)

Errors are those of `callslip.errors`. docs/client.md has more.
"""

from callslip.client import models
from callslip.client._async.client import AsyncClient
from callslip.client._sync.client import Client
from callslip.client.files import FolderProgress, Refused, Sent, SentFolder
from callslip.client.retries import NO_RETRIES, Retries
from callslip.client.wire import ServerEvent

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
