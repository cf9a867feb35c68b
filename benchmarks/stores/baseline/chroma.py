"""chromadb's client and a Tantivy index, used directly without Callslip."""

import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import chromadb
import tantivy
from chromadb.config import Settings as ClientSettings

from benchmarks.stores.baseline.base import KIND, Baseline, fields
from callslip.config.settings import Settings
from callslip.stores.records import ChunkRecord, Vector

NAME = "baseline"
HEAP_BYTES = 15_000_000


class BaselineChroma(Baseline):
    """A collection with the same vector index as in Callslip, and keywords in Tantivy."""

    def __init__(self, settings: Settings) -> None:
        at = urlsplit(settings.chroma.url or "")
        self._client: Any = chromadb.HttpClient(
            at.hostname or "", at.port or 80, settings=ClientSettings(anonymized_telemetry=False)
        )
        self._folder = Path(tempfile.mkdtemp(prefix="callslip-baseline-"))

    def create(self, dimension: int) -> None:
        hnsw = {"space": "cosine", "max_neighbors": 32, "ef_construction": 200, "ef_search": 300}
        self._at = self._client.get_or_create_collection(
            NAME,
            configuration={"hnsw": {**hnsw, "sync_threshold": 100}},
            embedding_function=None,
        )
        builder = tantivy.SchemaBuilder()
        builder.add_text_field("id", stored=True, tokenizer_name="raw", index_option="basic")
        builder.add_text_field("terms", tokenizer_name="whitespace", index_option="freq")
        builder.add_text_field(KIND, tokenizer_name="raw", index_option="basic")
        self._schema = builder.build()
        self._index = tantivy.Index(self._schema, path=str(self._folder))

    def upsert(self, chunks: Sequence[ChunkRecord]) -> None:
        self._at.upsert(
            ids=[c.chunk_id for c in chunks],
            embeddings=[c.vector for c in chunks],
            documents=[c.body for c in chunks],
            metadatas=[{**c.properties, **fields(c)} for c in chunks],
        )
        writer = self._index.writer(HEAP_BYTES, 1)
        for c in chunks:
            writer.delete_documents_by_term("id", c.chunk_id)
            document = tantivy.Document()
            document.add_text("id", c.chunk_id)
            document.add_text("terms", c.terms)
            document.add_text(KIND, str(c.properties[KIND]))
            writer.add_document(document)
        writer.commit()
        writer.wait_merging_threads()
        self._index.reload()

    def vector(self, vector: Vector, limit: int, kind: str | None) -> list[str]:
        results = self._at.query(
            query_embeddings=[vector],
            n_results=limit,
            where={KIND: kind} if kind else None,
            include=["distances"],
        )
        return list(results["ids"][0])

    def keyword(self, terms: str, limit: int, kind: str | None) -> list[str]:
        words = [
            (tantivy.Occur.Should, tantivy.Query.term_query(self._schema, "terms", word, "freq"))
            for word in terms.split()
        ]
        query = tantivy.Query.boolean_query(words)
        if kind:
            only = tantivy.Query.term_query(self._schema, KIND, kind, "basic")
            both = (query, tantivy.Query.const_score_query(only, 0.0))
            query = tantivy.Query.boolean_query([(tantivy.Occur.Must, part) for part in both])
        searcher = self._index.searcher()
        results = searcher.search(query, limit, count=False)
        return [searcher.doc(at)["id"][0] for _, at in results.hits]

    def drop(self) -> None:
        self._client.delete_collection(NAME)
        shutil.rmtree(self._folder)
