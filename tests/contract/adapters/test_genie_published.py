"""The invokers of the published package and ours give the same over each store.

The package, genie-flow-invoker-weaviate, is no dependency: where it is not installed this is
skipped, and says so. Its classes run as they are; what they are given for a Weaviate client calls
our stores, and evaluates their filters itself.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import closing
from fnmatch import fnmatchcase
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from genie_parts import DOCUMENTS, NAMES, adapter_context_of, at, call, chunk_id, make

from callslip.compat.context import AdapterContext
from callslip.compat.genie.documents import OF_CHUNK, OF_DOCUMENT, flat
from callslip.stores.blobs import Blobs
from callslip.stores.contract import Store
from callslip.stores.ledger import Ledger

published = pytest.importorskip(
    "genie_flow_invoker.invoker.weaviate",
    reason="genie-flow-invoker-weaviate is not installed: docs/compat-genie.md",
)


pytest_plugins = ["store_fixtures"]


class References(list[Any]):
    """Parents of an object, as the package iterates over them and as the client gives them."""

    @property
    def objects(self) -> list[Any]:
        return self


class Collection:
    """What the package calls of a collection of the client."""

    def __init__(self, context: AdapterContext, name: str, tenant: str = "") -> None:
        self.context, self.name, self.tenant = context, name, tenant
        self.store = context.store_of("")
        self.query = SimpleNamespace(near_vector=self.near_vector, near_text=self.near_text)
        self.aggregate = SimpleNamespace(over_all=self.over_all)
        self.tenants = SimpleNamespace(exists=lambda t: t in context.ledger.tenants.all(name))
        self.data = SimpleNamespace(
            exists=lambda i: str(i) in self.seen(),
            insert_many=self.insert_many,
            replace=lambda **given: self.insert_many([SimpleNamespace(**given)]),
            delete_many=self.delete_many,
        )

    @property
    def scope(self) -> dict[str, str]:
        return {"collection": self.name} | ({"tenant": self.tenant} if self.tenant else {})

    def exists(self) -> bool:
        return True

    def with_tenant(self, tenant: str) -> "Collection":
        return Collection(self.context, self.name, tenant)

    def seen(self) -> list[str]:
        ids = self.store.find_ids(self.name, tenant=self.tenant)
        return list(
            self.context.ledger.chunks.visible(ids, collection=self.name, tenant=self.tenant)
        )

    def objects(self, ids: list[str], references: bool, vectors: bool) -> list[Any]:
        found = self.store.get_chunks(self.name, ids, tenant=self.tenant, include_vector=True)
        made = []
        for each in found:
            paths = {
                n if n.startswith((OF_CHUNK, OF_DOCUMENT)) else OF_DOCUMENT + n: v
                for n, v in each.properties.items()
            }
            flat_names = {
                published.search.unmap_properties.__globals__["FlattenedProperty"]
                .from_path(path, v)
                .flat_name: path
                for path, v in paths.items()
            }
            parents = self.objects([each.parent_id], False, vectors) if each.parent_id else []
            assert each.vector is not None
            made.append(
                SimpleNamespace(
                    uuid=each.chunk_id,
                    properties={
                        "content": each.body,
                        "filename": each.filename,
                        "original_span_start": each.start,
                        "original_span_end": each.end,
                        "hierarchy_level": each.level,
                        "property_map": flat_names,
                        **{name: paths[path] for name, path in flat_names.items()},
                    },
                    references={"parent": References(parents)} if references and parents else None,
                    vector={"default": each.vector.tolist()} if vectors else {},
                )
            )
        return made

    def near_vector(
        self,
        near_vector: list[float],
        distance: float | None = None,
        limit: int | None = None,
        filters: Any = None,
        include_vector: bool = False,
        return_references: Any = None,
        target_vector: str | None = None,
    ) -> Any:
        assert target_vector == "default"
        hits = self.store.vector_query(
            self.name, np.array(near_vector, np.float32), 999, tenant=self.tenant, horizon=distance
        )
        seen = set(self.seen())
        ids = [h.chunk_id for h in hits if h.chunk_id in seen]
        found = self.objects(ids, return_references is not None, include_vector)
        passing = [each for each in found if filters is None or passes(filters, each.properties)]
        return SimpleNamespace(objects=passing[:limit])

    def near_text(
        self,
        query: str,
        distance: float | None = None,
        limit: int | None = None,
        filters: Any = None,
        include_vector: bool = False,
        return_references: Any = None,
        target_vector: str | None = None,
    ) -> Any:
        vector = self.context.embedder().query(query).tolist()
        how = (filters, include_vector, return_references, target_vector)
        return self.near_vector(vector, distance, limit, *how)

    def over_all(self, return_metrics: Any) -> Any:
        from weaviate.collections.classes.aggregate import AggregateReturn

        deepest = self.store.deepest_level(self.name, tenant=self.tenant)
        maximum: Any = {"hierarchy_level": SimpleNamespace(maximum=deepest)}
        return AggregateReturn(properties=maximum, total_count=None)

    def insert_many(self, objects: list[Any]) -> None:
        """Documents as the invoker takes them, of the objects that the package made."""
        documents: defaultdict[str, dict[str, Any]] = defaultdict(lambda: {"chunks": []})
        for each in objects:
            given = each.properties
            nested = published.search.unmap_properties(given, given["property_map"])
            document = documents[given["filename"]]
            document["document_metadata"] = nested.get("document_metadata")
            document["chunks"].append(
                {
                    "chunk_id": each.uuid,
                    "content": given["content"],
                    "original_span": [given["original_span_start"], given["original_span_end"]],
                    "hierarchy_level": given["hierarchy_level"],
                    "custom_properties": nested.get("custom_properties"),
                    "parent_id": each.references["parent"] if each.references else None,
                    "embedding": each.vector["default"],
                }
            )
        for name, document in documents.items():
            sent_request = {"document": document | {"filename": name}}
            call(self.context, "Persist", sent_request, **self.scope)

    def delete_many(self, where: Any) -> Any:
        found = self.objects(self.seen(), references=False, vectors=False)
        ids = [e.uuid for e in found if passes(where, e.properties | {"_id": e.uuid})]
        counts = call(self.context, "DeleteChunk", {"chunk_id": ids}, **self.scope)
        return SimpleNamespace(**counts)


def passes(condition: Any, properties: dict[str, Any]) -> bool:
    """Whether an object passes a filter of the client's classes, as Weaviate defines them."""
    if hasattr(condition, "filters"):
        quantor: Callable[[Iterator[bool]], bool] = (
            all if type(condition).__name__ == "_FilterAnd" else any
        )
        return quantor(passes(each, properties) for each in condition.filters)
    actual, value = properties.get(str(condition.target)), condition.value
    match condition.operator.name:
        case "EQUAL":
            return bool(actual == value)
        case "NOT_EQUAL":
            return bool(actual != value)
        case "CONTAINS_ANY":
            listed = actual if isinstance(actual, list) else [actual]
            return bool({str(v) for v in listed} & {str(v) for v in value})
        case "LIKE":
            return fnmatchcase(str(actual), value)
    if actual is None:
        return False
    return {
        "LESS_THAN": actual < value,
        "LESS_THAN_EQUAL": actual <= value,
        "GREATER_THAN": actual > value,
        "GREATER_THAN_EQUAL": actual >= value,
    }[condition.operator.name]


