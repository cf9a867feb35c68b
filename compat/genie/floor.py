"""The floor of the invokers: a meta.yaml may say where Weaviate is."""

from functools import partial

from compat import floor as common
from compat.floor import Floor, floor, later
from compat.genie.configured import Connection
from config import get_settings
from models.per_process import PerProcess
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

    engine = PerProcess(partial(common.engine, store_of))
    return floor(lambda request: engine.get().search(request), store_of, later, later)


def _weaviate(connection: Connection) -> Store:
    settings = get_settings()
    there = connection.settings(settings.weaviate)
    return make_store(settings.model_copy(update={"weaviate": there}), "weaviate")
