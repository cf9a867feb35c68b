"""An engine over a ledger and a store in memory, and what happens to its documents, for tests."""

import uuid
from typing import Any

import numpy as np
from backend_parts import backend_of
from ledger_moves import store_chunks

from callslip.config.sections.ranking import MemorySettings, SearchSettings
from callslip.config.settings import Settings
from callslip.languages import DEFAULT
from callslip.models.entities import Recognizer
from callslip.retrieval.candidates.hotset import Hotset
from callslip.retrieval.candidates.resources import Resources
from callslip.retrieval.messages import SearchRequest, SearchResponse
from callslip.retrieval.run import search, traced
from callslip.retrieval.tracing.recording import Learning
from callslip.stores.contract import Store
from callslip.stores.ledger import Ledger, Submission
from callslip.stores.records import ChunkRecord, CollectionSchema, Value, Vector, VectorSpec

QUERIES = {
    "east": (1.0, 0.0),
    "nearly east": (0.99, 0.141),
    "north": (0.0, 1.0),
    "east 70": (1.0, 0.0),
}
"""Questions and their vectors."""

PROPERTIES = ("kind", "year", "tags", "draft", "since", "valid_from", "valid_to")
"""That documents may have."""

NO_CHANCE = MemorySettings(exploration="off")


class Embedder:
    model, dimension, lexical_only = "tiny", 2, False

    def query(self, text: str) -> Vector:
        return np.array(QUERIES[text], np.float32)


class Lower:
    codes = DEFAULT

    def analyze(self, text: str) -> str:
        return text.lower()


def made_of(ledger: Ledger, store: Store, search: SearchSettings, **more: Any) -> Resources:
    """An engine whose hotset looks at every search what is new; nothing is left to chance."""
    settings = Settings(search=search, **{"memory": NO_CHANCE} | more)
    embedder: Any = Embedder()
    made = Resources(backend_of(ledger, store, settings), embedder, Lower(), Recognizer())
    made.hotset = Hotset(ledger, settings, check_seconds=0)
    return made


def make_places(engine: Resources) -> None:
    """The collection `papers`, and `notes` with the tenants ann and bob."""
    make(engine, "papers")
    make(engine, "notes", tenants=("ann", "bob"))


def make(engine: Resources, name: str, tenants: tuple[str, ...] = ()) -> None:
    """A collection in the ledger and in the store."""
    schema, store = CollectionSchema(name, VectorSpec(2), tenants=bool(tenants)), a_store(engine)
    store.ensure_schema(schema)
    engine.ledger.collections.create(schema, store="memory", embedder="tiny", analyzer="1")
    engine.ledger.collections.has_properties(name, PROPERTIES)
    for tenant in tenants:
        engine.ledger.tenants.create(name, tenant)
        store.ensure_tenant(name, tenant)


def a_store(engine: Resources) -> Any:
    """The one that it has."""
    return engine.store_of("")


def ingest(
    engine: Resources,
    name: str,
    chunk_ids: list[str],
    *,
    collection: str = "papers",
    tenant: str = "",
    level: int = 2,
    words: str = "",
    **properties: Value,
) -> str:
    """A version of the document of this name, with these chunks; its id."""
    digest = uuid.uuid4().hex * 2
    item = engine.ledger.documents.submit(
        collection, Submission(name, name, "", digest, 1, {}), uuid.uuid4().hex, tenant=tenant
    )
    claim = store_chunks(engine.ledger, item, chunk_ids)
    chunks = [
        ChunkRecord(
            chunk_id,
            item.document_id,
            f"text of {chunk_id}",
            f"words {words}",
            np.array([np.cos(n / 9), np.sin(n / 9)], np.float32),
            level=level,
            filename=name,
            properties=properties,
        )
        for n, chunk_id in enumerate(chunk_ids, 1)
    ]
    assert not a_store(engine).batch_upsert_chunks(collection, chunks, tenant=tenant).failed
    engine.ledger.leases.go_live(claim, chunk_ids, {})
    return item.document_id


def ask(engine: Resources, query: str = "east", **more: Any) -> SearchResponse:
    """A search of `papers`, unless another collection is named."""
    request = {"collection": "papers", "query": query} | more
    return search(engine, SearchRequest.model_validate(request))


def learn(
    engine: Resources, *chunk_ids: str, query: str = "east", wins: int = 3, **where: Any
) -> None:
    """So many people say that these chunks helped with a question."""
    learning = Learning(engine.ledger, engine.settings.memory, engine.settings.traces)
    request = {"collection": "papers", "query": query, "ranking": {"hotset": False}, "as_of": "any"}
    trace = traced(
        engine, SearchRequest.model_validate(request | {"operation_level": "every"} | where)
    )
    learning.record([trace[1]])
    for n in range(wins):
        learning.outcome(trace[1].trace_id, chunk_ids, "helpful", user=f"user {n}")


def found(response: SearchResponse) -> list[str]:
    """The hits in their order."""
    return [hit.chunk_id for hit in response.hits]