class Client:
    """In the place of the package's factory of clients, and of its client."""

    def __init__(self, context: AdapterContext) -> None:
        self.collections = SimpleNamespace(
            exists=lambda name: name in {r.name for r, _ in context.ledger.collections.all()},
            get=lambda name: Collection(context, name),
        )

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        pass


@pytest.fixture
def context(store: Store, tmp_path: Path) -> Iterator[AdapterContext]:
    with closing(Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")) as ledger:
        ledger.create()
        yield adapter_context_of(ledger, store, Blobs(str(tmp_path / "blobs")))[0]


@pytest.fixture
def collection_name(context: AdapterContext, names: Callable[[], str]) -> str:
    name = names()
    make(context, name)
    call(context, "Persist", {"collection": name, "document": DOCUMENTS})
    return name


def theirs(context: AdapterContext, name: str, content: Any, **parameters: Any) -> Any:
    """What the package's invoker of this name answers."""
    invoker = getattr(published, f"Weaviate{name}Invoker")(Client(context), parameters)
    return json.loads(invoker.invoke(content if isinstance(content, str) else json.dumps(content)))


def ours(context: AdapterContext, name: str, content: Any, parents: bool, **parameters: Any) -> Any:
    """What our invoker answers, without what the package leaves out."""
    reply = call(context, name, content, **parameters)
    for each in (chunk for document in reply for chunk in document["chunks"]):
        each.pop("distance")
        if not parents:
            each["parent_id"] = None  # the package asks for it only with a parent strategy
    return reply


def rounded(documents: list[dict[str, Any]]) -> list[dict[str, Any]]:
    for chunk in (c for document in documents for c in document["chunks"]):
        if chunk["embedding"] is not None:
            chunk["embedding"] = [round(value, 5) for value in chunk["embedding"]]
    return documents


WITH_PARENTS = {"operation_level": 1, "having_all": {"document_metadata.year >": 2000}}

SEARCHES: list[dict[str, Any]] = [
    {},
    {"top": 3},
    {"horizon": 0.1},
    {"include_vector": True},
    {"operation_level": 0},
    {"operation_level": 1},
    {"operation_level": -1},
    {"operation_level": -2},
    {"parent_strategy": "replace"},
    {"parent_strategy": "replace", "top": 3, "include_vector": True},
    {"parent_strategy": "include", **WITH_PARENTS},
    {"parent_strategy": "include", "top": 2, **WITH_PARENTS},
    {
        "having_all": {"document_metadata.year >=": 2020, "custom_properties.page": 1},
        "having_any": {"custom_properties.nested.a.b": "x", "custom_properties.draft": True},
    },
]

CONDITIONS: list[dict[str, Any]] = [
    {"document_metadata.author.name": "Ann"},
    {"document_metadata.author.name ==": "Ann"},
    {"document_metadata.year !=": 2024},
    {"document_metadata.author.born <": 1980},
    {"document_metadata.author.born <=": 1980},
    {"custom_properties.page  >": 1},
    {"custom_properties.page >=": 2},
    {"custom_properties.tags contains": ["sea", "word"]},
    {"document_metadata.year in": [1999, 2024]},
    {"document_metadata.year not-in": [1999, 2024]},
    {"custom_properties.draft": False},
    {"custom_properties.nested.a.b in": ["x", "y"]},
]
SEARCHES += [{group: c} for c in CONDITIONS for group in ("having_all", "having_any")]


@pytest.mark.parametrize("sent_request", SEARCHES, ids=repr)
def test_searches_find_the_same_documents(
    context: AdapterContext, collection_name: str, sent_request: dict[str, Any]
) -> None:
    for content in (at(0), at(45), at(80)):
        request = sent_request | {
            "query_embedding": content,
            "filename": "",
            "collection_name": collection_name,
        }
        one = theirs(context, "SimilaritySearchRequest", request)
        other = ours(
            context, "SimilaritySearchRequest", request, parents="parent_strategy" in sent_request
        )
        assert one
        assert rounded(other) == rounded(one)


def test_a_text_finds_the_same_documents(context: AdapterContext, collection_name: str) -> None:
    configured = {"collection_name": collection_name, "top": 4, "operation_level": -1}
    one = theirs(context, "SimilaritySearch", "33 degrees", **configured)
    assert one
    assert ours(context, "SimilaritySearch", "33 degrees", parents=False, **configured) == one


def test_what_the_package_persists_is_what_ours_does(
    context: AdapterContext, collection_name: str, names: Callable[[], str]
) -> None:
    name = names()
    make(context, name)
    changed = [
        {**d, "chunks": [c | {"chunk_id": c["chunk_id"][:-4] + "beef"} for c in d["chunks"]]}
        for d in DOCUMENTS[:1]
    ]
    for chunk in changed[0]["chunks"]:
        if chunk["parent_id"]:
            chunk["parent_id"] = chunk["parent_id"][:-4] + "beef"
    for expected in ((3, 0), (0, 3)):
        counts = theirs(context, "Persist", {"collection_name": name, "document": changed})
        assert (counts["nr_inserts"], counts["nr_replaces"]) == expected
        assert set(counts) == {"collection_name", "tenant_name", "nr_inserts", "nr_replaces"}
    only = {"having_all": {"filename": "atlas.pdf"}, "query_embedding": at(0)}
    one = call(context, "VectorSimilaritySearch", only | {"collection": collection_name})
    other = call(context, "VectorSimilaritySearch", only | {"collection": name})
    for chunk in (c for c in (*one[0]["chunks"], *other[0]["chunks"])):
        chunk["chunk_id"] = chunk["chunk_id"][:-4]
        chunk["parent_id"] = (chunk["parent_id"] or "")[:-4]
    assert one == other


@pytest.mark.parametrize(
    ("name", "sent_request"),
    [
        ("DeleteChunk", {"chunk_id": [chunk_id("atlas 1"), chunk_id("bible")]}),
        ("DeleteByFilename", {"filename": "atlas.pdf"}),
        ("DeleteByFilter", {"having_all": {"document_metadata.year": 2024}}),
        ("DeleteByFilter", {"having_any": {"custom_properties.page in": [1, 3]}}),
    ],
)
def test_deletions_leave_the_same(
    context: AdapterContext, collection_name: str, name: str, sent_request: dict[str, Any]
) -> None:
    left: list[Any] = []
    for delete in (theirs, call):
        counts = delete(context, name, sent_request | {"collection_name": collection_name})
        reply = call(context, "VectorSimilaritySearch", at(0), collection=collection_name)
        left.append((counts, [NAMES[c["chunk_id"]] for d in reply for c in d["chunks"]]))
        call(context, "Persist", {"collection": collection_name, "document": DOCUMENTS})
    assert left[0] == left[1]


@pytest.mark.parametrize("names_given", [{}, {"tenant_name": "ann"}])
def test_a_missing_collection_is_the_same_error(
    context: AdapterContext, names_given: dict[str, str]
) -> None:
    request = {"query_embedding": at(0), "filename": "", "collection_name": "none"} | names_given
    for search in (theirs, call):
        with pytest.raises(KeyError, match="Collection none does not exist"):
            search(context, "SimilaritySearchRequest", request)


def test_properties_are_flattened_to_the_same_paths() -> None:
    nested = {"document_metadata": DOCUMENTS[0]["document_metadata"]}
    theirs_flat = published.persist.flatten_properties(nested)
    assert {each.path: each.value for each in theirs_flat} == flat(nested)
