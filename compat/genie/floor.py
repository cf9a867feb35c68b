"""What the invokers stand on: the same searches, ledger and stores as the API's."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from compat.genie.configured import Connection
from config import get_settings
from models.embedder import Embedder
from models.per_process import PerProcess
from models.registry import make_recognizer, make_reranker
from retrieval.engine import Engine
from retrieval.messages import SearchRequest, SearchResponse
from stores.blobs import Blobs
from stores.contract import Store
from stores.ledger import Ledger
from stores.registry import make_store
from tasks import maintenance, process


@dataclass(frozen=True)
class Floor:
    """Everything that an invoker calls.

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


def here(connection: Connection) -> Floor:
    """Searches in this process, by Callslip's settings; Weaviate is where the connection says.

    What is deleted is hidden at once; the sweep of the workers removes it.
    """
    if connection.http_host is None:
        return floor(_search, process.store, later, later)
    own = PerProcess(partial(_weaviate, connection))

    def store_of(kind: str) -> Store:
        return own.get() if kind == "weaviate" else process.store(kind)

    engine = PerProcess(partial(_engine, store_of))
    return floor(lambda request: engine.get().search(request), store_of, later, later)


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


def _weaviate(connection: Connection) -> Store:
    settings = get_settings()
    there = connection.settings(settings.weaviate)
    return make_store(settings.model_copy(update={"weaviate": there}), "weaviate")


def _engine(store_of: Callable[[str], Store]) -> Engine:
    settings, ledger, embedder = get_settings(), process.ledger(), process.embedder()
    reranker = make_reranker(settings, embedder, ledger.token_vectors)
    return Engine(
        settings, ledger, store_of, embedder, process.analyzer(), make_recognizer(), reranker
    )
