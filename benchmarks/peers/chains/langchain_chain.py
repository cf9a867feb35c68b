"""LangChain with langchain-chroma in one process, and its indexing API over a table in SQLite."""

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from langchain_chroma import Chroma
from langchain_classic.indexes import SQLRecordManager
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.indexing import index

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # the package says that it is in maintenance
    from langchain_community.document_loaders import TextLoader

from benchmarks.peers import protocol
from benchmarks.peers.chains.embedding import Embedding
from benchmarks.peers.protocol import TOP, Report, batches, distinct


class ChainEmbeddings(Embeddings):
    """The embedder."""

    def __init__(self, embedding: Embedding) -> None:
        self._embedding = embedding

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return the vectors of passages."""
        return self._embedding.passages(texts)

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of a query."""
        return self._embedding.query(text)


class LangChainChain(protocol.Chain):
    """The chain."""

    def __init__(self, data: Path, models: Path) -> None:
        data.mkdir(parents=True, exist_ok=True)
        self._store = Chroma(
            "bench",
            ChainEmbeddings(Embedding(models)),
            persist_directory=str(data / "chroma"),
            collection_metadata={"hnsw:space": "cosine"},
        )
        self._records = SQLRecordManager("bench", db_url=f"sqlite:///{data / 'records.db'}")
        self._records.create_schema()

    def ingest(self, documents: Sequence[protocol.Document], report: Report) -> None:
        """Index the chunks of each batch; chunks of earlier texts are removed."""
        done = 0
        for batch in batches(documents):
            chunks = [chunk for document in batch for chunk in _chunks(document)]
            index(
                chunks,
                self._records,
                self._store,
                batch_size=len(chunks),
                cleanup="incremental",
                source_id_key="name",
                key_encoder="blake2b",
            )
            done += len(batch)
            report(done, done)

    def change(self, documents: Sequence[protocol.Document]) -> None:
        """Index again."""
        self.ingest(documents, lambda *_: None)

    def delete(self, names: Sequence[str]) -> None:
        """Delete the records of the documents, and the chunks with their keys."""
        keys = self._records.list_keys(group_ids=list(names))
        self._store.delete(keys)
        self._records.delete_keys(keys)

    def search(self, query: str) -> list[str]:
        """Search by similarity, as the store's retriever does."""
        results = self._store.similarity_search(query, k=TOP)
        return distinct([each.metadata["name"] for each in results])

    def stored(self) -> dict[str, int]:
        """Count the store's chunks."""
        results: dict[str, Any] = self._store.get(include=["metadatas"])
        return protocol.counted(each["name"] for each in results["metadatas"])


def _chunks(document: protocol.Document) -> list[Any]:
    (loaded,) = TextLoader(str(document.path), encoding="utf-8").load()
    texts = document.cut(loaded.page_content)
    return [Document(page_content=text, metadata={"name": document.name}) for text in texts]


if __name__ == "__main__":
    protocol.serve(LangChainChain)
