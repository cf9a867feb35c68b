"""The context of the adapters: the same searches, ledger and stores as the API's."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from callslip.callers import OPEN, Caller
from callslip.errors import InvalidRequest
from callslip.models.embedders.contract import Embedder
from callslip.models.text.kinds import analyzer_of
from callslip.per_process import PerProcess
from callslip.retrieval.messages import SearchRequest, SearchResponse
from callslip.stores.backend import Backend, OnBackend
from callslip.stores.contract import Store
from callslip.stores.ledger import CollectionRecord
from callslip.stores.records import ChunkRecord
from callslip.stores.registry import kinds
from callslip.tasks.composition import Context
from callslip.tasks.maintenance import send_drop, send_removal
from callslip.tasks.search import ask
from callslip.workers.local_settings import open_ledger, placed_settings


@dataclass(frozen=True)
class AdapterContext(OnBackend):
    """A backend and the functions that an adapter calls.

    `search` answers a search, `embedder` returns the embedder, `analyze` makes the keyword terms of
    a text for a collection, `further` returns the embedders of named vectors. Adapters call
    `removed` with the id of a deleted document and `dropped` with the name of a deleted collection,
    so that a worker removes the data. `caller` is that of the request: an adapter treats
    collections and tenants that it may not see as missing.
    """

    backend: Backend
    search: Callable[[SearchRequest], SearchResponse]
    embedder: Callable[[], Embedder]
    analyze: Callable[[CollectionRecord, str], str]
    removed: Callable[[str], None]
    dropped: Callable[[str], None]
    caller: Caller = OPEN
    further: Callable[[], Mapping[str, Embedder]] = dict

    def with_named(
        self, collection: CollectionRecord, chunks: Sequence[ChunkRecord]
    ) -> list[ChunkRecord]:
        """Return the chunks with the named vectors that they lack, made of their texts.

        Raises InvalidRequest if this installation lacks an embedder of the collection, EmbedderDown
        if one does not answer.
        """
        whole = list(chunks)
        for name, model in collection.schema.embedders.items():
            missing = [at for at, chunk in enumerate(whole) if name not in chunk.named]
            if not missing:
                continue
            by_model = {each.model: each for each in (self.embedder(), *self.further().values())}
            if model not in by_model:
                raise InvalidRequest(
                    f"vector {name!r} of collection {collection.name!r} is embedded by {model!r},"
                    " which this installation does not have",
                    hint="Give each chunk this vector, or add the embedder to the settings.",
                )
            made = by_model[model].passages([whole[at].body for at in missing])
            for at, vector in zip(missing, made, strict=True):
                whole[at] = replace(whole[at], named={**whole[at].named, name: vector})
        return whole


def adapter_context(context: Context, caller: Caller = OPEN) -> AdapterContext:
    """Return the adapters' view of a process's context, which also answers their searches."""
    return AdapterContext(
        context.backend,
        partial(ask, context),
        lambda: context.embedder,
        lambda collection, text: analyzer_of(collection.analyzer, context.analyzer).analyze(text),
        partial(send_removal, context),
        partial(send_drop, context),
        caller,
        lambda: context.further_embedders,
    )


def local() -> AdapterContext:
    """Return a context that works in this process, for programs that import `callslip.compat`.

    If `callslip up` runs on the data folder of the settings, the context uses the addresses of that
    process and so the same stores. A deletion hides the data at once; the sweep of the workers
    removes the data. Raises SettingsError, before anything is made, if there is neither a ledger
    nor the store that the settings name.
    """
    return adapter_context(local_context())


def local_context() -> Context:
    """Return the context that all callers of `local` in this process share.

    Errors as for `local`.
    """
    settings = placed_settings().for_questions()
    if settings.store not in kinds(settings):
        open_ledger(settings).close()
    shared = _shared.get()
    known = next((context for context in shared if context.settings == settings), None)
    if known is None:
        known = Context(settings, local=True)
        shared.append(known)
    return known


def with_stores(context: Context, store_of: Callable[[str], Store]) -> Context:
    """Return a local context with another context's models, ledger and blobs, and other stores."""
    return Context(
        context.settings,
        local=True,
        store_of=store_of,
        ledger=context.ledger,
        blobs=context.blobs,
        embedder=context.embedder,
        analyzer=context.analyzer,
    )


_shared: PerProcess[list[Context]] = PerProcess(list)
"""The contexts of this process, one for each value of the settings.

The settings contain addresses that change when `callslip up` restarts.
"""
