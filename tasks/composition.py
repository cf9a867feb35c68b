"""The composition root: makes the parts (stores, ledger, models, …) that one process works with.

A process builds one `Context` at its start and hands it to the Flask app (`app.extensions`), the
Celery app (`app.callslip`) and the adapters. The context makes each part at its first use, once per
process and never before a fork.
"""

import atexit
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

import redis
from celery import Celery, current_app

from callslip.agent.budget import Budgeted
from callslip.config.settings import Settings
from callslip.errors import SettingsError
from callslip.ingestion.context import StepContext
from callslip.ingestion.isolation.process import Extractor
from callslip.models.embedders.contract import Embedder
from callslip.models.registry import (
    make_analyzer,
    make_confirmer,
    make_embedder,
    make_reader,
    make_recognizer,
    make_reranker,
    make_spans,
    make_tokenizer,
)
from callslip.models.text.analyzer import Analyzer
from callslip.per_process import PerProcess
from callslip.retrieval.candidates.resources import Resources
from callslip.retrieval.messages import SearchRequest, SearchResponse
from callslip.retrieval.run import search
from callslip.retrieval.tracing.recording import Learning
from callslip.stores.backend import Backend
from callslip.stores.blobs import Blobs
from callslip.stores.contract import Store
from callslip.stores.ledger import Ledger
from callslip.stores.registry import STORES, kinds, make_store
from callslip.tasks import metering
from callslip.tasks.broker import ProcessCounts, connect
from callslip.tasks.receivers import Receivers
from callslip.tasks.recording import Recorder

if TYPE_CHECKING:  # LangGraph takes a second to import, and only the answer workers need it
    from callslip.agent.agent import Agent
    from callslip.agent.conversations import Threads

T = TypeVar("T")


class part(Generic[T]):  # noqa: N801 - used as a decorator, as functools.cached_property is
    """A part of a context: the decorated method makes it once per process, at its first use."""

    def __init__(self, make: Callable[[Any], T]) -> None:
        self._make, self._name, self.__doc__ = make, make.__name__, make.__doc__

    def __get__(self, context: "Context", owner: type) -> T:
        if self._name in context.provided:
            return cast(T, context.provided[self._name])
        made = context.made.get(self._name)
        if made is None:  # setdefault: two threads that get here at once share one
            made = context.made.setdefault(self._name, PerProcess(partial(self._make, context)))
        return cast(T, made.get())


class Context:
    """The parts that one process works with, made according to its settings."""

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
        self._stores = {kind: PerProcess(partial(make_store, settings, kind)) for kind in STORES}
        self._store_of, self._store_kinds = store_of, store_kinds

    def store_of(self, kind: str) -> Store:
        """The client of a kind of store. Raises SettingsError if the kind is unknown."""
        if self._store_of is not None:
            return self._store_of(kind)
        if kind not in self._stores:
            raise SettingsError(f"There is no store {kind!r}; there are: {', '.join(STORES)}.")
        return self._stores[kind].get()

    def stores(self) -> dict[str, Store]:
        """The clients of every configured store, by kind."""
        names = kinds(self.settings) if self._store_kinds is None else self._store_kinds
        return {kind: self.store_of(kind) for kind in names}

    @part
    def ledger(self) -> Ledger:
        """The ledger; its tables are created if they are missing."""
        made = Ledger(self.settings.ledger_url)
        made.create()
        return made

    @part
    def blobs(self) -> Blobs:
        """The blob store, with originals and artifacts."""
        return Blobs(self.settings.blobs_url)

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
    def analyzer(self) -> Analyzer:
        """The analyzer, which makes keyword terms."""
        return make_analyzer(self.settings.language_codes)

    @part
    def steps(self) -> StepContext:
        """The context of the ingestion steps."""
        return StepContext(
            backend=self.backend,
            embedder=self.embedder,
            tokenizer=make_tokenizer(self.settings),
            analyzer=self.analyzer,
            extractor=Extractor(self.settings.extract),
            recognizer=make_recognizer(self.settings.language_codes),
            confirmer=make_confirmer(self.settings),
        )

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
    def process_counts(self) -> ProcessCounts:
        """The counter of the processes that consume each queue."""
        return ProcessCounts(self.broker)

    @part
    def meter(self) -> metering.Meter:
        """The meter, which sends the counters of this process to the broker."""
        made = metering.Meter(partial(metering.send, self.broker))
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
        model, spans = make_confirmer(settings), make_spans(settings)
        if spans is not None:
            atexit.register(spans.close)

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


def hand_to(app: Celery, context: Context) -> None:
    """Set the context that the tasks of a Celery app use."""
    app.callslip = context


def current() -> Context:
    """The context of the Celery app that runs the task."""
    return cast(Context, current_app.callslip)
