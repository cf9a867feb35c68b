"""Haystack in one process: an indexing pipeline and a query pipeline over a folder of Chroma."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from haystack import Document, Pipeline, component
from haystack.components.converters import TextFileToDocument
from haystack.components.writers import DocumentWriter
from haystack_integrations.components.retrievers.chroma import ChromaEmbeddingRetriever
from haystack_integrations.document_stores.chroma import ChromaDocumentStore

from benchmarks.peers import protocol
from benchmarks.peers.chains.embedding import Embedding
from benchmarks.peers.protocol import TOP, Report, batches, distinct


@component
class Cutter:
    """Cuts documents at known places."""

    @component.output_types(documents=list[Document])
    def run(self, documents: list[Document], known: Mapping[str, Any]) -> dict[str, Any]:
        """Return a document for each chunk."""
        chunks = []
        for document in documents:
            source = known[document.meta["file_path"]]
            for text in source.cut(document.content):
                chunks.append(Document(content=text, meta={"name": source.name}))
        return {"documents": chunks}


@component
class DocumentEmbedder:
    """Gives chunks their vectors."""

    def __init__(self, embedding: Embedding) -> None:
        self._embedding = embedding

    @component.output_types(documents=list[Document])
    def run(self, documents: list[Document]) -> dict[str, Any]:
        """Return the chunks with vectors."""
        vectors = self._embedding.passages([each.content for each in documents])
        for document, vector in zip(documents, vectors, strict=True):
            document.embedding = vector
        return {"documents": documents}


@component
class TextEmbedder:
    """Gives a query its vector."""

    def __init__(self, embedding: Embedding) -> None:
        self._embedding = embedding

    @component.output_types(embedding=list[float])
    def run(self, text: str) -> dict[str, Any]:
        """Return the vector."""
        return {"embedding": self._embedding.query(text)}


class HaystackChain(protocol.Chain):
    """The chain."""

    def __init__(self, data: Path, models: Path) -> None:
        embedding, self._store = Embedding(models), _store(data)
        self.query_pipeline = _query_pipeline(self._store, embedding)
        indexing = Pipeline()
        indexing.add_component("reader", TextFileToDocument(store_full_path=True))
        indexing.add_component("cutter", Cutter())
        indexing.add_component("embedder", DocumentEmbedder(embedding))
        indexing.add_component("writer", DocumentWriter(self._store))
        indexing.connect("reader.documents", "cutter.documents")
        indexing.connect("cutter.documents", "embedder.documents")
        indexing.connect("embedder.documents", "writer.documents")
        self.indexing_pipeline = indexing

    def ingest(self, documents: Sequence[protocol.Document], report: Report) -> None:
        """Run the indexing pipeline on each batch."""
        done = 0
        for batch in batches(documents):
            known = {str(each.path): each for each in batch}
            self.indexing_pipeline.run(
                {"reader": {"sources": list(known)}, "cutter": {"known": known}}
            )
            done += len(batch)
            report(done, done)

    def change(self, documents: Sequence[protocol.Document]) -> None:
        """Delete and write again: chunks have ids of their texts, so old ones would stay."""
        self.delete([each.name for each in documents])
        self.ingest(documents, lambda *_: None)

    def delete(self, names: Sequence[str]) -> None:
        """Delete by a filter."""
        self._store.delete_by_filter({"field": "meta.name", "operator": "in", "value": list(names)})

    def search(self, query: str) -> list[str]:
        """Run the query pipeline."""
        results = self.query_pipeline.run({"embedder": {"text": query}})
        return distinct([each.meta["name"] for each in results["retriever"]["documents"]])

    def stored(self) -> dict[str, int]:
        """Count the store's chunks."""
        return protocol.counted(each.meta["name"] for each in self._store.filter_documents())


def _store(data: Path) -> Any:
    return ChromaDocumentStore(persist_path=str(data), distance_function="cosine")


def _query_pipeline(store: Any, embedding: Embedding) -> Any:
    query = Pipeline()
    query.add_component("embedder", TextEmbedder(embedding))
    query.add_component("retriever", ChromaEmbeddingRetriever(store, top_k=TOP))
    query.connect("embedder.embedding", "retriever.query_embedding")
    return query


if __name__ == "__main__":
    protocol.serve(HaystackChain)
