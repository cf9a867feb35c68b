"""Invokers of Genie Flow over an engine and any store, and what is persisted with them."""

import json
import uuid
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
from context_parts import app_over
from flask_openapi3 import OpenAPI
from search_parts import made_of

from callslip.compat.context import AdapterContext
from callslip.compat.genie import INVOKERS
from callslip.config import get_settings
from callslip.config.sections.ranking import SearchSettings
from callslip.config.settings import Settings
from callslip.models.embedders.contract import Vectors
from callslip.retrieval.candidates.resources import Resources
from callslip.retrieval.run import search
from callslip.stores.blobs import Blobs
from callslip.stores.contract import Store
from callslip.stores.ledger import Ledger
from callslip.stores.metrics import Metric
from callslip.stores.records import CollectionSchema, VectorSpec


class Angles:
    """An embedder whose texts begin with the degrees that their vectors point to."""

    model, dimension, lexical_only = "tiny", 2, False

    def query(self, text: str) -> Vectors:
        first = text.split()[0]
        radians = np.deg2rad(float(first) if first.replace(".", "").isdecimal() else 90.0)
        return np.array([np.cos(radians), np.sin(radians)], np.float32)

    def passages(self, texts: Any) -> Vectors:
        return np.stack([self.query(text) for text in texts])


def adapter_context_of(
    ledger: Ledger, store: Store, blobs: Blobs
) -> tuple[AdapterContext, list[str]]:
    """A context, and the list of the documents and collections that a worker is to remove."""
    engine: Resources = made_of(ledger, store, SearchSettings())
    embedder: Any = Angles()
    engine.embedder = embedder
    removed: list[str] = []
    context = AdapterContext(
        replace(engine.backend, blobs=blobs),
        partial(search, engine),
        lambda: embedder,
        lambda _, text: text.lower(),
        removed.append,
        removed.append,
    )
    return context, removed


def app_of(context: AdapterContext, settings: Settings | None = None) -> OpenAPI:
    """The API over the parts of an adapter's context; its new collections are in that store."""
    store = context.store_of("")
    settings = (settings or get_settings()).model_copy(update={"store": store.kind})
    return app_over(
        settings,
        store,
        ledger=context.ledger,
        blobs=context.blobs,
        embedder=context.embedder(),
        analyzer=SimpleNamespace(analyze=str.lower),
        search=context.search,
    )


def make(
    context: AdapterContext,
    name: str,
    *,
    tenants: tuple[str, ...] = (),
    metric: Metric = "cosine",
    normalized: bool = False,
) -> None:
    """A collection in the ledger and in the store."""
    schema = CollectionSchema(
        name, VectorSpec(2, metric, normalized=normalized), tenants=bool(tenants)
    )
    store = context.store_of("")
    store.ensure_schema(schema)
    context.ledger.collections.create(schema, store=store.kind, embedder="tiny", analyzer="1")
    for tenant in tenants:
        context.ledger.tenants.create(name, tenant)
        store.ensure_tenant(name, tenant)


def call(context: AdapterContext, name: str, content: Any, **parameters: Any) -> Any:
    """What the invoker of this name answers to a text, or to JSON."""
    invoker = INVOKERS[f"Weaviate{name}Invoker"].over(context, {"parameters": parameters})
    return json.loads(invoker.invoke(content if isinstance(content, str) else json.dumps(content)))


def at(degrees: float) -> list[float]:
    """The vector that points there."""
    return [float(np.cos(np.deg2rad(degrees))), float(np.sin(np.deg2rad(degrees)))]


def chunk_id(name: str) -> str:
    """The id of a chunk of the fixture."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, name))


def chunk(name: str, degrees: float, level: int, parent: str = "", **own: Any) -> dict[str, Any]:
    """A chunk as the invokers take it."""
    return {
        "chunk_id": chunk_id(name),
        "content": f"{degrees} text of {name}",
        "original_span": [0, len(name)],
        "hierarchy_level": level,
        "custom_properties": own,
        "parent_id": chunk_id(parent) if parent else None,
        "embedding": at(degrees),
    }


DOCUMENTS: list[dict[str, Any]] = [
    {
        "filename": "atlas.pdf",
        "document_metadata": {"author": {"name": "Ann", "born": 1970}, "year": 2020},
        "chunks": [
            chunk("atlas", 50, 0, kind="whole"),
            chunk("atlas 1", 10, 1, "atlas", page=1, tags=["sea", "map"], nested={"a": {"b": "x"}}),
            chunk("atlas 2", 30, 1, "atlas", page=2, tags=["land"], nested={"a": {"b": "y"}}),
        ],
    },
    {
        "filename": "bible.pdf",
        "document_metadata": {"author": {"name": "Bob", "born": 1980}, "year": 2024},
        "chunks": [
            chunk("bible", 80, 0, kind="whole"),
            chunk("bible 1", 20, 1, "bible", page=1, tags=["sea"], draft=True),
            chunk("bible 2", 40, 1, "bible", page=3, tags=["word"], draft=False),
        ],
    },
    {
        "filename": "loose.txt",
        "document_metadata": {"year": 1999},
        "chunks": [chunk("loose", 5, 1)],
    },
]
"""Two levels, parents, nested metadata; angles are distances from a question at 0."""

NAMES = {c["chunk_id"]: c["content"].split(" text of ")[1] for d in DOCUMENTS for c in d["chunks"]}


def chunk_names(documents: list[dict[str, Any]]) -> list[list[str]]:
    """The names of the chunks, for each document."""
    return [[NAMES[c["chunk_id"]] for c in d["chunks"]] for d in documents]
