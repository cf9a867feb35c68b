"""The resources that all searches of a process share: the backend, the models and the caches."""

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import dataclass, field, replace
from typing import TypeVar

from callslip.models.embedders.choice import embedder_of
from callslip.models.embedders.contract import Embedder
from callslip.models.entities import Recognizer
from callslip.models.reader.contract import Reads
from callslip.models.rerankers.contract import Reranker
from callslip.models.text.analyzer import Analyzer
from callslip.models.text.kinds import analyzer_of
from callslip.readers import Reader
from callslip.retrieval.caches import Cache, Counted
from callslip.retrieval.candidates.branches import CandidateList
from callslip.retrieval.candidates.calibration import ScoreCalibrations
from callslip.retrieval.candidates.hotset import Hotset
from callslip.retrieval.facets.weights import FacetTables
from callslip.stores.backend import Backend, OnBackend
from callslip.stores.ledger import NO_PAGES, CollectionRecord, PageTable, Provenance
from callslip.stores.records import Vector

T = TypeVar("T")

BRANCHES = 4
"""Threads that count branches, for all searches of a process."""

PAGE_TABLES = 512
"""The maximum number of documents whose pages are cached."""

PROVENANCE = 4096
"""The maximum number of documents whose provenance is cached."""


@dataclass
class Resources(OnBackend):
    """The backend, models and caches that `retrieval.run` searches with.

    Each process creates one instance, after the fork. Threads may share it.
    """

    backend: Backend
    embedder: Embedder
    analyzer: Analyzer
    recognizer: Recognizer
    reranker: Reranker | None = None
    reader: Reads | None = None
    previous: Embedder | None = None
    further: Mapping[str, Embedder] = field(default_factory=dict)
    calibrations: ScoreCalibrations = field(init=False)
    facet_tables: FacetTables = field(init=False)
    questions: Cache[Vector] = field(init=False)
    candidates: Cache[CandidateList] = field(init=False)
    hotset: Hotset = field(init=False)
    page_tables: Cache[PageTable] = field(init=False)
    provenance: Cache[Provenance] = field(init=False)
    threads: ThreadPoolExecutor = field(init=False)

    def __post_init__(self) -> None:
        self.calibrations = ScoreCalibrations(self.ledger)
        self.facet_tables = FacetTables(self.ledger.facet_values, self.settings.facets.facets)
        search = self.settings.search
        self.questions = Cache(search.query_cache)
        self.candidates = Cache(search.result_cache, search.result_cache_seconds)
        self.hotset = Hotset(self.ledger, self.settings)
        self.page_tables = Cache(PAGE_TABLES)
        self.provenance = Cache(PROVENANCE)
        self.threads = ThreadPoolExecutor(BRANCHES, thread_name_prefix="branch")

    def for_reader(self, reader: Reader | None) -> "Resources":
        """These resources with the ledger as far as a reader may read it; the caches are shared."""
        if reader is None:
            return self
        limited = copy(self)
        limited.backend = replace(self.backend, ledger=self.ledger.for_reader(reader))
        return limited

    def embedder_of(self, collection: CollectionRecord, vector_name: str = "") -> Embedder:
        """The embedder of a collection's vectors of this name; the present one if there is none."""
        model = collection.models.get(vector_name, collection.embedder)
        return embedder_of(model, self.embedder, self.previous, self.further.values())

    def analyzer_of(self, collection: CollectionRecord) -> Analyzer:
        """The analyzer of a collection's terms."""
        return analyzer_of(collection.analyzer, self.analyzer)

    def pages_of(self, versions: Mapping[str, int]) -> dict[str, PageTable]:
        """The pages of these live versions by document id; reads each version once."""
        return _read_once(self.page_tables, versions, self.ledger.pages.of, NO_PAGES)

    def provenance_of(self, versions: Mapping[str, int]) -> dict[str, Provenance]:
        """The provenance of these live versions by document id; reads each version once."""
        read = self.ledger.versions.provenance
        return _read_once(self.provenance, versions, read, Provenance())

    @property
    def caches(self) -> dict[str, Counted]:
        """The caches of searches, by name, with their hit counters."""
        return {"questions": self.questions, "candidates": self.candidates, "hotset": self.hotset}


def _read_once(
    cache: Cache[T],
    versions: Mapping[str, int],
    read: Callable[[Mapping[str, int]], Mapping[str, T]],
    nothing: T,
) -> dict[str, T]:
    """The values of these versions by document id, from the cache or read for those it lacks.

    `nothing` is the value of a version of which `read` returns none.
    """
    cached = {key: cache.get(key) for key in versions.items()}
    values = {key[0]: value for key, value in cached.items() if value is not None}
    if missing := {i: version for i, version in versions.items() if i not in values}:
        present = read(missing)
        for key in missing.items():
            values[key[0]] = present.get(key[0], nothing)
            cache.put(key, values[key[0]])
    return values
