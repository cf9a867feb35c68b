"""The context of the invokers in a program; a `meta.yaml` may set the address of Weaviate."""

from callslip.compat.context import AdapterContext, adapter_context, local_context, with_stores
from callslip.compat.genie.configuration import Connection
from callslip.per_process import PerProcess
from callslip.stores.contract import Store
from callslip.stores.registry import make_store


def connected(connection: Connection) -> AdapterContext:
    """Return a context in this process, with Callslip's settings and the connection's Weaviate.

    A deletion hides the data at once; the sweep of the workers removes the data.
    """
    context = local_context()
    if connection.http_host is None:
        return adapter_context(context)
    settings = context.settings
    there = settings.model_copy(update={"weaviate": connection.settings(settings.weaviate)})
    weaviate = PerProcess(lambda: make_store(there, "weaviate"))

    def store_of(kind: str) -> Store:
        return weaviate.get() if kind == "weaviate" else context.store_of(kind)

    return adapter_context(with_stores(context, store_of))
