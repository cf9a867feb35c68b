"""The composition root: makes the parts (stores, ledger, models, …) that one process works with.

A process builds one `Context` at its start and hands it to the Flask app (`app.extensions`), the
Celery app (`app.callslip`) and the adapters. The context makes each part at its first use, once per
process and never before a fork.
"""

import atexit
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

import redis
from celery import Celery, current_app

from callslip.agent.budget import Budgeted
from callslip.config.settings import Settings
from callslip.errors import SettingsError
from callslip.ingestion.context import StepContext
from callslip.ingestion.corrections.corrected_version import Measures
from callslip.ingestion.isolation.process import Extractor
from callslip.ingestion.layout_server import LayoutServer
from callslip.models.e5.tokens import Tokenizer
from callslip.models.embedders.contract import Embedder
from callslip.models.registry import (
    make_analyzer,
    make_confirmer,
    make_embedder,
    make_further_embedders,
    make_previous_embedder,
    make_reader,
    make_recognizer,
    make_reranker,
    make_spans,
    make_tokenizer,
)
from callslip.models.text.analyzer import Analyzer
from callslip.per_process import PerProcess
from callslip.readers import Reader
from callslip.retrieval.caches import Cache
from callslip.retrieval.candidates.resources import Resources
from callslip.retrieval.messages import SearchRequest, SearchResponse
from callslip.retrieval.run import search
from callslip.retrieval.tracing.recording import Learning
from callslip.stores.backend import Backend
from callslip.stores.blobs import Blobs
from callslip.stores.contract import Store
from callslip.stores.ledger import Ledger
from callslip.stores.registry import STORES, kinds, make_store
from callslip.stores.servers import breaker
from callslip.stores.sides import kind_of, side_of
from callslip.tasks.shared import metering
from callslip.tasks.shared.backlog import Backlog
from callslip.tasks.shared.broker import Consumers, ProcessCounts, connect, ping
from callslip.tasks.shared.receivers import Receivers
from callslip.tasks.shared.recording import Recorder

if TYPE_CHECKING:  # LangGraph takes a second to import, and only the answer workers need it
    from callslip.agent.agent import Agent
    from callslip.agent.conversations import Threads
    from callslip.models.telemetry import Spans

T = TypeVar("T")

DRAW_SECONDS = 10.0
"""The longest time to draw a page: a thread of the API waits for it."""

DRAWINGS = 32
"""The images of pages that a process keeps, of some hundred KB each."""


class part(Generic[T]):  # noqa: N801 - used as a decorator, as functools.cached_property is
    """A part of a context: the decorated method makes it once per process, at its first use."""

    def __init__(self, make: Callable[[Any], T]) -> None:
        self._make, self._name, self.__doc__ = make, make.__name__, make.__doc__

    def __get__(self, context: "Context", owner: type) -> T:
        return cast(T, context.find(self._name, self._make))


