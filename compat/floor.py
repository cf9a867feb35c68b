"""What the doors stand on: the same searches, ledger and stores as the API's."""

from collections.abc import Callable
from dataclasses import dataclass

from models.embedder import Embedder
from retrieval.messages import SearchRequest, SearchResponse
from stores.blobs import Blobs
from stores.contract import Store
from stores.ledger import Ledger
from tasks import maintenance, process


@dataclass(frozen=True)
class Floor:
    """Everything that a door calls.

    `removed` and `dropped` tell a worker that a document, or a collection, is to be removed.
    """

    ledger: Ledger
    blobs: Blobs
    store_of: Callable[[str], Store]
    search: Callable[[SearchRequest], SearchResponse]
    embedder: Callable[[], Embedder]
    analyze: Callable[[str], str]
    removed: Callable[[str], None]
    dropped: Callable[[str], None]


def here() -> Floor:
    """Searches in this process, by Callslip's settings.

    What is deleted is hidden at once; the sweep of the workers removes it.
    """
    return floor(_search, process.store, later, later)


def floor(
    search: Callable[[SearchRequest], SearchResponse],
    store_of: Callable[[str], Store],
    removed: Callable[[str], None] = maintenance.send_removal,
    dropped: Callable[[str], None] = maintenance.send_drop,
) -> Floor:
    """This process's ledger and models, with searches and stores as they are given."""
    return Floor(
        process.ledger(),
        process.blobs(),
        store_of,
        search,
        process.embedder,
        lambda text: process.analyzer().analyze(text),
        removed,
        dropped,
    )


def later(_: str) -> None:
    """Leave it to the sweep."""


def _search(request: SearchRequest) -> SearchResponse:
    return process.engine().search(request)
