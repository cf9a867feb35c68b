"""weaviate-client, used directly without Callslip."""

import uuid
import warnings
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from benchmarks.stores.baseline.base import KIND, Baseline, fields
from callslip.config.settings import Settings
from callslip.stores.records import ChunkRecord, Vector

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # from a library that the client imports
    import weaviate
    from weaviate.classes.config import Configure, DataType, Property, Tokenization
    from weaviate.classes.data import DataObject
    from weaviate.classes.query import Filter, MetadataQuery

NAME = "Baseline_chunk"
_SPACE = uuid.UUID("00000000-0000-0000-0000-00000000ba5e")


class BaselineWeaviate(Baseline):
    """One collection with typed properties and provided vectors."""

    def __init__(self, settings: Settings) -> None:
        http = urlsplit(settings.weaviate.url or "")
        grpc = urlsplit(f"//{(settings.weaviate.grpc_url or '').rpartition('//')[2]}")
        host = http.hostname or ""
        self._client = weaviate.connect_to_custom(
            host, http.port or 80, False, grpc.hostname or host, grpc.port or 50051, False,
            skip_init_checks=True,
        )  # fmt: skip

    def create(self, dimension: int) -> None:
        self._client.collections.delete(NAME)
        texts = ("document_id", "parent_id", "section", "heading", "title", "filename", "lang")
        numbers = ("level", "ordinal", "start", "end", "year")
        self._at = self._client.collections.create(
            NAME,
            properties=[
                *(_text(name) for name in ("chunk_id", *texts, KIND, "valid_from")),
                *(Property(name=name, data_type=DataType.NUMBER) for name in numbers),
                _text("tags", DataType.TEXT_ARRAY),
                Property(
                    name="body",
                    data_type=DataType.TEXT,
                    index_filterable=False,
                    index_searchable=False,
                ),
                Property(
                    name="terms",
                    data_type=DataType.TEXT,
                    tokenization=Tokenization.WHITESPACE,
                    index_filterable=False,
                ),
            ],
            vector_config=Configure.Vectors.self_provided(
                quantizer=Configure.VectorIndex.Quantizer.none()
            ),
        )

    def upsert(self, chunks: Sequence[ChunkRecord]) -> None:
        answer = self._at.data.insert_many(
            [
                DataObject(
                    properties={
                        **c.properties,
                        **fields(c),
                        "chunk_id": c.chunk_id,
                        "body": c.body,
                        "terms": c.terms,
                    },
                    uuid=uuid.uuid5(_SPACE, c.chunk_id),
                    vector=c.vector.tolist(),
                )
                for c in chunks
            ]
        )
        if answer.has_errors:
            raise RuntimeError(next(iter(answer.errors.values())).message)

    def vector(self, vector: Vector, limit: int, kind: str | None) -> list[str]:
        results: Any = self._at.query.near_vector(
            vector.tolist(),
            limit=limit,
            filters=_only(kind),
            return_metadata=MetadataQuery(distance=True),
            return_properties=["chunk_id"],
        )
        return [str(each.properties["chunk_id"]) for each in results.objects]

    def keyword(self, terms: str, limit: int, kind: str | None) -> list[str]:
        results: Any = self._at.query.bm25(
            terms,
            query_properties=["terms"],
            limit=limit,
            filters=_only(kind),
            return_metadata=MetadataQuery(score=True),
            return_properties=["chunk_id"],
        )
        return [str(each.properties["chunk_id"]) for each in results.objects]

    def drop(self) -> None:
        self._client.collections.delete(NAME)
        self._client.close()


def _text(name: str, type_: DataType = DataType.TEXT) -> Property:
    return Property(
        name=name, data_type=type_, tokenization=Tokenization.FIELD, index_searchable=False
    )


def _only(kind: str | None) -> Any:
    return Filter.by_property(KIND).equal(kind) if kind else None