class Context:
    """The parts that one process works with, made according to its settings."""

    reader: Reader | None = None
    """The reader for whom the context works; None may read everything."""

    def __init__(
        self,
        settings: Settings,
        *,
        local: bool = False,
        store_of: Callable[[str], Store] | None = None,
        store_kinds: tuple[str, ...] | None = None,
        **provided: Any,
    ) -> None:
        """Prepare the parts; none of them is made yet.

        With `local`, searches and the jobs of adapters run in this process instead of in workers,
        for programs without a broker. `store_of` and `store_kinds` replace the stores that the
        settings name. `provided` are existing parts by name, such as `ledger`; raises TypeError for
        a name that is not a part.
        """
        for name in provided:
            if not isinstance(vars(Context).get(name), part):
                raise TypeError(f"a context has no part {name!r}")
        self.settings, self.local = settings, local
        self.provided: Mapping[str, Any] = provided
        self.made: dict[str, PerProcess[Any]] = {}
        self._stores = {kind: PerProcess(partial(self._make_store, kind)) for kind in STORES}
        self._store_of, self._store_kinds = store_of, store_kinds

    def find(self, name: str, make: Callable[[Any], Any]) -> Any:
        """The part of this name, made by `make` at its first use."""
        if name in self.provided:
            return self.provided[name]
        made = self.made.get(name)
        if made is None:  # setdefault: two threads that get here at once share one
            made = self.made.setdefault(name, PerProcess(partial(make, self)))
        return made.get()

    def for_reader(self, reader: Reader | None) -> "Context":
        """This context as far as a reader may read: what it may not read is missing."""
        return self if reader is None else LimitedContext(self, reader)

    def store_of(self, side: str) -> Store:
        """The client of a kind of store, or of its second side.

        Raises SettingsError if the kind is unknown.
        """
        kind = kind_of(side)
        if self._store_of is not None:
            return side_of(self._store_of(kind), side)
        if kind not in self._stores:
            raise SettingsError(f"There is no store {kind!r}; there are: {', '.join(STORES)}.")
        return side_of(self._stores[kind].get(), side)

    def _make_store(self, kind: str) -> Store:
        store = make_store(self.settings, kind)
        return store if self.local else metering.observed(store, self.meter, self.spans)

    def stores(self) -> dict[str, Store]:
        """The clients of every configured store, by kind."""
        names = kinds(self.settings) if self._store_kinds is None else self._store_kinds
        return {kind: self.store_of(kind) for kind in names}

    def close(self) -> None:
        """Close the ledger, the stores and the conversations that were made; end the drawer."""
        built: list[Any] = [each.built() for each in self._stores.values()]
        for name in ("conversations", "drawer", "ledger"):
            if name in self.made:
                built.append(self.made[name].built())
        for each in built:
            if each is not None:
                each.close()

    @part
    def ledger(self) -> Ledger:
        """The ledger; its tables are created if they are missing."""
        made = Ledger(self.settings.ledger_url)
        made.create()
        return made

    @part
    def blobs(self) -> Blobs:
        """The blob store, with originals and artifacts."""
        return Blobs(self.settings.blobs_url, self.settings.blobs.endpoint)

    @part
    def backend(self) -> Backend:
        """Ledger, blobs and stores as one value.

        Raises LedgerDown if the ledger does not answer.
        """
        return Backend(self.settings, self.ledger, self.blobs, self.store_of, self._store_kinds)

    @part
    def embedder(self) -> Embedder:
        """The embedder, which loads its model when it embeds the first text."""
        return make_embedder(self.settings)

    @part
    def further_embedders(self) -> dict[str, Embedder]:
        """The embedders of named vectors by name, each used first when a collection needs it."""
        return make_further_embedders(self.settings, self.embedder)

    @part
    def analyzer(self) -> Analyzer:
        """The analyzer, which makes keyword terms."""
        return make_analyzer(self.settings.language_codes)

    @part
    def tokenizer(self) -> Tokenizer:
        """The tokenizer, which measures chunks; it loads its model at its first use."""
        return make_tokenizer(self.settings)

    @part
    def previous_embedder(self) -> Embedder | None:
        """The embedder of collections that are not embedded anew yet; None without one."""
        return make_previous_embedder(self.settings)

    @part
    def measures(self) -> Measures:
        """What measures a corrected chunk."""
        return Measures(self.tokenizer, self.embedder, self.previous_embedder)

    @part
    def steps(self) -> StepContext:
        """The context of the ingestion steps."""
        layout = self.settings.layout
        return StepContext(
            backend=self.backend,
            embedder=self.embedder,
            tokenizer=self.tokenizer,
            analyzer=self.analyzer,
            extractor=Extractor(self.settings.extract),
            recognizer=make_recognizer(self.settings.language_codes),
            confirmer=make_confirmer(self.settings),
            previous=self.previous_embedder,
            layout_server=LayoutServer(layout) if layout.base_url else None,
            further=self.further_embedders,
        )

    @part
    def drawer(self) -> Extractor:
        """The child process that draws pages, which starts with the first page."""
        limits = self.settings.extract
        seconds = min(DRAW_SECONDS, limits.timeout_seconds)
        return Extractor(limits.model_copy(update={"timeout_seconds": seconds}))

    @part
    def drawings(self) -> Cache[bytes]:
        """The last images of pages."""
        return Cache(DRAWINGS)

    @part
    def resources(self) -> Resources:
        """The resources of searches that run in this process."""
        reranker = make_reranker(self.settings, self.embedder, self.ledger.token_vectors)
        return Resources(
            self.backend,
            self.embedder,
            self.analyzer,
            make_recognizer(self.settings.language_codes),
            reranker,
            make_reader(self.settings),
            self.previous_embedder,
            self.further_embedders,
        )

    @part
    def search(self) -> Callable[[SearchRequest], SearchResponse]:
        """The function that runs a search in this process."""
        return partial(search, self.resources)

    @part
    def broker(self) -> redis.Redis:
        """A Redis client of the broker. Raises SettingsError if the settings have no address."""
        return connect(self.settings)

    @part
    def pinger(self) -> redis.Redis:
        """As `broker`, with the time limit of a breaker's ping."""
        return connect(self.settings, breaker.PING_SECONDS)

    @part
    def backlog(self) -> Backlog:
        """The check that the documents which wait are not too much work."""
        return Backlog(self.settings.ingest, self.ledger.fair_queue)

    @part
    def process_counts(self) -> ProcessCounts:
        """The counter of the processes that consume each queue."""
        return ProcessCounts(self.broker)

    @part
    def consumers(self) -> Consumers:
        """The check that a queue has a consumer."""
        return Consumers(self.broker, lambda: ping(self.pinger))

    @part
    def meter(self) -> metering.Meter:
        """The meter, which sends the counters of this process to the broker, if there is one."""
        to_broker = self.settings.broker.url is not None and not self.local
        if to_broker:
            made = metering.Meter(
                partial(metering.send, self.broker), keep=partial(metering.keep, self.broker)
            )
        else:
            made = metering.Meter(metering.drop)
        atexit.register(made.close)
        return made

    @part
    def spans(self) -> "Spans | None":
        """The source of spans for the collector; None without a collector."""
        made = make_spans(self.settings)
        if made is not None:
            atexit.register(made.close)
        return made

    @part
    def learning(self) -> Learning:
        """The service that records searches and their outcomes in the ledger."""
        return Learning(self.ledger, self.settings.memory, self.settings.traces)

    @part
    def recorder(self) -> Recorder:
        """The recorder, whose thread writes traces of searches without delaying answers."""
        made = Recorder(self.learning.record)
        atexit.register(made.close)
        return made

    @part
    def receivers(self) -> Receivers:
        """The HTTP client for the receivers of webhooks."""
        return Receivers(self.settings.webhooks)

    @part
    def conversations(self) -> "Threads":
        """The store of the conversations with the agent."""
        from callslip.agent.conversations import Threads, make_saver

        saver = make_saver(self.settings.ledger_url, self.settings.data_dir)
        return Threads(saver, self.ledger.conversations)

    @part
    def agent(self) -> "Agent":
        """The agent, which answers questions in this process."""
        from callslip.agent.agent import Agent

        settings = self.settings
        model, spans = make_confirmer(settings), self.spans

        def budgeted(collection: str, tenant: str) -> Budgeted | None:
            if model is None:
                return None
            return Budgeted(
                model,
                self.ledger.model_usage,
                settings.llm,
                collection,
                tenant,
                on_call=partial(metering.model_called, self.meter),
                spans=spans,
            )

        return Agent(settings, self.resources, self.learning, self.conversations, budgeted, spans)


class LimitedContext(Context):
    """A context that sees what a reader may read; all other parts are those of the whole one."""

    def __init__(self, whole: Context, reader: Reader) -> None:
        self.__dict__.update(whole.__dict__)
        self._whole, self.reader = whole, reader
        ledger = whole.ledger.for_reader(reader)
        backend = replace(whole.backend, ledger=ledger)
        self.provided = {"ledger": ledger, "backend": backend}

    def find(self, name: str, make: Callable[[Any], Any]) -> Any:
        """A part of the whole context, limited to the reader if it reads documents."""
        if name in self.provided:
            return self.provided[name]
        whole = self._whole.find(name, make)
        match name:
            case "search":
                return partial(search, self.resources)
            case "resources" | "agent":
                return whole.for_reader(self.reader)
            case "learning" | "conversations":
                return whole.over(self.ledger)
        return whole


def hand_to(app: Celery, context: Context) -> None:
    """Set the context that the tasks of a Celery app use."""
    app.callslip = context


def current() -> Context:
    """The context of the Celery app that runs the task."""
    return cast(Context, current_app.callslip)
