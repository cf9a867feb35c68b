"""What the doors stand on: the same searches, ledger and stores as the API's."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from config import get_settings
from models.embedder import Embedder
from models.per_process import PerProcess
from models.registry import make_recognizer, make_reranker
from retrieval.engine import Engine
from retrieval.messages import SearchRequest, SearchResponse
from stores.blobs import Blobs
from stores.contract import Store
from stores.ledger import Ledger
from stores.registry import STORES, kinds, make_store
from tasks import maintenance, process
from workers.placement import open_ledger, placed_settings


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
    """Searches in this process, by Callslip's settings; beside `callslip up`, in what that runs.

    What is deleted is hidden at once; the sweep of the workers removes it. SettingsError, and
    nothing is made, where there is neither a ledger nor the store of the settings.
    """
    _check_placed()
    return floor(lambda request: _engine.get().search(request), _store, later, later)


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


def engine(store_of: Callable[[str], Store]) -> Engine:
    """What searches in this process, in these stores."""
    settings, ledger, embedder = get_settings(), process.ledger(), process.embedder()
    reranker = make_reranker(settings, embedder, ledger.token_vectors)
    return Engine(
        settings, ledger, store_of, embedder, process.analyzer(), make_recognizer(), reranker
    )


def _check_placed() -> None:
    settings = placed_settings()
    if settings.store not in kinds(settings):
        open_ledger(settings).close()


def _store(kind: str) -> Store:
    return _stores[kind].get() if kind in _stores else process.store(kind)


def _placed(kind: str) -> Store:
    return make_store(placed_settings(), kind)


_stores = {kind: PerProcess(partial(_placed, kind)) for kind in STORES}
_engine = PerProcess(lambda: engine(_store))
