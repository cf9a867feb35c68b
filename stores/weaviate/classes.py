"""The Weaviate classes of a collection: their properties, indexes and the stored schema."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from uuid import uuid4

from weaviate.classes.config import (
    Configure,
    DataType,
    Property,
    ReferenceProperty,
    StopwordsPreset,
    Tokenization,
    VectorDistances,
)
from weaviate.classes.data import DataObject
from weaviate.client import WeaviateClient
from weaviate.exceptions import UnexpectedStatusCodeException, WeaviateInvalidInputError

from callslip.errors import CollectionNotFound, Conflict, StoreDown
from callslip.stores.metrics import Metric
from callslip.stores.records import FILTERABLE, TIMES, VALIDITY, CollectionSchema
from callslip.stores.schemas import dump_schema, load_schema
from callslip.stores.weaviate.connection import (
    At,
    Connection,
    answering,
    is_read_only,
    read_only,
)
from callslip.stores.weaviate.names import CHUNKS, DOCUMENTS, class_of, uuid_of, vector_of
from callslip.stores.weaviate.values import KIND_TYPES, property_at

K1, B = 1.2, 0.75

PROBE = "CallslipProbe"
"""The class that a probe writes into."""

TERMS, RECORD, BODY, VECTORS = "terms", "record", "body", "vectors"

PARENT, OF_DOC, PARENT_ID = "parent_id", "of_doc", "parent_chunk_id"
"""The references to the parent and to the document, and the text property of the parent's id."""

_DISTANCES: Mapping[Metric, VectorDistances] = {
    "cosine": VectorDistances.COSINE,
    "dot": VectorDistances.DOT,
    "l2-squared": VectorDistances.L2_SQUARED,
    "hamming": VectorDistances.HAMMING,
    "manhattan": VectorDistances.MANHATTAN,
}

CHUNK_DATES = (*VALIDITY, *TIMES)
DOCUMENT_TEXTS = ("doc_type", "jurisdiction", "lang")
DOCUMENT_DATES = VALIDITY
ENTITIES = "entities"


@dataclass(frozen=True)
class Made:
    """The schema of a collection, and the names of the properties in its class of chunks."""

    schema: CollectionSchema
    properties: frozenset[str]


def look_up(connection: Connection, collection: str) -> Made:
    """Read a collection's schema and properties from the server.

    Raises CollectionNotFound if the collection does not exist, and Conflict if Callslip did not
    create the class of that name.
    """
    name = class_of(CHUNKS, collection)
    try:
        with answering():
            config = connection.at(name).config.get(simple=True)
    except UnexpectedStatusCodeException as error:
        if error.status_code != 404:
            raise
        raise CollectionNotFound(f"Collection {collection} does not exist.") from None
    schema = _schema_in(config.description)
    if schema is None:
        raise Conflict(
            f"Weaviate has a class {name} that Callslip did not make.",
            hint="Give the collection another name, or remove that class.",
        )
    return Made(schema, frozenset(each.name for each in config.properties))


def all_collections(client: WeaviateClient) -> list[str]:
    """The names of all collections that Callslip created, sorted."""
    with answering():
        configs = client.collections.list_all(simple=True)
    schemas = (_schema_in(c.description) for n, c in configs.items() if n.startswith(CHUNKS))
    return sorted(schema.name for schema in schemas if schema)


def make_classes(client: WeaviateClient, schema: CollectionSchema) -> None:
    """Create the missing classes of a collection. Idempotent.

    The class of chunks, which stores the schema, is created last: without this class, the
    collection does not exist.
    """
    documents = class_of(DOCUMENTS, schema.name)
    chunks = class_of(CHUNKS, schema.name)
    tenants = Configure.multi_tenancy(
        enabled=schema.tenants, auto_tenant_creation=False, auto_tenant_activation=schema.tenants
    )
    inverted = Configure.inverted_index(bm25_k1=K1, bm25_b=B, stopwords_preset=StopwordsPreset.NONE)
    with answering():
        if not client.collections.exists(documents):
            with _made_already():
                client.collections.create(
                    documents,
                    properties=_document_properties(),
                    inverted_index_config=inverted,
                    multi_tenancy_config=tenants,
                    vector_config=Configure.Vectors.self_provided(name=vector_of("")),
                )
        if not client.collections.exists(chunks):
            with _made_already():
                client.collections.create(
                    chunks,
                    description=dump_schema(schema),
                    properties=_chunk_properties(),
                    references=[
                        ReferenceProperty(name=PARENT, target_collection=chunks),
                        ReferenceProperty(name=OF_DOC, target_collection=documents),
                    ],
                    inverted_index_config=inverted,
                    multi_tenancy_config=tenants,
                    vector_config=[
                        Configure.Vectors.self_provided(
                            name=vector_of(name),
                            quantizer=Configure.VectorIndex.Quantizer.none(),
                            vector_index_config=Configure.VectorIndex.hnsw(
                                distance_metric=_DISTANCES[spec.metric]
                            ),
                        )
                        for name, spec in {"": schema.default, **schema.named}.items()
                    ],
                )


