"""LlamaIndex in one process: an ingestion pipeline and a document store over a folder of Chroma."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import chromadb
from llama_index.core import SimpleDirectoryReader, VectorStoreIndex
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.ingestion import DocstoreStrategy, IngestionPipeline
from llama_index.core.node_parser import NodeParser
from llama_index.core.node_parser.node_utils import build_nodes_from_splits
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.vector_stores.chroma import ChromaVectorStore
from pydantic import Field

from benchmarks.peers import protocol
from benchmarks.peers.chains.embedding import Embedding
from benchmarks.peers.protocol import TOP, Report, batches, distinct

DOCSTORE = "docstore.json"


class Cutter(NodeParser):
    """Cuts documents at known places."""

    known: dict[str, Any] = Field(default_factory=dict)

    def _parse_nodes(self, nodes: Sequence[Any], show_progress: bool = False, **_: Any) -> Any:
        return [
            chunk
            for node in nodes
            for chunk in build_nodes_from_splits(
                self.known[node.metadata["name"]].cut(node.text), node
            )
        ]


class ChainEmbedding(BaseEmbedding):
    """The embedder."""

    embedding: Any

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        vectors: list[list[float]] = self.embedding.passages(texts)
        return vectors

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._get_text_embeddings([text])[0]

    def _get_query_embedding(self, query: str) -> list[float]:
        vector: list[float] = self.embedding.query(query)
        return vector

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_query_embedding(query)


class LlamaIndexChain(protocol.Chain):
    """The chain."""

    def __init__(self, data: Path, models: Path) -> None:
        data.mkdir(parents=True, exist_ok=True)
        self._docstore_file = str(data / DOCSTORE)
        client = chromadb.PersistentClient(str(data / "chroma"))
        self._collection = client.get_or_create_collection(
            "bench", metadata={"hnsw:space": "cosine"}
        )
        self._store = ChromaVectorStore(chroma_collection=self._collection)
        embed = ChainEmbedding(embedding=Embedding(models), embed_batch_size=protocol.BATCH)
        self._cutter = Cutter()
        known = Path(self._docstore_file).exists()
        self._pipeline = IngestionPipeline(
            transformations=[self._cutter, embed],
            vector_store=self._store,
            docstore=SimpleDocumentStore.from_persist_path(self._docstore_file)
            if known
            else SimpleDocumentStore(),
            docstore_strategy=DocstoreStrategy.UPSERTS,
            disable_cache=True,
        )
        index = VectorStoreIndex.from_vector_store(self._store, embed)
        self._retriever = index.as_retriever(similarity_top_k=TOP)

    def ingest(self, documents: Sequence[protocol.Document], report: Report) -> None:
        """Run the pipeline on each batch, and write the document store at the end.

        The store is one file, so writing it after each batch would take ever longer.
        """
        done = 0
        for batch in batches(documents):
            self._cutter.known = {each.name: each for each in batch}
            self._pipeline.run(documents=_read(batch))
            done += len(batch)
            report(done, done)
        self._persist()

    def change(self, documents: Sequence[protocol.Document]) -> None:
        """Run the pipeline again, which replaces documents of the same id and another hash."""
        self.ingest(documents, lambda *_: None)

    def delete(self, names: Sequence[str]) -> None:
        """Delete from both stores."""
        for name in names:
            self._store.delete(name)
            self._docstore().delete_document(name)
        self._persist()

    def search(self, query: str) -> list[str]:
        """Retrieve."""
        results = self._retriever.retrieve(query)
        return distinct([each.node.metadata["name"] for each in results])

    def stored(self) -> dict[str, int]:
        """Count the store's chunks."""
        results: Any = self._collection.get(include=["metadatas"])
        return protocol.counted(each["name"] for each in results["metadatas"])

    def _docstore(self) -> Any:
        return self._pipeline.docstore

    def _persist(self) -> None:
        self._docstore().persist(self._docstore_file)


def _read(batch: Sequence[protocol.Document]) -> list[Any]:
    """Read the files; a document's id is its name, and no metadata are embedded with the text."""
    files = [str(each.path) for each in batch]
    read: list[Any] = SimpleDirectoryReader(input_files=files, encoding="utf-8").load_data()
    by_path = {str(each.path): each.name for each in batch}
    for document in read:
        document.id_ = by_path[document.metadata["file_path"]]
        document.metadata = {"name": document.id_}
        document.excluded_embed_metadata_keys = ["name"]
    return read


if __name__ == "__main__":
    protocol.serve(LlamaIndexChain)
