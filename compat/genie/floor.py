"""The floor of the invokers: a meta.yaml may say where Weaviate is."""

from collections.abc import Callable
from functools import partial

from compat import floor as common
from compat.floor import Floor, floor, later
from compat.genie.configured import Connection
from config import get_settings
from models.per_process import PerProcess
from models.registry import make_recognizer, make_reranker
from retrieval.engine import Engine
from stores.contract import Store
from stores.registry import make_store
from tasks import process

__all__ = ["Floor", "floor", "here"]


def here(connection: Connection) -> Floor:
    """Searches in this process, by Callslip's settings; Weaviate is where the connection says.

    What is deleted is hidden at once; the sweep of the workers removes it.
    """
    if connection.http_host is None:
        return common.here()
    own = PerProcess(partial(_weaviate, connection))

    def store_of(kind: str) -> Store:
        return own.get() if kind == "weaviate" else process.store(kind)

    engine = PerProcess(partial(_engine, store_of))
    return floor(lambda request: engine.get().search(request), store_of, later, later)


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
