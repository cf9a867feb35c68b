"""A search, from the question to hits with their reasons. Knows no queue and no HTTP."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from config.settings import Settings
from models.analyzer import Analyzer
from models.embedder import Embedder
from models.entities import Recognizer
from models.reranker import Reranker
from retrieval.background import Backgrounds
from retrieval.caches import Cache, Counted
from retrieval.facet_weights import FacetTables
from retrieval.hotset import Hotset
from retrieval.lookup import Kept
from retrieval.messages import SearchRequest, SearchResponse
from retrieval.search import Search
from retrieval.trace import Trace
from retrieval.tracing import trace_of
from stores.contract import Store
from stores.ledger import Ledger
from stores.records import Vector

BRANCHES = 4
"""Threads in which branches are counted, for all searches of a process."""


@dataclass
class Engine:
    """Everything a search needs, kept warm. One per process, made after the fork."""

    settings: Settings
    ledger: Ledger
    store_of: Callable[[str], Store]
    embedder: Embedder
    analyzer: Analyzer
    recognizer: Recognizer
    reranker: Reranker | None = None
    backgrounds: Backgrounds = field(init=False)
    facet_tables: FacetTables = field(init=False)
    questions: Cache[Vector] = field(init=False)
    candidates: Cache[Kept] = field(init=False)
    hotset: Hotset = field(init=False)
    threads: ThreadPoolExecutor = field(init=False)

    def __post_init__(self) -> None:
        self.backgrounds = Backgrounds(self.ledger)
        self.facet_tables = FacetTables(self.ledger.facet_values, self.settings.facets.facets)
        search = self.settings.search
        self.questions = Cache(search.query_cache)
        self.candidates = Cache(search.result_cache, search.result_cache_seconds)
        self.hotset = Hotset(self.ledger, self.settings)
        self.threads = ThreadPoolExecutor(BRANCHES, thread_name_prefix="branch")

    @property
    def caches(self) -> dict[str, Counted]:
        """What may spare a search some work, each with how often it did."""
        return {"questions": self.questions, "candidates": self.candidates, "hotset": self.hotset}

    def search(self, request: SearchRequest) -> SearchResponse:
        """Answer a question.

        Raises EmptyQuery, QueryTooLong, InvalidFilter, InvalidRequest, CollectionNotFound,
        TenantNotFound, VectorNotFound, MetricNotIndexed, StoreCannot for a question that cannot be
        answered, StoreDown when the store does not answer. An embedder, or a reranker, that does
        not answer is left out, and the response says so.
        """
        return self.traced(request)[0]

    def traced(self, request: SearchRequest) -> tuple[SearchResponse, Trace]:
        """The same, with how it came to its hits."""
        search = Search(self, request)
        response = search.answer()
        return response, trace_of(search, response)