def probe(connection: Connection) -> None:
    """Write an object into a class of its own and read it back. Raises StoreDown."""
    mark, client = str(uuid4()), connection.client()
    with answering():
        if not client.collections.exists(PROBE):
            with _made_already():
                client.collections.create(
                    PROBE,
                    properties=[_property("mark")],
                    vector_config=Configure.Vectors.self_provided(name=vector_of("")),
                )
        at, id_ = connection.at(PROBE), uuid_of(PROBE)
        refused = at.data.insert_many([DataObject(uuid=id_, properties={"mark": mark})]).errors
        if any(is_read_only(error.message) for error in refused.values()):
            raise read_only()
        stored = at.query.fetch_objects_by_ids([id_], limit=1, return_properties=["mark"]).objects
    if [each.properties["mark"] for each in stored] != [mark]:
        raise StoreDown("Weaviate gives back another object than was written.")


def add_properties(at: At, names: Iterable[str]) -> None:
    """Add properties for property terms to a class, with explicit types: Weaviate may guess wrong.

    Another process may add the same properties at the same time.
    """
    for name in sorted(names):
        kind = name.partition("_")[0]
        with answering(), _made_already():
            at.config.add_property(_property(name, KIND_TYPES[kind]))


class _made_already:  # noqa: N801 - a context manager, used like a function
    """Ignores the server's error for a class or property that already exists."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: object, _: object) -> bool:
        message = str(error)
        return isinstance(error, UnexpectedStatusCodeException | WeaviateInvalidInputError) and (
            "already exists" in message or "already in use" in message
        )


def _chunk_properties() -> list[Property]:
    fields = [property_at(mark, name) for name, mark in _FIELD_MARKS]
    return [
        *(_property(name) for name in ("chunk_id", "doc_id", "section", PARENT_ID)),
        *(_property(name, DataType.TEXT_ARRAY) for name in (ENTITIES, VECTORS)),
        *(_property(name, DataType.DATE) for name in CHUNK_DATES),
        *(_property(name, indexed=False) for name in (BODY, RECORD)),
        Property(
            name=TERMS,
            data_type=DataType.TEXT,
            tokenization=Tokenization.WHITESPACE,
            index_filterable=False,
            index_searchable=True,
        ),
        *(_property(name, KIND_TYPES[name.partition("_")[0]]) for name in fields),
    ]


def _document_properties() -> list[Property]:
    return [
        *(_property(name) for name in ("doc_id", "title", *DOCUMENT_TEXTS)),
        _property(ENTITIES, DataType.TEXT_ARRAY),
        *(_property(name, DataType.DATE) for name in DOCUMENT_DATES),
        _property(RECORD, indexed=False),
    ]


_FIELD_MARKS = [(name, "n" if name in ("level", "ordinal") else "t") for name in FILTERABLE]


def _property(name: str, type_: DataType = DataType.TEXT, *, indexed: bool = True) -> Property:
    text = type_ in (DataType.TEXT, DataType.TEXT_ARRAY)
    return Property(
        name=name,
        data_type=type_,
        tokenization=Tokenization.FIELD if text else None,
        index_filterable=indexed,
        index_searchable=False if text else None,
    )


def _schema_in(description: str | None) -> CollectionSchema | None:
    try:
        return load_schema(description or "")
    except (json.JSONDecodeError, KeyError, TypeError):
        return None
